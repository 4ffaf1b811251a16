"""How near Spillway comes to both bounds, and whether any other grouping is better in both.

    .venv/bin/python benchmarks/frontier.py [--data DIR] [--quick | --full] [--tuples N] [--keep FILE] [--write]

Spillway on every stream, with 16 to 1024 workers and 1 to 20 sources, then all groupings on the same streams, shorter
and with fewer workers (--full: all). Some twenty minutes on two cores; --quick takes one. --data adds
every Parquet file of a folder that has a column `key`. --keep stores measured cells, so that an interrupted run can go
on; --write stores the tables and the picture as benchmarks/results/frontier.md and .svg. Exits 1 where a claim fails.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

import cells
from anabranch import groupings
from anabranch.groupings import Grouping, Plan, Spillway
from anabranch.hashing import hash_keys
from anabranch.kernels import njit
from anabranch.metrics import makespan_of
from anabranch.report.palette import styles
from anabranch.simulate import Settings, simulate
from anabranch.simulate.lower_bound import bound
from anabranch.streams import (
    Alternating,
    Bursts,
    Country,
    Drifting,
    EvolvingZipf,
    LogNormal,
    Replay,
    Singletons,
    Stream,
    Zipf,
)
from cells import Claims, Figures, header, prose, row

N_KEYS = 100_000
PER_SOURCE = 10_000
TUPLES = 10_000_000
RIVAL_SOURCES = 5
# What a cell must have for the target of 1.05 in both: tuples a worker in a window, and keys a worker in the stream.
RICH_TUPLES, RICH_KEYS = 400, 25
RICH, POOR = 1.05, 1.10
# Files whose rows are sorted, which is no order of arrival.
SORTED = ("slashdot0902_edges",)
PANELS = (("Zipf z=1.0", 128), ("Zipf z=1.4", 16), ("Drifting z=1.4", 128), ("congress_words", 128))
# Streams for all groupings: a choice, since some of them are slow.
RIVALRY = (
    *(f"Zipf z={z}" for z in (0.8, 1.0, 1.4, 2.0)),
    "EvolvingZipf z=1.4",
    "LN1",
    "Country r0",
    "Country r50",
    "Drifting z=1.4",
    "Bursts z=1.2",
    "Singletons z=1.2",
    "congress_words",
    "congress_hashtags",
    "nepse_trades",
)
# Points that have their name in the picture, and where.
NAMED = {
    **dict.fromkeys(("key", "shuffle", "fish"), (7, 6, "left")),
    "partial-key": (-6, 6, "right"),
    "d-choices": (-7, -4, "right"),
    "spillway": (0, 10, "center"),
}
LISTED = ("key", "shuffle", "partial-key", "d-choices", "w-choices", "consistent", "fish")


@dataclass(frozen=True)
class Shuffled(Stream):
    """The keys of a Parquet file in random order."""

    name: ClassVar[str] = "shuffled"

    path: str

    def _read(self, seed: int, size: int, start: int, stop: int | None) -> Iterator[pa.RecordBatch]:
        keys = pq.read_table(self.path, columns=["key"])["key"].combine_chunks()
        keys = keys.take(np.random.default_rng(seed).permutation(len(keys)))[start:stop]
        return iter(pa.table({"key": keys}).to_batches(max_chunksize=size))


@dataclass(frozen=True)
class Cell:
    """One size of the edge on one stream: Spillway against the bounds, or one grouping in the simulator."""

    stream: Stream
    n_tuples: int
    n_workers: int
    n_sources: int
    grouping: str | None = None
    pooled: bool = False


class Tuples(NamedTuple):
    """Hashes of a stream's keys, and numbers of those that occur twice or more; the others have `n_repeated`."""

    keys: NDArray[np.uint64]
    ids: NDArray[np.int32]
    n_repeated: int


