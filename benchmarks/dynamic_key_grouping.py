"""Dynamic key grouping on the paper's country streams.

    .venv/bin/python benchmarks/dynamic_key_grouping.py [--processes 2] [--keep FILE] [--write]

Table 1, the load of a stream with one country in 80 % of the tuples, and the sweep over the skew. A few minutes on two
cores. --keep stores measured cells, so that an interrupted run can go on; --write stores the tables as
benchmarks/results/dynamic_key_grouping.md. Exits 1 where a claim fails.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

import numpy as np

import cells
from anabranch.groupings import (
    DistributionAwareKeyGrouping,
    DynamicKeyGrouping,
    Grouping,
    KeyGrouping,
    PartialKeyGrouping,
)
from anabranch.groupings.schemes.dynamic_key import DynamicKeyRouter
from anabranch.simulate import Settings, simulate, source
from anabranch.simulate.edge import Edge
from anabranch.streams import Country
from cells import Claims, Figures, header, prose, row, spread

# Table 1 of the paper: threshold in percent and most machines of a key, by workers.
TABLE_1 = {5: (24.47, 5), 10: (13.16, 8), 20: (7.24, 14), 50: (3.41, 30), 100: (2.00, 51)}
RIVALS: dict[str, Grouping] = {
    "KG": KeyGrouping(),
    "PKG": PartialKeyGrouping(),
    "DKG": DynamicKeyGrouping(),
    "DKG, reference": DynamicKeyGrouping(whole_percents=True, decay=1, check_s=60),
    "distribution-aware": DistributionAwareKeyGrouping(),
}
PUBLISHED = {"KG": 24.03, "PKG": 15.24, "DKG, reference": 4.34}
N_SEEDS = 10
RATE = 10_000
COMMON = "204 keys, W = 10, S = 10, arrivals at 10 000 tuples/s of virtual time, windows of 100 000 tuples"


@dataclass(frozen=True)
class Cell:
    """One grouping on one country stream."""

    stream: Country
    grouping: Grouping
    seed: int = 0


def measure(cell: Cell) -> Figures:
    settings = Settings(n_workers=10, n_sources=10, rate=RATE, seed=cell.seed)
    result = simulate(cell.stream, cell.grouping, settings)
    figures = {name: float(getattr(result, name)) for name in ("load_stddev", "makespan", "replication")}
    late = result.windows.makespan[result.windows.tuples > cell.stream.n_tuples // 2]
    figures["makespan_late"] = float(late.mean())
    if isinstance(cell.grouping, DynamicKeyGrouping):
        edge = Edge(cell.grouping, settings.n_sources, settings.n_workers, settings.seed)
        for tuples in source.read(cell.stream, settings):
            edge.route(tuples)
        routers = [router for router in edge.routers if isinstance(router, DynamicKeyRouter)]
        figures["scale_outs"] = sum(router.scale_outs for router in routers)
        figures["scale_downs"] = sum(router.scale_downs for router in routers)
    return figures


def skewed(seed: int, grouping: Grouping) -> Cell:
    return Cell(Country(n_tuples=10_000_000, skew_percent=80), grouping, seed)


def sweep() -> dict[str, Country]:
    """The streams of the paper's Table 2."""
    streams = {f"r{skew}": Country(n_tuples=2_000_000, skew_percent=skew) for skew in range(0, 101, 10)}
    return {**streams, "half-skew r80": Country(n_tuples=2_000_000, skew_percent=80, half_skew=True)}


def table_1(claims: Claims) -> list[str]:
    lines = [
        "## Table 1",
        "",
        *prose("Threshold from which a key is scaled out, in percent of the load, and most machines of a key."),
        *header("W", "threshold", "the paper", "most machines", "the paper", "equal"),
    ]
    grouping = DynamicKeyGrouping()
    for n_workers, (threshold, machines) in TABLE_1.items():
        ours = grouping.threshold(n_workers), grouping.max_workers(n_workers)
        equal = abs(ours[0] - threshold) <= 0.005 and ours[1] == machines
        verdict = claims.check(f"Table 1 W={n_workers}", equal)
        lines.append(row(n_workers, f"{ours[0]:.2f}", f"{threshold:.2f}", ours[1], machines, verdict))
    return [*lines, ""]


