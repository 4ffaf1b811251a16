"""Draw small changes of the source, run the tests mapped to each, and list the changes that no test noticed.

    python -m dev.mutants [--n N] [--seed N] [--packages NAME,NAME] [--most SECONDS]

Changes are tried in copies of the project in a scratch folder, two at a time. Only the tests of `spark` start a JVM.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from pathlib import Path

from dev.mutants.trial import Outcome, package_of, run, where

PACKAGES = ("containers", "groupings", "sketches", "aggregates", "chain", "simulate", "spark")


def report(project: Path, outcomes: list[Outcome]) -> str:
    """Survivors by package, and how many there are."""
    lines = []
    ordered = sorted(outcomes, key=lambda outcome: outcome.mutant)
    for package in dict.fromkeys(package_of(project, outcome.mutant.path) for outcome in ordered):
        of_package = [outcome for outcome in ordered if package_of(project, outcome.mutant.path) == package]
        survivors = [outcome for outcome in of_package if outcome.survived]
        lines.append(f"{package}: {len(survivors)} of {len(of_package)} survived")
        for outcome in survivors:
            lines.append(f"  {where(project, outcome.mutant)}" + " (no tests)" * (outcome.came == "no tests"))
            lines += [f"    {line}" for line in outcome.mutant.shown(outcome.mutant.path.read_bytes())]
    slow = sum(outcome.came == "slow" for outcome in outcomes)
    lines.append(f"{sum(one.survived for one in outcomes)} of {len(outcomes)} survived; {slow} ran out of time")
    return "\n".join(lines)


def main() -> None:
    """Draw, try and print."""
    parser = argparse.ArgumentParser(prog="python -m dev.mutants", description=__doc__.partition("\n")[0])
    parser.add_argument("--n", type=int, default=150, help="changes to draw (default 150, which take about an hour)")
    parser.add_argument("--seed", type=int, default=1, help="the same seed draws the same changes (default 1)")
    parser.add_argument("--packages", default=",".join(PACKAGES), help=f"default {','.join(PACKAGES)}")
    parser.add_argument("--most", type=float, default=90, help="seconds of tests for one change (default 90)")
    given = parser.parse_args()
    project, packages = Path(__file__).resolve().parents[2], given.packages.split(",")
    unknown = set(packages) - set(PACKAGES)
    if unknown:
        parser.error(f"--packages must be some of {','.join(PACKAGES)}, got {','.join(sorted(unknown))}")
    scratch = Path(tempfile.mkdtemp(prefix="anabranch-mutants-"))
    try:
        print(report(project, run(project, scratch, packages, given.n, given.seed, given.most)))
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


if __name__ == "__main__":
    main()