def synthetic(n: int) -> dict[str, Stream]:
    return {
        **{f"Zipf z={z}": Zipf(n, N_KEYS, z) for z in (0.5, 0.8, 1.0, 1.2, 1.4, 1.7, 2.0)},
        **{f"EvolvingZipf z={z}": EvolvingZipf(n, N_KEYS, z) for z in (1.0, 1.4, 2.0)},
        "LN1": LogNormal.ln1(n),
        "LN2": LogNormal.ln2(n),
        **{f"Country r{share}": Country(n, share) for share in (0, 50, 100)},
        "Drifting z=1.4": Drifting(n, N_KEYS, 1.4, every=100_000),
        "Bursts z=1.2": Bursts(n, N_KEYS, 1.2),
        "Alternating z=1.4": Alternating(n, N_KEYS, 1.4),
        "Singletons z=1.2": Singletons(n, N_KEYS, 1.2),
    }


def real(folder: Path | None) -> dict[str, Stream]:
    paths = [] if folder is None else sorted(folder.glob("*.parquet"))
    return {
        path.stem: Shuffled(str(path)) if path.stem in SORTED else Replay(str(path), key="key")
        for path in paths
        if "key" in pq.read_schema(path).names
    }


def whole_windows(cell: Cell, n: int) -> int:
    window = PER_SOURCE * cell.n_sources
    return min(n, cell.n_tuples) // window * window


@lru_cache(maxsize=1)
def load(stream: Stream, n: int) -> Tuples:
    keys = np.concatenate([hash_keys(batch["key"]) for batch in stream.batches(stop=n)])
    _, inverse, counts = np.unique(keys, return_inverse=True, return_counts=True)
    repeated = counts > 1
    n_repeated = int(repeated.sum())
    number = np.where(repeated, np.cumsum(repeated) - 1, n_repeated).astype(np.int32)
    return Tuples(keys, number[inverse], n_repeated)


def measure(cell: Cell) -> Figures:
    return measure_spillway(cell) if cell.grouping is None else measure_rival(cell)


def measure_rival(cell: Cell) -> Figures:
    settings = Settings(cell.n_workers, cell.n_sources, limit=cell.n_tuples, reset_loads=cell.pooled)
    result = simulate(cell.stream, groupings.parse(cell.grouping or ""), settings)
    return {"makespan": result.makespan, "replication": result.replication}