def hot_country(claims: Claims, measured: dict[str, Figures]) -> list[str]:
    lines = [
        "## One country in 80 % of the tuples",
        "",
        *prose(
            f"10 000 000 tuples, {COMMON}, mean ± spread over {N_SEEDS} seeds. The load stddev is in percent points of "
            "the whole stream's load. Claims: KG within 1 of the published 24.03, PKG within 1 of 15.24, DKG at most 5 "
            "for every seed. Replication is the paper's DistCost; scalings are summed over the sources."
        ),
        *header(
            "grouping",
            "load stddev",
            "published",
            "makespan",
            "makespan, last half",
            "replication",
            "scale-outs",
            "scale-downs",
            "holds",
        ),
    ]
    for name, grouping in RIVALS.items():
        figures = [measured[repr(skewed(seed, grouping))] for seed in range(N_SEEDS)]
        loads = [each["load_stddev"] for each in figures]
        verdict = ""
        if name == "DKG":
            verdict = claims.check("DKG at most 5", max(loads) <= 5)
        elif name in ("KG", "PKG"):
            verdict = claims.check(f"{name} as published", abs(np.mean(loads) - PUBLISHED[name]) <= 1)
        scalings = [
            spread([each[what] for each in figures], ".1f") if what in figures[0] else ""
            for what in ("scale_outs", "scale_downs")
        ]
        lines.append(
            row(
                name,
                spread(loads, ".2f"),
                PUBLISHED.get(name, ""),
                spread([each["makespan"] for each in figures]),
                spread([each["makespan_late"] for each in figures]),
                spread([each["replication"] for each in figures]),
                *scalings,
                verdict,
            )
        )
    return [
        *lines,
        "",
        *prose(
            "DKG's makespan is far from 1 although its load stddev is small. For the first 60 s no key is old, and DKG is "
            "PKG. Loads are counted over the whole stream, so a worker that a key is scaled out to has the least load and "
            "gets all of its tuples until it has caught up: at times the reference code sends the hot country, 80 % of "
            "the tuples, to one worker. And scaling ends near the threshold of 13.16 %, with the hot country on about six "
            "of ten workers: 80/6 = 13.3 % is a makespan of 1.33. Near that point keys gain and lose a worker all the "
            "time. Distribution-aware key grouping does not split a key, so the hot country's worker keeps 80 % of the "
            "load; its replicas come from the learning phase, which routes by hash."
        ),
    ]


def skews(measured: dict[str, Figures]) -> list[str]:
    lines = [
        "## Skew sweep (Figures 10 and 11)",
        "",
        *prose(
            f"2 000 000 tuples, {COMMON}, 1 seed: load stddev in percent points, and replication (DistCost) in brackets. "
            "At this rate the stream lasts 200 s, and no key is old in the first 60 s; the reference code, which checks a "
            "key once in 60 s, has then scaled a key out three times at most, so it is further from balance here than "
            "above. In the half-skew stream the hot country has 80 % of the first half, and no more than the others of "
            "the second."
        ),
        *header("stream", *RIVALS),
    ]
    for name, stream in sweep().items():
        figures = [measured[repr(Cell(stream, grouping))] for grouping in RIVALS.values()]
        lines.append(row(name, *(f"{each['load_stddev']:.2f} ({each['replication']:.2f})" for each in figures)))
    return [*lines, ""]


def main() -> int:
    args = cells.parser(__doc__ or "").parse_args()
    claims = Claims()
    wanted = [skewed(seed, grouping) for seed in range(N_SEEDS) for grouping in RIVALS.values()]
    wanted += [Cell(stream, grouping) for stream in sweep().values() for grouping in RIVALS.values()]
    measured = cells.measure_all(wanted, measure, processes=args.processes, keep=args.keep)
    lines = [
        "# Dynamic key grouping",
        "",
        "`.venv/bin/python benchmarks/dynamic_key_grouping.py --write`",
        "",
        *table_1(claims),
        *hot_country(claims, measured),
        *skews(measured),
    ]
    return cells.write("dynamic_key_grouping", lines, claims, args.write)


if __name__ == "__main__":
    sys.exit(main())
