"""Which module imports which: what tests a file is mapped to, and which compiled kernels a change makes stale."""

from __future__ import annotations

import ast
from collections import deque
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path


@dataclass(frozen=True)
class Sources:
    """The modules of a package and what they import from each other.

    Parameters
    ----------
    folder
        The folder of the package.
    """

    folder: Path

    @cached_property
    def modules(self) -> dict[str, Path]:
        """Dotted name → file."""
        return {self.name_of(path): path for path in sorted(self.folder.rglob("*.py"))}

    def name_of(self, path: Path) -> str:
        """The dotted name of a file of the package."""
        parts = path.relative_to(self.folder.parent).with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    def imported_by(self, path: Path) -> set[str]:
        """Modules that a file of the package, or a test, imports by name; a name of a package counts for its module."""
        found: set[str] = set()
        for node in ast.walk(_tree(path)):
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found |= {self._defines(node.module, alias.name) for alias in node.names}
            elif isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
        return found & set(self.modules)

    def _defines(self, module: str, name: str) -> str:
        """The module that `from module import name` is about, through the packages that hand the name on."""
        if f"{module}.{name}" in self.modules:
            return f"{module}.{name}"
        return self._handed_on.get((module, name), module)

    @cached_property
    def _handed_on(self) -> dict[tuple[str, str], str]:
        found: dict[tuple[str, str], str] = {}
        for package in (name for name, path in self.modules.items() if path.name == "__init__.py"):
            for node in ast.walk(_tree(self.modules[package])):
                if isinstance(node, ast.ImportFrom) and node.module in self.modules:
                    found |= {(package, alias.asname or alias.name): node.module for alias in node.names}
        return found

    @cached_property
    def importers(self) -> dict[str, set[str]]:
        """Module → modules that import it."""
        found: dict[str, set[str]] = {name: set() for name in self.modules}
        for name, path in self.modules.items():
            for imported in self.imported_by(path):
                found[imported].add(name)
        return found

    def reached_from(self, module: str) -> set[str]:
        """The module and all that import it, directly or through others."""
        seen, waiting = {module}, deque([module])
        while waiting:
            new = self.importers[waiting.popleft()] - seen
            seen |= new
            waiting.extend(new)
        return seen


@dataclass(frozen=True)
class Mapping:
    """The tests of a file, from names and imports: files may move as long as the tests mirror the packages.

    Parameters
    ----------
    sources
        The package.
    tests
        The folder of its tests.
    """

    sources: Sources
    tests: Path
    _imports: dict[Path, set[str]] = field(default_factory=dict)

    def tests_of(self, path: Path) -> list[list[Path]]:
        """Test files of a source file, in layers: those named after it or that import it, then those of its importers.

        Only tests of the same part of the package. Importers of importers are asked where there is no test yet. Tests
        that import the part as a whole, contracts for example, come last.
        """
        package, module = path.relative_to(self.sources.folder).parts[0], self.sources.name_of(path)
        layers: list[list[Path]] = []
        layer, seen, taken = {module}, {module}, set[Path]()
        while layer and (len(layers) < 2 or not taken):
            tests = [test for test in self._all(package) if test not in taken and self._is_about(test, layer)]
            layers.append(tests)
            taken.update(tests)
            layer = {up for down in layer for up in self.sources.importers[down] if self._is_in(package, up)} - seen
            seen |= layer
        whole = f"{self.sources.folder.name}.{package}"
        of_all = [test for test in self._all(package) if whole in self._imported(test) and test not in taken]
        return [tests for tests in [*layers, of_all] if tests]

    def _is_in(self, package: str, module: str) -> bool:
        return module.startswith(f"{self.sources.folder.name}.{package}.")

    def _is_about(self, test: Path, modules: set[str]) -> bool:
        named = {f"test_{module.rpartition('.')[2]}" for module in modules}
        return test.stem in named or bool(self._imported(test) & modules)

    def _all(self, package: str) -> list[Path]:
        return sorted((self.tests / package).rglob("test_*.py"))

    def _imported(self, test: Path) -> set[str]:
        """By a test, or by a file beside it that it imports."""
        if test not in self._imports:
            beside = [path for path in _beside(test) if path.exists()]
            self._imports[test] = self.sources.imported_by(test).union(*map(self._imported, beside))
        return self._imports[test]


def _beside(path: Path) -> list[Path]:
    """Files that a file imports by `from .name import` or `from . import name`."""
    found: list[Path] = []
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.ImportFrom) and node.level == 1:
            names = [node.module] if node.module else [alias.name for alias in node.names]
            found += [path.with_name(f"{name}.py") for name in names]
    return found


def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_bytes())
