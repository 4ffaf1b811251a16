"""A copy of the sources and tests in which a change is tried, so that the original and its kernels stay whole."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

from anabranch import kernels
from dev.mutants.imports import Sources
from dev.mutants.operators import Mutant

_COPIED = ("src", "tests", "dev", "pyproject.toml", "README.md", "docs")
# What pytest returns when no test was selected.
_NO_TESTS = 5


@dataclass
class Tree:
    """A copy of a project, and how tests run in it.

    Parameters
    ----------
    project
        The project that paths of changes and tests refer to: never written to.
    folder
        Where the copy is made. It must not exist.
    clean
        A tree without changes to copy and restore from, with the kernels that it has; default the project.
    """

    project: Path
    folder: Path
    clean: Path | None = None
    _changes: int = field(default=0, init=False)
    _process: subprocess.Popen[bytes] | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.clean = self.clean or self.project
        for name in _COPIED:
            source = self.clean / name
            if source.is_dir():
                shutil.copytree(source, self.folder / name)
            elif source.exists():
                self.folder.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, self.folder / name)
        self.package = self.folder / "src" / "anabranch"
        self.sources = Sources(self.package)

    def change(self, mutant: Mutant) -> None:
        """Make a change, and drop the stored kernels that it makes stale, and no others."""
        path = self.folder / mutant.path.relative_to(self.project)
        stat = path.stat()
        path.write_bytes(mutant.apply(path.read_bytes()))
        # Bytecode and kernels are known by the time of their source: no two changes may have the same.
        self._changes += 1
        os.utime(path, (stat.st_mtime + self._changes, stat.st_mtime + self._changes))
        for stale in self.sources.reached_from(self.sources.name_of(path)):
            for stored in _stored_kernels(self.sources.modules[stale]):
                stored.unlink()
        self._stamp()

    def restore(self, mutant: Mutant) -> None:
        """Take a change back, and the kernels that it made."""
        path = self.folder / mutant.path.relative_to(self.project)
        shutil.copy2(self._clean(path), path)
        for changed in self.sources.reached_from(self.sources.name_of(path)):
            file = self.sources.modules[changed]
            for stored in _stored_kernels(file):
                stored.unlink()
            for stored in _stored_kernels(self._clean(file)):
                shutil.copy2(stored, file.parent / "__pycache__" / stored.name)
        self._stamp()

    def _clean(self, path: Path) -> Path:
        assert self.clean is not None
        return self.clean / path.relative_to(self.folder)

    def _stamp(self) -> None:
        """Without this the package would drop all of its kernels."""
        stamp = self.package / "__pycache__" / "kernels.digest"
        stamp.parent.mkdir(exist_ok=True)
        stamp.write_text(kernels.digest(self.package))

    def run(self, tests: list[Path], timeout_s: float, *, jvm: bool, log: Path | None = None) -> str:
        """`passed`, `failed`, `slow` (over the time) or `no tests`; up to the first failure, without an explanation.

        To say how two long lists differ takes pytest minutes.
        """
        command = [
            sys.executable, "-m", "pytest", "-x", "-q", "--tb=no", "--assert=plain", "-p", "no:cacheprovider",
            "--hypothesis-profile=mutants", "--basetemp", str(self.folder / "temporary"),
            "-m", "not slow" if jvm else "not slow and not spark", *map(str, self._here(tests)),
        ]  # fmt: skip
        if log is not None:
            command += ["--junitxml", str(log)]
        with (self.folder / "output").open("wb") as output:
            self._process = subprocess.Popen(
                command, cwd=self.folder, env=self._environment(), stdout=output, stderr=output, start_new_session=True
            )
            try:
                code = self._process.wait(timeout_s)
            except subprocess.TimeoutExpired:
                return "slow"
            finally:
                self.stop()
        return {0: "passed", _NO_TESTS: "no tests"}.get(code, "failed")

    def durations(self, tests: list[Path], timeout_s: float, *, jvm: bool) -> dict[Path, float]:
        """Seconds of each test file, as they pass without a change."""
        if not tests:
            return {}
        log = self.folder / "durations.xml"
        came = self.run(tests, timeout_s, jvm=jvm, log=log)
        if came not in ("passed", "no tests"):
            raise SystemExit(f"tests fail without a change ({came}): mend them first\n{self.output()[-3000:]}")
        seconds = dict.fromkeys(tests, 0.0)
        names = {".".join(test.relative_to(self.project).with_suffix("").parts): test for test in tests}
        for case in ElementTree.parse(log).iter("testcase"):
            test = names.get(case.get("classname", ""))
            if test is not None:
                seconds[test] += float(case.get("time", 0))
        return seconds

    def stop(self) -> None:
        """End the tests that run, and what they started: Spark's processes, too."""
        if self._process is None:
            return
        for end in (signal.SIGTERM, signal.SIGKILL):
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, end)
                time.sleep(0.1)
        self._process.wait()

    def output(self) -> str:
        """What the last run printed."""
        return (self.folder / "output").read_text(errors="replace")

    def _here(self, paths: list[Path]) -> list[Path]:
        return [path.relative_to(self.project) for path in paths]

    def _environment(self) -> dict[str, str]:
        """The copy's sources come before those that are installed, and nothing is written outside it."""
        (self.folder / "tmp").mkdir(exist_ok=True)
        own = {
            "PYTHONPATH": str(self.folder / "src"),
            "PYTHONDONTWRITEBYTECODE": "1",
            "TMPDIR": str(self.folder / "tmp"),
        }
        return os.environ | own


def _stored_kernels(source: Path) -> list[Path]:
    return [
        path for path in (source.parent / "__pycache__").glob(f"{source.stem}.*") if path.suffix in (".nbi", ".nbc")
    ]
