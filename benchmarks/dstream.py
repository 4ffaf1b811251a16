"""DStream: the coin synopsis' theorems, its predictor beside others, and the grouping.

    .venv/bin/python benchmarks/dstream.py [--data DIR] [--processes 2] [--keep FILE] [--write]

DIR holds Parquet files with a column `key`, in arrival order; without --data the predictors run on synthetic streams
only. A file with a column `src` is a graph: its rows are shuffled first. About a quarter of an hour on two cores.
--keep stores measured cells, so that an interrupted run can go on; --write stores the tables as
benchmarks/results/dstream.md. Exits 1 where a claim fails.
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numba import njit
from numpy.typing import NDArray

import cells
from anabranch import predictors
from anabranch.containers import slot_table
from anabranch.groupings import DStream, Grouping, KeyGrouping, PartialKeyGrouping
from anabranch.hashing import hash_keys
from anabranch.predictors import Predictor, evaluate
from anabranch.simulate import Settings, simulate
from anabranch.sketches import CoinSynopsis, coin_synopsis
from anabranch.sketches.coin_synopsis import Coin, CoinArrays
from anabranch.streams import Drifting, Replay, Stream, Zipf
from cells import Claims, Figures, header, prose, row, spread

# Table I of the paper: chance in percent that a key has occurred so often when it turns hot, r = 10.
TABLE_I = {128: 99.28, 256: 97.35, 512: 90.98, 1024: 73.53}
N_TRIALS = 50_000
N_KEYS = 100_000
N_SEEDS = 10
SKEWS = (0.8, 1.0, 1.2, 1.4, 1.6, 1.8, 2.0)
PREDICTORS: dict[str, type[Predictor]] = {
    kind.name: kind
    for kind in map(predictors.__dict__.get, predictors.__all__)
    if isinstance(kind, type) and issubclass(kind, Predictor) and kind is not Predictor
}
SYNTHETIC: dict[str, Stream] = {
    **{f"Zipf z={z}": Zipf(n_tuples=2_000_000, n_keys=N_KEYS, z=z) for z in (0.8, 1.0, 1.4)},
    "drifting z=1.2": Drifting(n_tuples=2_000_000, n_keys=N_KEYS, z=1.2, every=100_000),
}
WINDOW = 50_000
LIMIT = 3_000_000
GROUPINGS: dict[str, Grouping] = {
    "KG": KeyGrouping(),
    "PKG": PartialKeyGrouping(),
    "DStream": DStream(),
    "delay 1 k": DStream(delay=1000),
    "delay 10 k": DStream(delay=10_000),
    "local": DStream(synopsis="local"),
}


@dataclass(frozen=True)
class TableI:
    """A key alone, without decline."""

    def measure(self) -> Figures:
        keys = np.full(max(TABLE_I), 7, dtype=np.uint64)
        late = dict.fromkeys(TABLE_I, 0)
        for seed in range(N_TRIALS):
            synopsis = CoinSynopsis(r=10, p=0, seed=seed)
            done = 0
            for times in TABLE_I:
                synopsis.update(keys[done : times - 1])
                done = times - 1
                late[times] += not synopsis.is_hot(keys[:1])[0]
        return {str(times): 100 * count / N_TRIALS for times, count in late.items()}


@dataclass(frozen=True)
class Presence:
    """How much of the time keys of known rates are in the synopsis."""

    seed: int
    p: float = 0.01
    r: int = 6
    n_updates: int = 200_000

    def measure(self) -> Figures:
        synopsis = CoinSynopsis(r=self.r, p=self.p, seed=self.seed)
        rates = np.array([4 * self.p, 2 * self.p, 0.1 * self.p])
        n_tuples = self.n_updates << self.r
        rng = np.random.default_rng(self.seed)
        present = np.zeros(len(rates), dtype=np.int64)
        updates = np.zeros(1, dtype=np.int64)
        block = 1 << 20
        for start in range(0, n_tuples, block):
            # Ranks of the watched keys by their rates; every other tuple has a key of its own.
            keys = np.searchsorted(np.cumsum(rates), rng.random(min(block, n_tuples - start))).astype(np.uint64)
            rare = keys == len(rates)
            keys[rare] = np.arange(start, start + len(keys), dtype=np.uint64)[rare] + np.uint64(1000)
            _watch(keys, synopsis.state, synopsis.coin, round(10 / self.p), present, updates)
        return {name: float(n / updates[0]) for name, n in zip(("4p", "2p", "0.1p"), present, strict=True)}


@njit
def _watch(
    new: NDArray[np.uint64],
    synopsis: CoinArrays,
    coin: Coin,
    warm_up: int,
    present: NDArray[np.int64],
    updates: NDArray[np.int64],
) -> None:
    """Count, after each update from the `warm_up`-th on, which of the keys 0, 1, … are in the synopsis."""
    keys, bits, hot, table, where, sizes, draws = synopsis
    r = coin.r
    mask = (np.uint64(1) << np.uint64(r)) - np.uint64(1)
    changes = np.empty(len(keys) + 1, dtype=np.uint64)
    for i in range(len(new)):
        number = coin_synopsis.draw(draws, coin.seed)
        if number & mask != mask:
            continue
        heads = coin_synopsis.heads_of(number >> np.uint64(r))
        coin_synopsis.record(keys, bits, hot, table, where, sizes, draws, coin, new[i], heads, changes)
        if sizes[coin_synopsis.UPDATES] > warm_up:
            updates[0] += 1
            for key in range(len(present)):
                present[key] += table[slot_table.place_of(np.uint64(key), keys, table)] != 0


@dataclass(frozen=True)
class Size:
    """Keys in the synopsis, sampled every 1000 tuples."""

    p: float
    z: float
    seed: int

    def measure(self) -> Figures:
        synopsis = CoinSynopsis(r=6, p=self.p, seed=self.seed)
        sizes = []
        for batch in Zipf(n_tuples=5_000_000, n_keys=N_KEYS, z=self.z).batches(seed=self.seed):
            keys = hash_keys(batch.column("key"))
            for start in range(0, len(keys), 1000):
                synopsis.update(keys[start : start + 1000])
                sizes.append(len(synopsis))
        return {"mean": float(np.mean(sizes)), "most": float(max(sizes))}


@dataclass(frozen=True)
class Precision:
    """How many of the appended keys had occurred often enough."""

    z: float
    drifting: bool
    seed: int
    r: int = 6

    def measure(self) -> Figures:
        synopsis = CoinSynopsis(r=self.r, p=0.01, seed=self.seed)
        size = {"n_tuples": 5_000_000, "n_keys": N_KEYS, "z": self.z}
        stream = Drifting(**size, every=100_000) if self.drifting else Zipf(**size)
        counts = np.zeros((2, N_KEYS + 1), dtype=np.int64)
        tally = np.zeros(3, dtype=np.int64)
        for batch in stream.batches(seed=self.seed):
            keys = np.asarray(batch.column("key")).astype(np.uint64)
            _count_appended(keys, synopsis.state, synopsis.coin, counts, tally)
        appended, often, anew = tally.tolist()
        return {"appended": appended, "precision": often / appended, "anew": anew / appended}


@njit
def _count_appended(
    new: NDArray[np.uint64],
    synopsis: CoinArrays,
    coin: Coin,
    counts: NDArray[np.int64],
    tally: NDArray[np.int64],
) -> None:
    """Exact counts per key, of the whole stream and since it was last deleted; `tally` counts appended keys."""
    keys, bits, hot, table, where, sizes, draws = synopsis
    r = coin.r
    mask = (np.uint64(1) << np.uint64(r)) - np.uint64(1)
    enough = 1 << (r - 3)
    changes = np.empty(len(keys) + 1, dtype=np.uint64)
    for i in range(len(new)):
        key = np.int64(new[i])
        counts[:, key] += 1
        number = coin_synopsis.draw(draws, coin.seed)
        if number & mask != mask:
            continue
        heads = coin_synopsis.heads_of(number >> np.uint64(r))
        appended, deleted = coin_synopsis.record(
            keys, bits, hot, table, where, sizes, draws, coin, new[i], heads, changes
        )
        if appended:
            tally[0] += 1
            tally[1] += counts[0, key] >= enough
            tally[2] += counts[1, key] >= enough
        for j in range(deleted):
            counts[1, np.int64(changes[j])] = 0


@dataclass(frozen=True)
class Prediction:
    """One predictor on one stream; `stream` is a name of SYNTHETIC or a file."""

    stream: str
    predictor: str
    n_workers: int
    seed: int = 0

    def measure(self) -> Figures:
        with tempfile.TemporaryDirectory() as scratch:
            stream = SYNTHETIC.get(self.stream) or _replay(Path(self.stream), Path(scratch))
            predictor = PREDICTORS[self.predictor].for_stream(self.n_workers, WINDOW, self.seed)
            size = {"n_workers": self.n_workers, "window": WINDOW}
            score = evaluate(stream, predictor, **size, seed=self.seed, limit=LIMIT)
        return {name: float(value) for name, value in vars(score).items() if name != "predictor"}


def _replay(path: Path, scratch: Path) -> Stream:
    if "src" in pq.read_schema(path).names:
        table = pq.read_table(path, columns=["key"])
        order = np.random.default_rng(0).permutation(table.num_rows)
        path = scratch / path.name
        pq.write_table(table.take(pa.array(order)), path)
    return Replay(path, "key")


@dataclass(frozen=True)
class Routing:
    """One grouping in the simulator."""

    name: str
    z: float
    n_workers: int
    seed: int

    def measure(self) -> Figures:
        stream = Zipf(n_tuples=2_000_000, n_keys=N_KEYS, z=self.z)
        result = simulate(stream, GROUPINGS[self.name], Settings(n_workers=self.n_workers, seed=self.seed))
        return {"makespan": result.makespan, "replication": result.replication}


Cell = TableI | Presence | Size | Precision | Prediction | Routing


def measure(cell: Cell) -> Figures:
    return cell.measure()


class Report:
    """The tables."""

    def __init__(self, files: list[Path]) -> None:
        self.files = files
        self.claims = Claims()
        self.measured: dict[str, Figures] = {}

    def cells(self) -> list[Cell]:
        wanted: list[Cell] = [TableI()]
        wanted += [Presence(seed) for seed in range(N_SEEDS)]
        wanted += [cell for repeats in (*self.sizes().values(), *self.precisions().values()) for cell in repeats]
        wanted += [cell for repeats in (*self.predictions().values(), *self.routings().values()) for cell in repeats]
        return wanted

    def values(self, repeats: list[Cell], name: str) -> list[float]:
        return [self.measured[repr(cell)][name] for cell in repeats]

    def table_1(self) -> list[str]:
        lines = [
            "## Table I: a hot key has occurred often",
            "",
            *prose(
                f"One key alone, r = 10, l = 16, zeta = 2, no decline, {N_TRIALS:,} trials with a seed each (no sources, "
                "windows or rate: the synopsis alone). Chance that the key has occurred N times before it turns hot. "
                "Claim: at or above the paper's."
            ),
            *header("N", "measured %", "the paper %", "holds"),
        ]
        figures = self.measured[repr(TableI())]
        for times, least in TABLE_I.items():
            share = figures[str(times)]
            lines.append(row(times, f"{share:.2f}", least, self.claims.check(f"Table I {times}", share >= least)))
        return [*lines, ""]

    def presence(self) -> list[str]:
        repeats: list[Cell] = [Presence(seed) for seed in range(N_SEEDS)]
        first = Presence(0)
        bounds = {"4p": ("≥ 0.98", lambda x: x >= 0.98), "2p": ("", None), "0.1p": ("≤ 0.25", lambda x: x <= 0.25)}
        lines = [
            "## Theorem 2: who stays in the synopsis",
            "",
            *prose(
                f"Three keys of known rates among keys that occur once each; p = {first.p}, r = {first.r}, "
                f"{first.n_updates << first.r:,} tuples, about {first.n_updates:,} updates of the synopsis, of which the "
                f"first {round(10 / first.p):,} are not counted; mean ± spread over {N_SEEDS} seeds (no sources, windows "
                "or rate). Share of the updates after which the key is in the synopsis."
            ),
            *header("rate", "present", "claim", "holds"),
        ]
        for rate, (claim, holds) in bounds.items():
            shares = self.values(repeats, rate)
            verdict = self.claims.check(f"Theorem 2 {rate}", holds(float(np.mean(shares)))) if holds else ""
            lines.append(row(rate, spread(shares, ".4f"), claim, verdict))
        return [*lines, ""]

    @staticmethod
    def sizes() -> dict[tuple[float, float], list[Cell]]:
        return {
            (p, z): [Size(p, z, seed) for seed in range(N_SEEDS)]
            for p in (0.005, 0.01, 0.02, 0.05)
            for z in (0.8, 1.0, 1.4, 2.0)
        }

    def size(self) -> list[str]:
        lines = [
            "## Size of the synopsis (Figure 21)",
            "",
            *prose(
                f"Zipf, {N_KEYS:,} keys, 5 000 000 tuples, r = 6, sampled every 1000 tuples from the first on; mean ± "
                f"spread over {N_SEEDS} seeds (no sources, windows or rate). Claim: the mean over time is at most 2/p. "
                "The paper's bound of 1/p (Theorem 3) does not hold for little skew."
            ),
            *header("p", "z", "mean size", "most", "1/p", "2/p", "holds"),
        ]
        for (p, z), repeats in self.sizes().items():
            means = self.values(repeats, "mean")
            verdict = self.claims.check(f"size p={p} z={z}", max(means) <= 2 / p)
            most = max(self.values(repeats, "most"))
            lines.append(row(p, z, spread(means, ".1f"), f"{most:.0f}", f"{1 / p:.0f}", f"{2 / p:.0f}", verdict))
        return [*lines, ""]

    @staticmethod
    def precisions() -> dict[tuple[float, bool], list[Cell]]:
        return {
            (z, drifting): [Precision(z, drifting, seed) for seed in range(N_SEEDS)]
            for z in SKEWS
            for drifting in (False, True)
        }

    def precision(self) -> list[str]:
        lines = [
            "## Precision by Theorem 1's event",
            "",
            *prose(
                f"{N_KEYS:,} keys, 5 000 000 tuples, r = 6, p = 0.01; drifting: other keys are hot every 100 000 tuples; "
                f"mean ± spread over {N_SEEDS} seeds (no sources, windows or rate). Share of the appended keys that had "
                "occurred at least 2^(r−3) = 8 times when they were appended. Claim: at least 0.96. The last column "
                "counts anew after each deletion of the key, which is stricter, and claims nothing."
            ),
            *header("z", "stream", "appended", "precision", "holds", "counted anew"),
        ]
        for (z, drifting), repeats in self.precisions().items():
            shares = self.values(repeats, "precision")
            name = "drifting" if drifting else "steady"
            verdict = self.claims.check(f"precision z={z} {name}", float(np.mean(shares)) >= 0.96)
            appended = f"{np.mean(self.values(repeats, 'appended')):,.0f}"
            lines.append(
                row(z, name, appended, spread(shares, ".4f"), verdict, spread(self.values(repeats, "anew"), ".4f"))
            )
        return [*lines, ""]

    def predictions(self) -> dict[tuple[str, int, str], list[Cell]]:
        found = {}
        for stream in (*SYNTHETIC, *map(str, self.files)):
            n_seeds = N_SEEDS if stream in SYNTHETIC else 1
            for n_workers in (10, 100):
                for name in PREDICTORS:
                    repeats = [Prediction(stream, name, n_workers, seed) for seed in range(n_seeds)]
                    found[stream, n_workers, name] = repeats
        return found

    def prediction(self) -> list[str]:
        chosen = {n: DStream.for_stream(n, WINDOW) for n in (10, 100)}
        used = "; ".join(f"W = {n}: p = {each.p:g}, r = {each.r}, l = {each.l}" for n, each in chosen.items())
        lines = [
            "## Predictors (Figures 19 and 20)",
            "",
            *prose(
                f"A key is hot when it has at least 1/(5W) of a window's tuples; judged at the end of each window of "
                f"{WINDOW:,} tuples. Synthetic streams: 2 000 000 tuples, {N_KEYS:,} keys, {N_SEEDS} seeds, mean ± spread; "
                f"drifting: other keys every 100 000 tuples. Files: their first {LIMIT:,} tuples, 1 seed. One source; no "
                "arrival rate is involved."
            ),
            *prose(
                "Rules for the coin: p = 1/(10W), so that keys at the hot share of 2p stay (Theorem 2); r is the largest "
                "with at least two declines of a vector a window (2^r/p ≤ window/2); l = 16, for 2^(r+l) is beyond any "
                f"count in a window. {used}. The other predictors know the hot share and have an error of a quarter of it "
                "(SpaceSaving: 4/share counters)."
            ),
            *prose(
                "Tuples to identify: median from the beginning of a window until a key that is newly hot in it is called "
                "hot, in steps of 1000; never: half of them are not. Entries: keys or counters in use. M tuples/s: the best run "
                "on one core of a busy machine, good for comparing only."
            ),
            *prose(
                "The coin is by far the fastest, and where keys drift it finds new ones soonest; but by the exact share its "
                "precision is low: rarer keys get into the synopsis too (compare Theorem 2), and there are many of them. "
                "DStream then spreads keys that would not need it. By Theorem 1's event its precision is 0.99 (above)."
            ),
            *header(
                "stream", "W", "predictor", "precision", "recall", "F1", "to identify", "entries", "bytes", "M tuples/s"
            ),
        ]
        for (stream, n_workers, name), repeats in self.predictions().items():
            rates = [rate / 1e6 for rate in self.values(repeats, "tuples_per_second")]
            lines.append(
                row(
                    stream if stream in SYNTHETIC else Path(stream).stem,
                    n_workers,
                    name,
                    *(spread(self.values(repeats, what)) for what in ("precision", "recall", "f1")),
                    _tuples(self.values(repeats, "identify_tuples")),
                    f"{np.mean(self.values(repeats, 'entries')):,.0f}",
                    f"{np.mean(self.values(repeats, 'nbytes')):,.0f}",
                    f"{max(rates):.1f}",
                )
            )
        return [*lines, ""]

    @staticmethod
    def routings() -> dict[tuple[float, int, str], list[Cell]]:
        return {
            (z, n_workers, name): [Routing(name, z, n_workers, seed) for seed in range(3)]
            for n_workers in (16, 64)
            for z in (1.0, 1.4, 2.0)
            for name in GROUPINGS
        }

    def routing(self) -> list[str]:
        lines = [
            "## DStream as a grouping",
            "",
            *prose(
                f"Zipf, 2 000 000 tuples, {N_KEYS:,} keys, S = 5, windows of 50 000 tuples, arrivals at 800 W tuples/s, "
                "mean ± spread over 3 seeds: makespan, and replication in brackets. DStream with one synopsis for all "
                "sources whose decisions arrive at once, 1000 or 10 000 tuples later, and with one synopsis a source; r = "
                "6, p = 1/(10W)."
            ),
            *header("W", "z", *GROUPINGS),
        ]
        for n_workers in (16, 64):
            for z in (1.0, 1.4, 2.0):
                entries = []
                for name in GROUPINGS:
                    repeats = self.routings()[z, n_workers, name]
                    spans, held = self.values(repeats, "makespan"), self.values(repeats, "replication")
                    entries.append(f"{spread(spans)} ({spread(held, '.2f')})")
                lines.append(row(n_workers, z, *entries))
        return [*lines, ""]


def _tuples(values: list[float]) -> str:
    """Median over runs of the tuples to identify: infinite where half of the newly hot keys are never found."""
    if all(map(np.isnan, values)):
        return "no key hot"
    never = sum(map(np.isinf, values))
    if not never:
        return spread(values, ",.0f")
    typical = float(np.nanmedian(values))
    note = f"never in {never} of {len(values)} runs"
    return f"{typical:,.0f}, {note}" if np.isfinite(typical) else note


def main() -> int:
    parser = cells.parser(__doc__ or "")
    parser.add_argument("--data", type=Path, help="folder of Parquet files with a column `key`")
    args = parser.parse_args()
    found = sorted(args.data.glob("*.parquet")) if args.data else []
    report = Report([path for path in found if "key" in pq.read_schema(path).names])
    report.measured = cells.measure_all(report.cells(), measure, processes=args.processes, keep=args.keep)
    lines = ["# DStream", "", "`.venv/bin/python benchmarks/dstream.py --data DIR --write`", ""]
    for section in (
        report.table_1,
        report.presence,
        report.size,
        report.precision,
        report.prediction,
        report.routing,
    ):
        lines += section()
    return cells.write("dstream", lines, report.claims, args.write)


if __name__ == "__main__":
    sys.exit(main())