def measure_spillway(cell: Cell) -> Figures:
    tuples = load(cell.stream, cell.n_tuples)
    limit = whole_windows(cell, len(tuples.keys))
    figures: Figures = {"tuples": limit}
    for way in ways(cell.n_sources):
        figures |= {f"{way} {name}": value for name, value in routed(Spillway(), tuples, cell, way == "pooled").items()}
    spans = [figures[f"{way} makespan"] for way in ways(cell.n_sources)]
    settings = Settings(cell.n_workers, cell.n_sources, limit=limit)
    window = PER_SOURCE * cell.n_sources
    poor = POOR * -(-window // cell.n_workers) * cell.n_workers / window
    least = bound(cell.stream, settings, makespans=[RICH, poor, *spans])
    figures |= {"keys": least.keys, "least makespan": least.makespan}
    for kind, at in zip(("rich", "other"), least.replications[1:3], strict=True):
        figures |= {f"{kind} least": at.replication_mean, f"{kind} needed": at.replication_total}
    for way, at in zip(ways(cell.n_sources), least.replications[3:], strict=True):
        figures[f"{way} replication"] = figures.pop(f"{way} pairs") / least.keys
        figures[f"{way} least replication"] = at.replication_mean
    return figures


def ways(n_sources: int) -> tuple[str, ...]:
    """One source has nobody to pool a plan with."""
    return ("alone",) if n_sources == 1 else ("alone", "pooled")


def routed(grouping: Grouping, tuples: Tuples, cell: Cell, pooled: bool) -> Figures:
    """What `simulate` does, without clocks: as much as Spillway needs where workers are equally fast."""
    routers = grouping.build_all(cell.n_sources, cell.n_workers)
    window = PER_SOURCE * cell.n_sources
    n = whole_windows(cell, len(tuples.keys))
    held = np.zeros((tuples.n_repeated * cell.n_workers >> 3) + 1, np.uint8)
    pairs, spans = 0, []
    plan: Plan | None = None
    for begin in range(0, n, window):
        loads = np.zeros(cell.n_workers, np.int64)
        for source, router in enumerate(routers):
            mine = slice(begin + source, begin + window, cell.n_sources)
            workers = router.route(tuples.keys[mine])
            pairs += hold(tuples.ids[mine], workers, tuples.n_repeated, loads, held)
        spans.append(makespan_of(loads))
        if pooled:
            plan = grouping.fold(plan, [router.report() for router in routers])
            for router in routers:
                router.begin_window()
                router.follow(plan)
    return {"makespan": float(np.mean(spans)), "worst": max(spans), "pairs": pairs}


@njit(cache=True)
def hold(
    ids: NDArray[np.int32],
    workers: NDArray[np.int32],
    n_repeated: int,
    loads: NDArray[np.int64],
    held: NDArray[np.uint8],
) -> int:
    """Add up loads, and note pairs of key and worker in a bitmap; the number of new pairs."""
    new = 0
    for i in range(len(ids)):
        loads[workers[i]] += 1
        if ids[i] == n_repeated:
            new += 1
            continue
        pair = np.int64(ids[i]) * len(loads) + workers[i]
        bit = np.uint8(1 << (pair & 7))
        if not held[pair >> 3] & bit:
            held[pair >> 3] |= bit
            new += 1
    return new


class Against:
    """Spillway against its targets."""

    def __init__(self, claims: Claims, streams: dict[str, Stream], args: argparse.Namespace) -> None:
        self.claims, self.streams, self.args = claims, streams, args
        self.measured: dict[str, Figures] = {}
        self.missed: list[str] = []
        self.met: dict[tuple[int, str, bool], list[bool]] = {}
        self.hopeless: dict[tuple[int, str, bool], int] = {}

    def cell(self, stream: str, n_workers: int, n_sources: int) -> Cell:
        return Cell(self.streams[stream], self.args.tuples, n_workers, n_sources)

    def cells(self) -> list[Cell]:
        sizes = [(n_workers, n_sources) for n_workers in self.args.workers for n_sources in self.args.sources]
        return [self.cell(stream, *size) for stream in self.streams for size in sizes]

    def lines(self) -> list[str]:
        """The tables come last, but are made first: they find out which cells miss."""
        tables = [line for n in self.args.sources for way in ways(n) for line in self.table(n, way)]
        return [*self.summary(), *self.misses(), *tables]

    def summary(self) -> list[str]:
        columns = "meet the target", "all do", "no grouping could"
        lines = header("S", "plans", *(f"{kind} cells: {column}" for kind in ("rich", "other") for column in columns))
        for n_sources in self.args.sources:
            for way in ways(n_sources):
                entries = []
                for kind in ("rich", "other"):
                    met = self.met.get((n_sources, way, kind == "rich"), [])
                    verdict = self.claims.check(f"{kind} cells, S={n_sources} {way}", all(met))
                    hopeless = self.hopeless.get((n_sources, way, kind == "rich"), 0)
                    entries += [f"{sum(met)} of {len(met)}", verdict, str(hopeless)]
                lines.append(row(n_sources, way, *entries))
        return ["## Spillway against its targets", "", *prose(TARGETS), *lines, ""]

    def misses(self) -> list[str]:
        columns = ("cell", "tuples a worker", "keys a worker", "makespan", "least", "replication", "least", "× least")
        columns += "asked", "needed at least"
        return ["## Cells that miss the target", "", *header(*columns), *self.missed, ""]

    def table(self, n_sources: int, way: str) -> list[str]:
        window = PER_SOURCE * n_sources
        least = [f"W={w} ({-(-window // w) * w / window:.3f})" for w in self.args.workers]
        title = f"## {n_sources} source{'s' * (n_sources > 1)}" + f", {way}" * (n_sources > 1)
        lines = [title, "", *header("stream", "M tuples", "keys", *least)]
        for stream in self.streams:
            found = [self.measured[repr(self.cell(stream, w, n_sources))] for w in self.args.workers]
            shown = [self.entry(stream, w, n_sources, way) for w in self.args.workers]
            lines.append(row(stream, f"{found[0]['tuples'] / 1e6:.2f}", f"{found[0]['keys']:,.0f}", *shown))
        return [*lines, ""]

    def entry(self, stream: str, n_workers: int, n_sources: int, way: str) -> str:
        found = self.measured[repr(self.cell(stream, n_workers, n_sources))]
        span, replication = found[f"{way} makespan"], found[f"{way} replication"]
        least_span, least = found["least makespan"], found[f"{way} least replication"]
        a_worker, keys = PER_SOURCE * n_sources / n_workers, found["keys"] / n_workers
        rich = a_worker >= RICH_TUPLES and keys >= RICH_KEYS
        met = max(span, replication) <= RICH if rich else max(span / least_span, replication / least) <= POOR
        self.met.setdefault((n_sources, way, rich), []).append(met)
        name = f"{stream} W={n_workers} S={n_sources}{' pooled' * (way == 'pooled')}"
        if not met:
            far = f"{span / least_span:.2f}, {replication / least:.2f}"
            sizes = f"{a_worker:,.0f}", f"{keys:,.1f}"
            figures = f"{span:.3f}", f"{least_span:.3f}", f"{replication:.3f}", f"{least:.3f}", far
            asked, needed = (
                (RICH, found["rich needed"]) if rich else (POOR * found["other least"], found["other needed"])
            )
            hopeless = needed > asked
            self.hopeless[n_sources, way, rich] = self.hopeless.get((n_sources, way, rich), 0) + hopeless
            figures += f"{asked:.3f}", f"**{needed:.3f}**" if hopeless else f"{needed:.3f}"
            self.missed.append(row(f"{name}{' (rich)' * rich}", *sizes, *figures))
        text = f"{span:.3f} · {replication:.3f} ({least:.3f})"
        return (text if met else f"**{text}**") + "°" * (not rich)


TARGETS = (
    "A cell is rich where a window has at least 400 tuples a worker and the stream at least 25 keys a worker: there "
    "makespan and replication should be at most 1.05. Elsewhere both should be at most 1.10 × their bounds. The bound on "
    "the makespan is ⌈n/W⌉ W / n for windows of n tuples; that on the replication is for the makespan that Spillway has "
    "(`anabranch bound`, replication_mean). Windows have 10 000 tuples a source; whole windows count. Pooled: a plan is "
    "folded from all sources between windows, as on Spark. Entries of the tables below are makespan · replication (its "
    "bound), with the bound on the makespan in the head; bold misses the target, ° is not rich. Asked is the replication "
    "that the target allows at the largest makespan that it allows; needed is what every grouping with that makespan "
    "has at least (replication_total), be it one that knows the future. Where more is needed than asked, no grouping "
    "could meet the target with that makespan."
)


class Rivals:
    """All groupings on the same streams."""

    def __init__(self, claims: Claims, streams: dict[str, Stream], args: argparse.Namespace) -> None:
        self.claims, self.streams, self.args = claims, streams, args
        self.measured: dict[str, Figures] = {}
        self.sizes = [(w, s) for w in args.rival_workers for s in args.rival_sources]
        self.ours = ["spillway", "spillway pooled"]
        self.others = [
            name for name in groupings.names() if name != "spillway" and not groupings.named(name).needs_table
        ]

    def cell(self, stream: str, size: tuple[int, int], name: str) -> Cell:
        grouping, _, pooled = name.partition(" ")
        return Cell(self.streams[stream], self.args.rival_tuples, *size, grouping, bool(pooled))

    def cells(self) -> list[Cell]:
        names = [*self.ours, *self.others]
        return [self.cell(stream, size, name) for stream in self.streams for size in self.sizes for name in names]

    def point(self, stream: str, size: tuple[int, int], name: str) -> tuple[float, float]:
        found = self.measured[repr(self.cell(stream, size, name))]
        return found["makespan"], found["replication"]

    def lines(self) -> list[str]:
        return [*self.by_grouping(), *self.by_stream()]

    def by_grouping(self) -> list[str]:
        columns = ("makespan: median", "worst", "replication: median", "worst")
        wins_of = "better than Spillway in makespan", "in replication", "in both"
        lines = [
            "## All groupings",
            "",
            *prose(
                f"{len(self.streams)} streams, W = {listed(self.args.rival_workers)}, S = "
                f"{listed(self.args.rival_sources)}, {self.args.rival_tuples:,} tuples where the stream has them, "
                "`simulate` with its defaults (workers of equal speed, reported with 5 % noise). Claim: none is at "
                "least as good as Spillway alone in both and better in one."
            ),
            *header("grouping", *columns, *wins_of),
        ]
        cases = [(stream, size) for stream in self.streams for size in self.sizes]
        where: list[str] = []
        for name in (*self.ours, *self.others):
            points = np.array([self.point(*case, name) for case in cases])
            ours = np.array([self.point(*case, "spillway") for case in cases])
            both: NDArray[np.bool_] = np.all(points <= ours, axis=1) & np.any(points < ours, axis=1)
            if name in self.others:
                self.claims.check(f"{name} is nowhere better in both", not both.any())
                found = zip(cases, both, strict=True)
                where += [f"{name} on {case[0]} W={case[1][0]} S={case[1][1]}" for case, better in found if better]
            shown = [f"{take(points[:, axis]):.3f}" for axis in (0, 1) for take in (np.median, np.max)]
            wins = [*(points < ours).sum(axis=0), both.sum()]
            lines.append(row(name, *shown, *(wins if name != "spillway" else ("", "", ""))))
        return [*lines, "", *prose(f"Better in both than Spillway alone: {'; '.join(where) or 'none'}.")]

    def by_stream(self) -> list[str]:
        names = [*self.ours, *LISTED]
        lines = ["## Makespan · replication by stream", "", *header("stream", "W", "S", *names)]
        for stream in self.streams:
            for size in self.sizes:
                points = [self.point(stream, size, name) for name in names]
                lines.append(row(stream, *size, *(f"{span:.2f} · {held:.2f}" for span, held in points)))
        return [*lines, ""]


def listed(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))


