"""What importing costs, and that what is promised is there."""

from __future__ import annotations

import importlib
import pkgutil
import subprocess
import sys

import pytest

import anabranch

HEAVY = {"matplotlib", "numba", "numpy", "pandas", "plotly", "pyarrow", "pyspark", "rich"}
ALL = {"anabranch"} | {
    module.name for module in pkgutil.walk_packages(anabranch.__path__, "anabranch.") if module.ispkg
}
# Other folders are rooms of these, which export for them.
PACKAGES = sorted(name for name in ALL if hasattr(importlib.import_module(name), "__all__"))


def loaded_by(code: str) -> set[str]:
    """Top-level modules that are loaded when the code has run."""
    report = "import sys; print('\\nLOADED', *{name.partition('.')[0] for name in sys.modules})"
    script = f"try:\n    exec({code!r})\nexcept SystemExit:\n    pass\n{report}"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    return set(done.stdout.splitlines()[-1].split()[1:])


def test_importing_anabranch_loads_nothing_heavy():
    assert not HEAVY & loaded_by("import anabranch")


def test_help_loads_neither_numba_nor_spark():
    loaded = loaded_by("import sys; sys.argv = ['anabranch', '--help']; from anabranch.cli import main; main()")
    assert "typer" in loaded
    assert not {"matplotlib", "numba", "pandas", "plotly", "pyarrow", "pyspark"} & loaded


def test_simulating_loads_neither_plotting_nor_spark():
    loaded = loaded_by("import anabranch.simulate")
    assert {"numba", "pyarrow"} <= loaded
    assert not {"matplotlib", "plotly", "pyspark"} & loaded


@pytest.mark.parametrize("package", PACKAGES)
def test_every_name_that_a_package_exports_is_there(package):
    module = importlib.import_module(package)
    assert len(module.__all__) == len(set(module.__all__))
    for name in module.__all__:
        assert getattr(module, name) is not None


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_lists_its_public_names_and_not_its_files(package):
    module = importlib.import_module(package)
    assert set(dir(module)) - {"__version__"} == set(module.__all__)


@pytest.mark.parametrize("package", sorted(set(PACKAGES) - {"anabranch"}))
def test_no_package_exports_a_name_that_one_of_its_modules_has(package):
    """Which of the two `package.name` means would depend on what was imported before."""
    module = importlib.import_module(package)
    files = {found.name for found in pkgutil.iter_modules(module.__path__)}
    assert not files & set(module.__all__)


def test_subpackages_are_listed_and_an_unknown_one_is_an_attribute_error():
    assert set(anabranch.__all__) <= set(dir(anabranch))
    with pytest.raises(AttributeError, match="has no attribute 'nope'"):
        _ = anabranch.nope
