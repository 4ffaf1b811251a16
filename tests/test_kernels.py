"""Compiled kernels do not outlive the sources they came from."""

from __future__ import annotations

import numpy as np

from anabranch import kernels


def package(folder):
    (folder / "inner" / "__pycache__").mkdir(parents=True)
    (folder / "inner" / "kernel.py").write_text("from anabranch.kernels import njit\n")
    (folder / "without").mkdir()
    stored = folder / "inner" / "__pycache__" / "kernel.f-1.py311.nbi"
    stored.write_bytes(b"compiled")
    return stored


def test_kernels_are_dropped_when_any_source_changes(tmp_path):
    stored = package(tmp_path)
    kernels.drop_stale(tmp_path, kernels.digest(tmp_path))
    assert not stored.exists(), "without a stamp nobody knows what they were compiled from"
    stored.write_bytes(b"compiled")
    kernels.drop_stale(tmp_path, kernels.digest(tmp_path))
    assert stored.exists()
    (tmp_path / "without" / "other.py").write_text("y = 2\n")
    kernels.drop_stale(tmp_path, kernels.digest(tmp_path))
    assert stored.exists(), "a subpackage without kernels does not matter to them"
    for changed in ("other.py", "inner/constants.py", "inner/kernel.py"):
        (tmp_path / changed).write_text("njit = 2\n")
        kernels.drop_stale(tmp_path, kernels.digest(tmp_path))
        assert not stored.exists()
        stored.write_bytes(b"compiled")


def test_every_kernel_comes_from_here():
    """A kernel decorated with numba's own njit could be loaded before stale ones are dropped."""
    sources = kernels._PACKAGE.rglob("*.py")
    assert [path.name for path in sources if "from numba import" in path.read_text()] == ["kernels.py"]


def test_the_package_cannot_be_written_to(tmp_path, monkeypatch):
    def refuse(package, current):
        raise PermissionError

    monkeypatch.setattr(kernels, "drop_stale", refuse)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(kernels.numba.config, "CACHE_DIR", "")
    kernels._prepare()
    assert str(tmp_path / "anabranch" / kernels.digest(kernels._PACKAGE)) == kernels.numba.config.CACHE_DIR


def test_kernels_still_run():
    from anabranch.hashing import MultiplyShift

    assert MultiplyShift().first(np.array([2**63], dtype=np.uint64), 4, 0).tolist() == [2]