def noise(workers: Sequence[int]) -> list[str]:
    """What chance costs in windows of one source without skew: an estimate that the bound does not know."""
    columns = (
        "W",
        "tuples a worker",
        "makespan",
        "load by unsplit keys",
        "tuples of split keys",
        "split keys, at least",
    )
    lines = [
        "## What chance costs: Zipf z=0.5, windows of 10 000 tuples",
        "",
        *prose(
            "Keys on one worker give it a Poisson load that nobody can change. The mean of the largest of W such loads "
            "must be within 1.10 × the least makespan, so their own mean must be lower; the other tuples belong to "
            "split keys. The m hottest of n keys have √(m/n) of all tuples."
        ),
        *header(*columns),
    ]
    for n_workers in workers:
        mean = PER_SOURCE / n_workers
        span = POOR * np.ceil(mean) / mean
        unsplit = largest_mean(span * mean, n_workers)
        share = max(0.0, 1 - unsplit / mean)
        shown = f"{mean:.1f}", f"{span:.3f}", f"{min(unsplit, mean):.1f}", f"{share:.1%}", f"{share**2:.1%}"
        lines.append(row(n_workers, *shown))
    return [*lines, ""]


def changing(against: Against) -> list[str]:
    """The bound where every window is held to the makespan: on streams that change it is far above that for the mean."""
    lines = [
        "## Streams that change, 1 source",
        "",
        *prose(
            "The bound on the replication for a mean makespan does not add up windows that have different hot keys. The "
            "one for which no window may be above 1.10 × the least makespan does."
        ),
        *header("stream", "W", "makespan", "replication", "bound for the mean", "bound for every window"),
    ]
    for stream in ("Drifting z=1.4", "Bursts z=1.2"):
        for n_workers in against.args.workers:
            cell = against.cell(stream, n_workers, 1)
            found = against.measured[repr(cell)]
            settings = Settings(n_workers, 1, limit=int(found["tuples"]))
            at = bound(cell.stream, settings, makespans=[POOR * found["least makespan"]]).replications[-1]
            names = "alone makespan", "alone replication", "alone least replication"
            lines.append(row(stream, n_workers, *(f"{found[name]:.3f}" for name in names), f"{at.replication:.3f}"))
    return [*lines, ""]


