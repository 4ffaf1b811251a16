"""Draws changes, tries each against the tests of its file, two at a time."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

from dev.mutants.imports import Mapping, Sources
from dev.mutants.operators import Mutant, draw
from dev.mutants.tree import Tree

_NEEDS_JVM = "spark"
# For a JVM or for kernels that are compiled anew, beside the time that the tests take.
_START_S = 100.0
_LONGEST_S = 3600.0


@dataclass(frozen=True)
class Outcome:
    """What came of a change: `failed` or `slow` is noticed, `passed` or `no tests` is not."""

    mutant: Mutant
    came: str
    seconds: float

    @property
    def survived(self) -> bool:
        """Whether no test noticed."""
        return self.came in ("passed", "no tests")


@dataclass(frozen=True)
class Trial:
    """Tries changes in trees, each used by one thread at a time.

    Parameters
    ----------
    project
        Root of the project.
    mapping
        Tests of a file.
    durations
        Seconds that each test file takes without a change.
    most_s
        Tests of a change are chosen up to this time, nearest and then cheapest first.
    """

    project: Path
    mapping: Mapping
    durations: dict[Path, float]
    most_s: float

    def tests_for(self, path: Path) -> list[Path]:
        """Test files for a change of a file."""
        chosen: list[Path] = []
        left = self.most_s
        for layer in self.mapping.tests_of(path):
            for test in sorted(layer, key=lambda test: self.durations[test]):
                left -= self.durations[test]
                if left >= 0 or not chosen:
                    chosen.append(test)
        return chosen

    def attempt(self, mutant: Mutant, tree: Tree) -> Outcome:
        """Make one change, run its tests, take it back."""
        began, tests = time.monotonic(), self.tests_for(mutant.path)
        limit = _START_S + 3 * sum(self.durations[test] for test in tests)
        tree.change(mutant)
        try:
            came = tree.run(tests, limit, jvm=needs_jvm(self.project, mutant.path)) if tests else "no tests"
        finally:
            tree.restore(mutant)
        outcome = Outcome(mutant, came, time.monotonic() - began)
        say(f"{came:8} {outcome.seconds:5.0f} s  {where(self.project, mutant)}")
        return outcome


def run(project: Path, scratch: Path, packages: list[str], n: int, seed: int, most_s: float) -> list[Outcome]:
    """Draw changes and try them all."""
    mutants = draw(sources_of(project, packages), n, seed)
    mapping = Mapping(Sources(project / "src" / "anabranch"), project / "tests")
    clean = Tree(project, scratch / "clean")
    durations = _durations(project, mutants, mapping, clean, Tree(project, scratch / "jvm"))
    trees = [Tree(project, scratch / name, clean.folder) for name in ("one", "two")]
    idle: SimpleQueue[Tree] = SimpleQueue()
    for tree in trees:
        idle.put(tree)
    trial = Trial(project, mapping, durations, most_s)

    def attempt(mutant: Mutant) -> Outcome:
        tree = idle.get()
        try:
            return trial.attempt(mutant, tree)
        finally:
            idle.put(tree)

    with ThreadPoolExecutor(len(trees)) as pool:
        try:
            return list(pool.map(attempt, mutants))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for tree in trees:
                tree.stop()
            raise


def _durations(
    project: Path, mutants: list[Mutant], mapping: Mapping, clean: Tree, with_jvm: Tree
) -> dict[Path, float]:
    """Seconds of each test file that some change needs; those with a JVM beside the others."""
    needed: dict[bool, set[Path]] = {True: set(), False: set()}
    for mutant in mutants:
        tests = (test for layer in mapping.tests_of(mutant.path) for test in layer)
        needed[needs_jvm(project, mutant.path)].update(tests)
    say(f"{len(mutants)} changes; first, their {sum(map(len, needed.values()))} test files without a change")
    with ThreadPoolExecutor(2) as pool:
        parts = [
            pool.submit(tree.durations, sorted(needed[jvm]), _LONGEST_S, jvm=jvm)
            for tree, jvm in ((clean, False), (with_jvm, True))
        ]
        return {test: seconds for part in parts for test, seconds in part.result().items()}


def package_of(project: Path, path: Path) -> str:
    """The part of the package in which a source file is."""
    return path.relative_to(project / "src" / "anabranch").parts[0]


def needs_jvm(project: Path, path: Path) -> bool:
    """Whether the tests of a source file may start Spark."""
    return _NEEDS_JVM in path.relative_to(project).parts


def sources_of(project: Path, packages: Iterable[str]) -> list[Path]:
    """Files that changes are drawn from."""
    folder = project / "src" / "anabranch"
    return [path for name in packages for path in (folder / name).rglob("*.py") if path.name != "__init__.py"]


def where(project: Path, mutant: Mutant) -> str:
    """File, line and kind of a change."""
    return f"{mutant.path.relative_to(project)}:{mutant.line} {mutant.operator}"


def say(line: str) -> None:
    """Progress goes to stderr, where results do not."""
    print(line, file=sys.stderr, flush=True)
