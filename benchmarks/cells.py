"""Cells of a benchmark, measured by several processes and kept, so that an interrupted run can go on."""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import textwrap
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

Figures = dict[str, float]


class Claims:
    """What the tables claim, and which of it failed."""

    def __init__(self) -> None:
        self.n = 0
        self.failed: list[str] = []

    def check(self, claim: str, holds: bool) -> str:
        """The table's entry for a claim."""
        self.n += 1
        if not holds:
            self.failed.append(claim)
        return "yes" if holds else "**no**"

    def verdict(self) -> str:
        """The last line of the results."""
        return f"Claims that failed, of {self.n}: {', '.join(self.failed) or 'none'}."


def parser(description: str) -> argparse.ArgumentParser:
    """Options that the long benchmarks share."""
    options = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--processes", type=int, default=2, help="cells measured at a time")
    options.add_argument("--keep", type=Path, help="JSON lines of cells already measured; new ones are added")
    options.add_argument("--write", action="store_true", help="store the tables under benchmarks/results")
    return options


def measure_all(
    cells: Sequence[object], measure: Callable[..., Figures], *, processes: int, keep: Path | None
) -> dict[str, Figures]:
    """Figures of every cell, by the repr that tells it from others."""
    kept = {}
    if keep is not None and keep.exists():
        kept = dict(json.loads(line) for line in keep.read_text().splitlines())
    missing = [cell for name, cell in {repr(cell): cell for cell in cells}.items() if name not in kept]
    began = time.perf_counter()
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        jobs = ((measure, cell) for cell in missing)
        for done, (name, figures) in enumerate(pool.imap_unordered(_measure, jobs), 1):
            kept[name] = figures
            if keep is not None:
                with keep.open("a") as file:
                    file.write(json.dumps([name, figures]) + "\n")
            spent = time.perf_counter() - began
            print(f"{done}/{len(missing)} cells, {spent:,.0f} s: {name[:150]}", file=sys.stderr, flush=True)
    return {repr(cell): kept[repr(cell)] for cell in cells}


def _measure(job: tuple[Callable[[object], Figures], object]) -> tuple[str, Figures]:
    measure, cell = job
    return repr(cell), measure(cell)


def spread(values: Sequence[float], form: str = ".3f") -> str:
    """Mean ± population standard deviation; the value alone where there is one."""
    mean = f"{np.mean(values):{form}}"
    return mean if len(values) == 1 else f"{mean} ± {np.std(values):{form}}"


def prose(text: str) -> list[str]:
    """A paragraph, wrapped, with an empty line after it."""
    return [*textwrap.wrap(text, width=118, break_long_words=False, break_on_hyphens=False), ""]


def header(*columns: str) -> list[str]:
    """The head of a table."""
    return [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]


def row(*entries: object) -> str:
    """A row of a table."""
    return f"| {' | '.join(str(entry) for entry in entries)} |"


def run_parts(
    results: Path, head: Sequence[str], parts: Mapping[str, Callable[[Claims], list[str]]], spark: str, store: bool
) -> int:
    """Run parts of a benchmark by their titles, and store each as it is done; other parts in the file stay as they are.

    Returns 1 where a claim failed.
    """
    failed = False
    for title, part in parts.items():
        claims, began = Claims(), time.perf_counter()
        lines = part(claims)
        took = f"Spark {spark}; this part took {(time.perf_counter() - began) / 60:.1f} minutes."
        text = "\n".join([*lines, f"{took} {claims.verdict()}"])
        print(f"## {title}\n\n{text}\n", flush=True)
        failed |= bool(claims.failed)
        if store:
            before = results.read_text().split("\n## ")[1:] if results.exists() else []
            known = {one.partition("\n")[0]: one.partition("\n")[2].strip() for one in before} | {title: text}
            results.write_text("\n".join([*head, "", *(f"## {name}\n\n{one}\n" for name, one in known.items())]))
    return int(failed)


def write(name: str, lines: Sequence[str], claims: Claims, store: bool) -> int:
    """Print the tables, store them where asked, and say whether all claims hold."""
    text = "\n".join([*lines, claims.verdict(), ""])
    print(text)
    if store:
        (Path(__file__).parent / "results" / f"{name}.md").write_text(text)
    return 1 if claims.failed else 0