def largest_mean(limit: float, n_workers: int) -> float:
    """Mean of Poisson loads of which the largest of W is `limit` on average."""
    counts = np.arange(int(3 * limit) + 50)
    log_factorials = np.cumsum(np.log(np.maximum(counts, 1)))
    low, high = 0.0, limit
    for _ in range(50):
        mean = (low + high) / 2
        below = np.cumsum(np.exp(counts * np.log(mean) - mean - log_factorials))
        within = float(np.sum(1 - np.minimum(below, 1) ** n_workers)) <= limit
        low, high = (mean, high) if within else (low, mean)
    return low


def agreement(claims: Claims) -> list[str]:
    """The loop above against the simulator, where workers report their speeds without noise."""
    stream = Zipf(1_000_000, N_KEYS, 1.4)
    cell = Cell(stream, 1_000_000, 16, 5)
    ours = measure_spillway(cell)
    same = True
    for way in ways(cell.n_sources):
        result = simulate(stream, Spillway(), Settings(16, 5, report_noise=0.0, reset_loads=way == "pooled"))
        found = ours[f"{way} makespan"], ours[f"{way} replication"]
        same &= bool(np.allclose(found, (result.makespan, result.replication), rtol=1e-12))
    verdict = claims.check("the same as simulate()", same)
    return [f"The same makespan and replication as `simulate` on Zipf z=1.4, W=16, S=5, 1 M tuples: {verdict}.", ""]


