"""Router throughput on one core, beside a plain copy of the hash array.

    .venv/bin/python benchmarks/routers.py [--write]

Zipf z=1.2, 10⁶ keys, W = 16, 128, 1024, arrays of 65 536 hashes, best of five runs after warm-up; ratios are to the
copy measured in the same run. --write stores the table as benchmarks/results/routers.md. Exits 1 where a target is missed.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from anabranch import groupings
from anabranch.groupings.schemes.fish import FishRouter
from anabranch.groupings.spillway import spill
from anabranch.hashing import hash_keys
from anabranch.streams import Zipf

WORKERS = (16, 128, 1024)
BLOCK = 65_536
STEP_S = 1e-5
TARGETS = {"key": 300, "shuffle": 300, "partial-key": 60, "w-choices": 10, "d-choices": 6}
TARGETS |= {"dstream": 20, "fish": 5, "dynamic-key": 10, "spillway": 20, "table": 25}
PLANNING = 0.05
FLAT = ("partial-key", "w-choices", "dstream", "dynamic-key")


def best_rate(keys: NDArray[np.uint64], make: Callable[[], Callable[..., object]], block: int = BLOCK) -> float:
    """Best of five runs over all blocks, in M tuples/s; `make` gives a fresh router each time."""
    best = 0.0
    for _ in range(5):
        route = make()
        began = time.perf_counter()
        for start in range(0, len(keys), block):
            route(keys[start : start + block], start * STEP_S, STEP_S)
        best = max(best, len(keys) / (time.perf_counter() - began) / 1e6)
    return best


def measure(n_tuples: int, candidates: list[str]) -> tuple[float, dict[str, list[float]], dict[str, int]]:
    """Rates of the copy and of each grouping by W, and router bytes; FISH's mean candidates go into `candidates`."""
    stream = Zipf(n_tuples=n_tuples, n_keys=1_000_000, z=1.2)
    keys = np.concatenate([hash_keys(batch.column("key")) for batch in stream.batches(seed=1)])
    target = np.empty(BLOCK, dtype=np.uint64)
    copy = best_rate(keys, lambda: lambda block, now, step_s: np.copyto(target[: len(block)], block))
    rates: dict[str, list[float]] = {}
    state: dict[str, int] = {}
    distinct, counts = np.unique(keys, return_counts=True)
    for name in groupings.names():
        grouping = groupings.named(name)().with_counts(distinct, counts)
        if grouping.needs_table:
            grouping = groupings.TableGrouping(distinct, np.arange(len(distinct)) % min(WORKERS))
        for n_workers in WORKERS:
            router = grouping.build(n_workers)
            router.route(keys[:BLOCK])
            state[name] = max(state.get(name, 0), router.nbytes if n_workers == 128 else 0)
            if isinstance(router, FishRouter):
                candidates.append(f"{router.mean_candidates:.1f}")
            # A router that looks ahead gets whole chunks.
            block = BLOCK if router.chunk == 1 else -(-BLOCK // router.chunk) * router.chunk
            make = lambda g=grouping, n=n_workers: g.build(n).route  # noqa: E731
            rates.setdefault(name, []).append(best_rate(keys, make, block))
    return copy, rates, state


def planning_share(n_tuples: int, n_workers: int) -> tuple[float, float]:
    """Parts of Spillway's time that its plans take, and that looking up the split keys before takes: the fastest of five.

    A plan is what is made for a chunk as a whole: levelling, limits and spilling. Its distinct keys are counted, looked up
    and sent home one by one, as tuples are dealt out one by one.
    """
    stream = Zipf(n_tuples=n_tuples, n_keys=1_000_000, z=1.2)
    keys = np.concatenate([hash_keys(batch.column("key")) for batch in stream.batches(seed=1)])
    runs = []
    for _ in range(5):
        router = groupings.Spillway().build(n_workers)
        router.route(keys[: 2 * router.chunk])
        with timed("plan") as planned, timed("place") as placed:
            began = time.perf_counter()
            router.route(keys)
            whole = time.perf_counter() - began
        runs.append((whole, sum(planned), sum(placed)))
    whole, plans, places = min(runs)
    return plans / whole, places / whole


@contextmanager
def timed(kernel: str) -> Iterator[list[float]]:
    """Seconds of every call of one of `spill`'s kernels."""
    seconds: list[float] = []
    call = getattr(spill, kernel)

    def measured(*arguments: object) -> int:
        began = time.perf_counter()
        result: int = call(*arguments)
        seconds.append(time.perf_counter() - began)
        return result

    setattr(spill, kernel, measured)
    yield seconds
    setattr(spill, kernel, call)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tuples", type=int, default=5_000_000)
    parser.add_argument("--write", action="store_true", help="store the table under benchmarks/results")
    args = parser.parse_args()
    candidates: list[str] = []
    copy, rates, state = measure(args.tuples, candidates)
    lines = [
        "# Router throughput",
        "",
        "`.venv/bin/python benchmarks/routers.py --write`",
        "",
        f"M tuples/s on one core; Zipf z=1.2, 10⁶ keys, {args.tuples:,} tuples, one source, best of 5. Copying the",
        f"hash array block by block in the same run: {copy:,.0f} M/s. Virtual time runs at 100 k tuples/s. FISH looks",
        f"at {', '.join(candidates)} candidates a tuple on average with 16, 128, 1024 workers; its cost grows with that.",
        "",
        "| grouping | W=16 | W=128 | W=1024 | copy / router, W=128 | cost W=1024 / W=16 | bytes, W=128 | target |",
        "|---|---|---|---|---|---|---|---|",
    ]
    missed = []
    for name, (small, middle, large) in rates.items():
        growth = small / large
        target = TARGETS.get(name)
        lines.append(
            f"| {name} | {small:,.1f} | {middle:,.1f} | {large:,.1f} | {copy / middle:,.1f} | {growth:.2f} | "
            f"{state[name]:,} | {f'≥ {target}' if target else ''} |"
        )
        if (target and middle < target) or (name in FLAT and growth >= 2):
            missed.append(name)
    share, look_up = planning_share(args.tuples, WORKERS[-1])
    if share >= PLANNING:
        missed.append("planning")
    lines.append("")
    lines.append(
        f"Spillway plans in {share:.1%} of its time with {WORKERS[-1]} workers; target: below {PLANNING:.0%}. To find"
    )
    lines.append(f"the split keys among those of a chunk, and to add up what goes home, takes another {look_up:.1%}.")
    lines.append("")
    lines.append(f"Missed targets: {', '.join(missed) or 'none'}.")
    text = "\n".join(lines) + "\n"
    print(text)
    if args.write:
        (Path(__file__).parent / "results" / "routers.md").write_text(text)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
