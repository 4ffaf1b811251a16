"""FISH on time-evolving streams, workers of unequal speed, and workers that come and go.

    .venv/bin/python benchmarks/fish.py [--processes 2] [--keep FILE] [--write]

Time-evolving Zipf streams of 10⁵ keys whose ranks are reversed for the last 20 % of the tuples. About an hour on two
cores. --keep stores measured cells, so that an interrupted run can go on; --write stores the tables as
benchmarks/results/fish.md. Exits 1 where a claim fails.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

import cells
from anabranch import groupings
from anabranch.groupings import DChoices, Fish, Grouping, PartialKeyGrouping, ShuffleGrouping, WChoices
from anabranch.simulate import Change, Settings, simulate, source
from anabranch.simulate.edge import Edge
from anabranch.streams import EvolvingZipf
from cells import Claims, Figures, header, prose, row, spread

N_KEYS = 100_000
SKEWS = tuple(round(1 + i / 10, 1) for i in range(11))
MAIN_SKEWS = (1.0, 1.4, 2.0)
WORKERS = (16, 32, 64, 128)
RIVALS: dict[str, Grouping] = {
    "FISH": Fish(),
    "SG": ShuffleGrouping(),
    "PKG": PartialKeyGrouping(),
    "D-C": DChoices(),
    "W-C": WChoices(),
}
ABLATIONS: dict[str, Fish] = {
    "FISH": Fish(),
    "no epochs, alpha=1": Fish(alpha=1),
    'hot_keys="d-choices"': Fish(hot_keys="d-choices"),
    'hot_keys="w-choices"': Fish(hot_keys="w-choices"),
    'hashing="modulo"': Fish(hashing="modulo"),
    'assignment="count"': Fish(assignment="count"),
    "paper's epoch=1000, capacity=1000": Fish(epoch=1000, capacity=1000),
}
SIZE = "100 000 keys, S = 5, windows of 50 000 tuples"
RATE = "arrivals at 0.8 of the workers' capacity (800 W tuples/s)"
COLUMNS = ("makespan", "replication", "latency_mean", "latency_p50", "latency_p95", "latency_p99", "saturation_rate")


@dataclass(frozen=True)
class Cell:
    """One grouping on one time-evolving stream."""

    n_tuples: int
    z: float
    grouping: Grouping
    settings: Settings = field(default=Settings())
    candidates: bool = False


def measure(cell: Cell) -> Figures:
    stream = EvolvingZipf(n_tuples=cell.n_tuples, n_keys=N_KEYS, z=cell.z)
    result = simulate(stream, cell.grouping, cell.settings)
    after = result.windows.makespan[result.windows.tuples > stream.flip * cell.n_tuples]
    figures = {name: float(getattr(result, name)) for name in COLUMNS}
    figures |= {"after": float(after.mean()), "worst": float(after.max()), "slow": float((after > 2).sum())}
    if cell.candidates:
        edge = Edge(cell.grouping, cell.settings.n_sources, cell.settings.n_workers, cell.settings.seed)
        for tuples in source.read(stream, cell.settings):
            edge.route(tuples)
        figures["candidates"] = float(np.mean([router.mean_candidates for router in edge.routers]))
    return figures


def seeds(cell: Cell, n: int) -> list[Cell]:
    """The same cell with seeds 0 … n − 1."""
    return [
        Cell(cell.n_tuples, cell.z, cell.grouping, _settings(cell.settings, seed), cell.candidates) for seed in range(n)
    ]


def _settings(settings: Settings, seed: int) -> Settings:
    return Settings(**{**vars(settings), "seed": seed})


class Section:
    """A part of the results: which cells it needs, and the tables it makes of them."""

    def __init__(self, claims: Claims) -> None:
        self.claims = claims
        self.measured: dict[str, Figures] = {}

    def cells(self) -> list[Cell]:
        raise NotImplementedError

    def lines(self) -> list[str]:
        raise NotImplementedError

    def values(self, repeats: Sequence[Cell], name: str) -> list[float]:
        return [self.measured[repr(cell)][name] for cell in repeats]


class Evolving(Section):
    """Makespan and memory over skew and workers (the paper's Figures 9 to 13)."""

    n_tuples = 5_000_000

    def __init__(self, claims: Claims, n_seeds: int) -> None:
        super().__init__(claims)
        self.n_seeds = n_seeds

    def repeats(self, z: float, n_workers: int, grouping: Grouping) -> list[Cell]:
        n_seeds = 10 if z in MAIN_SKEWS else self.n_seeds
        return seeds(Cell(self.n_tuples, z, grouping, Settings(n_workers=n_workers)), n_seeds)

    def cells(self) -> list[Cell]:
        """The main skews first; then the others, a seed at a time."""
        wanted = [
            cell
            for z in (*MAIN_SKEWS, *SKEWS)
            for n_workers in WORKERS
            for grouping in RIVALS.values()
            for cell in self.repeats(z, n_workers, grouping)
        ]
        return sorted(wanted, key=lambda cell: 0 if cell.z in MAIN_SKEWS else 1 + cell.settings.seed)

    def lines(self) -> list[str]:
        repeated = "10 seeds"
        if self.n_seeds != 10:
            repeated += f" where z is {', '.join(map(str, MAIN_SKEWS))}, {self.n_seeds} elsewhere"
        common = f"{self.n_tuples:,} tuples, {SIZE}, {RATE}, mean ± spread over {repeated}."
        return [*self.makespans(common), *self.replications(common)]

    def makespans(self, common: str) -> list[str]:
        after = ("FISH", "D-C", "W-C")
        lines = [
            "## Time-evolving Zipf, 5 M tuples: makespan",
            "",
            *prose(
                f"{common} The last columns are the mean makespan of the windows after the ranks flip, and the worst such "
                "window of W-C."
            ),
            *header("W", "z", *RIVALS, *(f"{name} after" for name in after), "W-C worst"),
        ]
        overall, flipped, worst = [], [], []
        for n_workers in WORKERS:
            for z in SKEWS:
                cells_of = {name: self.repeats(z, n_workers, grouping) for name, grouping in RIVALS.items()}
                spans = {name: self.values(repeats, "makespan") for name, repeats in cells_of.items()}
                later = {name: self.values(cells_of[name], "after") for name in after}
                overall.append(np.mean(spans["W-C"]) / np.mean(spans["FISH"]))
                flipped.append(np.mean(later["W-C"]) / np.mean(later["FISH"]))
                worst.append(max(self.values(cells_of["W-C"], "worst")))
                shown = [*map(spread, spans.values()), *map(spread, later.values())]
                lines.append(row(n_workers, z, *shown, f"{worst[-1]:.2f}"))
        return [
            *lines,
            "",
            *prose(
                "The paper has FISH up to 12 times better than W-C. Our W-C shows no such collapse over the stream: its "
                f"makespan is at most {max(overall):.2f} × FISH's overall and {max(flipped):.2f} × after the flip. But "
                f"single windows do collapse, up to {max(worst):.2f}, until the new hot keys have 1/(5W) of all tuples so "
                "far; see W-C after the flip, below."
            ),
        ]

    def replications(self, common: str) -> list[str]:
        lines = ["## Time-evolving Zipf, 5 M tuples: replication", "", *prose(common), *header("W", "z", *RIVALS)]
        for n_workers in WORKERS:
            for z in SKEWS:
                held = [
                    self.values(self.repeats(z, n_workers, grouping), "replication") for grouping in RIVALS.values()
                ]
                lines.append(row(n_workers, z, *(spread(values, ".2f") for values in held)))
        return [*lines, ""]


class Long(Section):
    """The paper's length of 50 M tuples."""

    n_tuples = 50_000_000

    def cell(self, z: float, n_workers: int, name: str) -> Cell:
        return Cell(self.n_tuples, z, RIVALS[name], Settings(n_workers=n_workers))

    def cells(self) -> list[Cell]:
        return [self.cell(z, n_workers, name) for n_workers in WORKERS for z in SKEWS for name in ("FISH", "SG")]

    def lines(self) -> list[str]:
        lines = [
            "## Time-evolving Zipf, 50 M tuples",
            "",
            *prose(
                f"{self.n_tuples:,} tuples, {SIZE}, {RATE}, 1 seed. Claim: FISH's makespan is at most 1.03 × shuffle's, "
                "and its replication at most 2.2."
            ),
            *header(
                "W",
                "z",
                "FISH makespan",
                "SG makespan",
                "ratio",
                "FISH after the flip",
                "FISH replication",
                "SG replication",
                "holds",
            ),
        ]
        for n_workers in WORKERS:
            for z in SKEWS:
                fish, shuffle = (self.measured[repr(self.cell(z, n_workers, name))] for name in ("FISH", "SG"))
                ratio = fish["makespan"] / shuffle["makespan"]
                holds = ratio <= 1.03 and fish["replication"] <= 2.2
                verdict = self.claims.check(f"50 M W={n_workers} z={z}", holds)
                figures = (
                    f"{fish['makespan']:.4f}",
                    f"{shuffle['makespan']:.4f}",
                    f"{ratio:.4f}",
                    f"{fish['after']:.4f}",
                )
                held = f"{fish['replication']:.3f}", f"{shuffle['replication']:.2f}"
                lines.append(row(n_workers, z, *figures, *held, verdict))
        return [*lines, ""]


class Flip(Section):
    """How long W-C takes to notice the flip."""

    n_tuples = 50_000_000

    def cell(self, z: float, n_workers: int, name: str) -> Cell:
        return Cell(self.n_tuples, z, RIVALS[name], Settings(n_workers=n_workers))

    def cells(self) -> list[Cell]:
        return [self.cell(z, n_workers, "W-C") for n_workers in (16, 128) for z in MAIN_SKEWS]

    def lines(self) -> list[str]:
        lines = [
            "## W-C after the flip",
            "",
            *prose(
                f"{self.n_tuples:,} tuples, {SIZE}, {RATE}, 1 seed. W-C's makespan overall, in the 200 windows after the "
                "flip, in the worst of these, and how many of these have a makespan above 2; in brackets FISH's."
            ),
            *header("W", "z", "makespan", "after the flip", "worst window", "windows above 2"),
        ]
        for n_workers in (16, 128):
            for z in MAIN_SKEWS:
                rival, fish = (self.measured[repr(self.cell(z, n_workers, name))] for name in ("W-C", "FISH"))
                shown = [f"{rival[what]:.3f} ({fish[what]:.3f})" for what in ("makespan", "after", "worst")]
                lines.append(row(n_workers, z, *shown, f"{rival['slow']:.0f}"))
        return [*lines, ""]


class Speeds(Section):
    """Half of the workers twice as fast."""

    n_tuples, n_seeds = 50_000_000, 3

    def repeats(self, n_workers: int, z: float, assignment: str) -> list[Cell]:
        settings = Settings(n_workers=n_workers, speeds=(2.0, 1.0))
        return seeds(Cell(self.n_tuples, z, Fish(assignment=assignment), settings), self.n_seeds)

    def cells(self) -> list[Cell]:
        return [
            cell
            for n_workers in (16, 64)
            for z in (1.0, 1.4)
            for assignment in ("waiting-time", "count")
            for cell in self.repeats(n_workers, z, assignment)
        ]

    def lines(self) -> list[str]:
        lines = [
            "## Half of the workers twice as fast",
            "",
            *prose(
                f"{self.n_tuples:,} tuples, {SIZE}, arrivals at 0.8 of the capacity (1200 W tuples/s), mean ± spread over "
                f"{self.n_seeds} seeds. Makespan in time: assignment by waiting time (Algorithm 3; speeds are learnt from "
                "noisy reports every 10 s) and by counts of tuples. Claim: waiting time is at least 1.45 × better; 1.5 is "
                "the most there is to gain."
            ),
            *header(
                "W",
                "z",
                "by waiting time",
                "by count",
                "count / waiting time",
                "replication by waiting time",
                "by count",
                "holds",
            ),
        ]
        for n_workers in (16, 64):
            for z in (1.0, 1.4):
                wait, count = (self.repeats(n_workers, z, how) for how in ("waiting-time", "count"))
                gains = np.divide(self.values(count, "makespan"), self.values(wait, "makespan"))
                verdict = self.claims.check(f"speeds W={n_workers} z={z}", bool(gains.mean() >= 1.45))
                spans = [spread(self.values(repeats, "makespan")) for repeats in (wait, count)]
                held = [spread(self.values(repeats, "replication")) for repeats in (wait, count)]
                lines.append(row(n_workers, z, *spans, spread(gains.tolist()), *held, verdict))
        return [*lines, ""]


class Elastic(Section):
    """A worker more, or one less, in the middle of the stream."""

    n_tuples, n_seeds, z = 10_000_000, 3, 1.0

    def repeats(self, n_workers: int, hashing: str, change: str) -> list[Cell]:
        at = self.n_tuples // 2
        changes = {
            "none": (),
            "one more": (Change(at=at, add=1),),
            "one less": (Change(at=at, remove=n_workers // 2),),
        }
        settings = Settings(n_workers=n_workers, changes=changes[change])
        return seeds(Cell(self.n_tuples, self.z, Fish(hashing=hashing), settings), self.n_seeds)

    def cells(self) -> list[Cell]:
        return [
            cell
            for n_workers in (16, 64)
            for hashing in ("ring", "modulo")
            for change in ("none", "one more", "one less")
            for cell in self.repeats(n_workers, hashing, change)
        ]

    def lines(self) -> list[str]:
        lines = [
            "## A worker comes or goes",
            "",
            *prose(
                f"{self.n_tuples:,} tuples, z = {self.z}, {SIZE}, {RATE}, mean ± spread over {self.n_seeds} seeds; one "
                "worker more, or one less, from the middle on. Replication over the whole stream, and its ratio to the "
                "run without the change. Claim, for every seed: at most 1.08 with the consistent-hash ring, at least 1.5 "
                "with modulo."
            ),
            *header("W", "hashing", "change", "replication", "ratio", "makespan", "holds"),
        ]
        for n_workers in (16, 64):
            for hashing in ("ring", "modulo"):
                still = self.values(self.repeats(n_workers, hashing, "none"), "replication")
                for change in ("none", "one more", "one less"):
                    repeats = self.repeats(n_workers, hashing, change)
                    held = self.values(repeats, "replication")
                    ratios = np.divide(held, still)
                    holds = bool(ratios.max() <= 1.08) if hashing == "ring" else bool(ratios.min() >= 1.5)
                    verdict = ""
                    if change != "none":
                        verdict = self.claims.check(f"{change} W={n_workers} {hashing}", holds)
                    spans = spread(self.values(repeats, "makespan"))
                    ratio = spread(ratios.tolist())
                    lines.append(row(n_workers, hashing, change, spread(held), ratio, spans, verdict))
        return [*lines, ""]


class Latency(Section):
    """Latency and saturation rate at scale (the paper's Figures 18 to 20)."""

    n_tuples, n_seeds = 10_000_000, 3

    def names(self) -> list[str]:
        return [name for name in groupings.names() if not groupings.named(name).needs_table]

    def repeats(self, z: float, name: str) -> list[Cell]:
        settings = Settings(n_workers=128, n_sources=32)
        return seeds(Cell(self.n_tuples, z, groupings.named(name)(), settings), self.n_seeds)

    def cells(self) -> list[Cell]:
        return [cell for z in (1.0, 1.4) for name in self.names() for cell in self.repeats(z, name)]

    def lines(self) -> list[str]:
        lines = [
            "## 32 sources, 128 workers: latency and saturation rate (Figures 18–20)",
            "",
            *prose(
                f"{self.n_tuples:,} tuples, {N_KEYS:,} keys, S = 32, W = 128, windows of 320 000 tuples, arrivals at "
                f"102 400 tuples/s (0.8 of the capacity), 1 ms a tuple, 0.1 ms a partial state, mean ± spread over "
                f"{self.n_seeds} seeds. Latency in seconds; where the saturation rate is below the arrival rate, queues "
                "grow as long as the stream lasts, and latency says only how fast."
            ),
            *header(
                "z",
                "grouping",
                "latency mean",
                "p50",
                "p95",
                "p99",
                "makespan",
                "replication",
                "saturation, k tuples/s",
            ),
        ]
        for z in (1.0, 1.4):
            for name in self.names():
                repeats = self.repeats(z, name)
                waits = [f"latency_{part}" for part in ("mean", "p50", "p95", "p99")]
                rates = [rate / 1000 for rate in self.values(repeats, "saturation_rate")]
                shown = [spread(self.values(repeats, wait), ".3g") for wait in waits]
                shown += [spread(self.values(repeats, "makespan")), spread(self.values(repeats, "replication"), ".2f")]
                lines.append(row(z, name, *shown, spread(rates, ".1f")))
        return [*lines, ""]


class Ablations(Section):
    """What each part of FISH is for."""

    n_tuples, n_seeds, z, n_workers = 5_000_000, 3, 1.4, 64

    def repeats(self, grouping: Fish) -> list[Cell]:
        cell = Cell(self.n_tuples, self.z, grouping, Settings(n_workers=self.n_workers), candidates=True)
        return seeds(cell, self.n_seeds)

    def cells(self) -> list[Cell]:
        return [cell for grouping in ABLATIONS.values() for cell in self.repeats(grouping)]

    def lines(self) -> list[str]:
        lines = [
            "## Ablations",
            "",
            *prose(
                f"{self.n_tuples:,} tuples, z = {self.z}, W = {self.n_workers}, {SIZE}, {RATE}, mean ± spread over "
                f"{self.n_seeds} seeds. Candidates: the mean number of workers that a tuple could go to, from a second "
                "pass without reports of the workers."
            ),
            *header("variant", "makespan", "after the flip", "replication", "candidates a tuple"),
        ]
        for name, grouping in ABLATIONS.items():
            repeats = self.repeats(grouping)
            figures = [spread(self.values(repeats, what)) for what in ("makespan", "after", "replication")]
            lines.append(row(name, *figures, spread(self.values(repeats, "candidates"), ".2f")))
        return [*lines, ""]


def main() -> int:
    parser = cells.parser(__doc__ or "")
    parser.add_argument("--seeds", type=int, default=10, help="of the 5 M tuple runs where z is not 1.0, 1.4 or 2.0")
    args = parser.parse_args()
    claims = Claims()
    evolving = Evolving(claims, args.seeds)
    others = [kind(claims) for kind in (Long, Flip, Speeds, Elastic, Latency, Ablations)]
    wanted = [cell for section in (*others, evolving) for cell in section.cells()]
    measured = cells.measure_all(wanted, measure, processes=args.processes, keep=args.keep)
    sections = [evolving, *others]
    lines = ["# FISH", "", "`.venv/bin/python benchmarks/fish.py --write`", ""]
    for section in sections:
        section.measured = measured
        lines += section.lines()
    return cells.write("fish", lines, claims, args.write)


if __name__ == "__main__":
    sys.exit(main())