def draw(rivals: Rivals, path: Path) -> None:
    """Makespan over replication, a panel a stream."""
    import matplotlib.pyplot as plt

    # The same figures give the same file.
    plt.rcParams["svg.hashsalt"] = "frontier"
    size_of = {w: (w, RIVAL_SOURCES) for w in rivals.args.rival_workers}
    panels = [(s, size_of[w]) for s, w in PANELS if s in rivals.streams and w in size_of]
    figure, grid = plt.subplots(2, 2, figsize=(11, 8.4), layout="constrained")
    names = [*rivals.others, *rivals.ours]
    for axes, (stream, size) in zip(grid.flat, panels, strict=False):
        draw_bound(axes, rivals, stream, size)
        for name in names:
            draw_point(axes, name, *rivals.point(stream, size, name))
        finish(axes, f"{stream}, {size[0]} workers")
    for axes in grid.flat[len(panels) :]:
        axes.set_axis_off()
    handles, labels = grid.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=6, frameon=False, fontsize=9)
    figure.suptitle("Makespan over replication: the lower left corner is best")
    figure.savefig(path, metadata={"Date": None})


def draw_bound(axes: Any, rivals: Rivals, stream: str, size: tuple[int, int]) -> None:
    grid = 1 + np.geomspace(1e-4, size[0], 60)
    settings = Settings(*size, limit=rivals.args.rival_tuples)
    least = bound(rivals.streams[stream], settings, makespans=grid.tolist())
    spans = [least.makespan, *grid[grid > least.makespan]]
    held = [at.replication_mean for at in least.replications if at.makespan >= least.makespan][-len(spans) :]
    axes.fill_betweenx(excess(spans), -1, excess(held), color="#EFEFEF", lw=0)
    axes.axhspan(-1, least.makespan - 1, color="#EFEFEF", lw=0)
    axes.plot(excess(held), excess(spans), color="#262626", lw=1, label="bound: none is left of it")


def excess(values: Sequence[float]) -> NDArray[np.float64]:
    return np.asarray(values, dtype=np.float64) - 1


