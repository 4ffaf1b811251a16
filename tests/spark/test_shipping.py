"""What goes to the hosts of a cluster."""

from __future__ import annotations

import os
import tarfile
from pathlib import Path

import pytest

import anabranch
from anabranch.spark.shipping import pack, shipped

PACKAGE = Path(anabranch.__file__).parent


def test_the_archive_is_the_package_with_its_kernels(tmp_path):
    with tarfile.open(pack(str(tmp_path))) as archive:
        found = {member.name: member.mtime for member in archive.getmembers()}
    sources = [path for path in PACKAGE.rglob("*.py") if "__pycache__" not in path.parts]
    assert set(found) >= {str(path.relative_to(PACKAGE.parent)) for path in sources}
    assert {Path(name).suffix for name in found} <= {".py", ".typed", ".nbi", ".nbc", ".digest"}
    # A numba that goes by times would compile everything anew.
    assert found["anabranch/kernels.py"] == pytest.approx((PACKAGE / "kernels.py").stat().st_mtime, abs=1e-6)
    # Without it, hosts would take the kernels for stale.
    assert "anabranch/__pycache__/kernels.digest" in found


@pytest.mark.parametrize(
    ("master", "name"),
    [
        ("spark://host:7077", "spark.archives"),
        ("k8s://https://host", "spark.archives"),
        ("yarn", "spark.yarn.dist.archives"),
    ],
)
def test_what_the_settings_say_stays(master, name):
    given = {name: "mine.zip#mine", "spark.executorEnv.PYTHONPATH": "mine", "spark.app.name": "a"}
    settings = shipped(given, master)
    ours, theirs = settings[name].split(",")
    assert (theirs, settings["spark.app.name"]) == ("mine.zip#mine", "a")
    assert Path(ours.removesuffix("#anabranch_package")).exists()
    assert settings["spark.executorEnv.PYTHONPATH"] == os.pathsep.join(["anabranch_package", "mine"])
    assert shipped({}, master)["spark.executorEnv.PYTHONPATH"] == "anabranch_package"
