"""Every test file has the place that CONTRIBUTING.md says."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
FILES = {path.relative_to(ROOT / "tests").as_posix() for path in (ROOT / "tests").rglob("test_*.py")}


def places(root: Path) -> set[str]:
    """Where the tests of the modules and packages below `root` belong, and the contracts of its packages."""
    modules = [path.relative_to(root) for path in root.rglob("*.py")]
    named = {(path if path.name != "__init__.py" else path.parent) for path in modules}
    contracts = {(path.parent / "test_contract.py").as_posix() for path in modules if path.name == "__init__.py"}
    return contracts | {(path.parent / f"test_{path.stem}.py").as_posix() for path in named}


def listed() -> set[str]:
    """The files that the table of CONTRIBUTING.md names."""
    rules = (ROOT / "CONTRIBUTING.md").read_text().split("## Where tests are", 1)[1].split("\n## ", 1)[0]
    table = "".join(line for line in rules.splitlines() if line.startswith("|"))
    return set(re.findall(r"`((?:\w+/)*test_\w+\.py)`", table))


def test_a_test_file_is_named_after_a_module_of_its_folder_or_listed():
    named = places(ROOT / "src" / "anabranch") | {f"dev/{place}" for place in places(ROOT / "dev")}
    assert FILES - named == listed()