def draw_point(axes: Any, name: str, span: float, replication: float) -> None:
    grouping = name.partition(" ")[0]
    own, pooled = grouping == "spillway", " " in name
    shape = {"marker": "D" if pooled else "*", "s": 60 if pooled else 190} if own else {"marker": "o", "s": 42}
    at = replication - 1, span - 1
    colour = styles([grouping])[grouping].colour
    axes.scatter(*at, color=colour, label=name, zorder=3 + own, edgecolors="white", lw=0.7, **shape)
    if name in NAMED:
        x, y, side = NAMED[name]
        place = {"xytext": (x, y), "textcoords": "offset points", "ha": side}
        axes.annotate(name, at, **place, fontsize=8, color=colour, zorder=5)


def finish(axes: Any, title: str) -> None:
    """Distances from 1 on a logarithmic scale, labelled with the values themselves."""
    for axis, scale, floor in ((axes.xaxis, axes.set_xscale, 1e-3), (axes.yaxis, axes.set_yscale, 1e-2)):
        scale("symlog", linthresh=floor, linscale=0.4)
        ticks = [tick for tick in (0, 0.001, 0.01, 0.1, 1, 9, 99) if tick == 0 or tick >= floor]
        axis.set_ticks(ticks, [f"{1 + tick:g}" for tick in ticks])
        axis.set_ticks([], minor=True)
    # Room below 1, so that a point at 1 is not cut.
    axes.set_xlim(-0.35e-3, 199)
    axes.set_ylim(-0.35e-2, 199)
    axes.grid(color="#E4E4E4", lw=0.6)
    axes.set_axisbelow(True)
    axes.set(title=title, xlabel="replication (states a key)", ylabel="makespan")


def options() -> argparse.Namespace:
    parser = cells.parser(__doc__ or "")
    parser.add_argument("--data", type=Path, help="folder of Parquet files with a column `key`: real streams")
    parser.add_argument("--tuples", type=int, default=TUPLES, help="of a stream, for Spillway")
    parser.add_argument("--rival-tuples", type=int, default=2_000_000, help="of a stream, for all groupings")
    parser.add_argument("--quick", action="store_true", help="1 M tuples, few sizes")
    parser.add_argument("--full", action="store_true", help="all groupings with all tuples and sizes: hours")
    args = parser.parse_args()
    args.workers, args.sources = (16, 64, 128, 256, 1024), (1, 5, 20)
    args.rival_workers, args.rival_sources = (16, 128), (RIVAL_SOURCES,)
    if args.quick:
        args.tuples, args.workers, args.sources = min(args.tuples, 1_000_000), (16, 128), (1, 5)
        args.rival_tuples = min(args.rival_tuples, 500_000)
    if args.full:
        args.rival_tuples, args.rival_workers, args.rival_sources = args.tuples, args.workers, args.sources
    return args


def main() -> int:
    args = options()
    claims = Claims()
    against = Against(claims, synthetic(args.tuples) | real(args.data), args)
    streams = synthetic(args.rival_tuples) | real(args.data)
    rivals = Rivals(
        claims, streams if args.full else {name: streams[name] for name in RIVALRY if name in streams}, args
    )
    wanted = [*rivals.cells(), *against.cells()]
    measured = cells.measure_all(wanted, measure, processes=min(2, args.processes), keep=args.keep)
    against.measured = rivals.measured = measured
    tables = [*against.lines(), *noise(args.workers), *changing(against), *rivals.lines(), *agreement(claims)]
    flags = (
        f" --tuples {args.tuples}" * (args.tuples != TUPLES and not args.quick)
        + " --quick" * args.quick
        + " --full" * args.full
        + " --data DIR" * (args.data is not None)
    )
    lines = ["# Spillway: the frontier", "", f"`.venv/bin/python benchmarks/frontier.py{flags} --write`", ""]
    if args.write:
        draw(rivals, Path(__file__).parent / "results" / "frontier.svg")
        lines += ["![Makespan over replication of all groupings, and the bound](frontier.svg)", ""]
    return cells.write("frontier", [*lines, *tables], claims, args.write)


if __name__ == "__main__":
    sys.exit(main())
