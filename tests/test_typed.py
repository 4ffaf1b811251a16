"""A user's type checker sees our types."""

from __future__ import annotations

from pathlib import Path

import pytest

import anabranch

SCRIPT = """
from pyspark.sql import SparkSession
import anabranch
balanced = anabranch.spark.balance(SparkSession.active().range(3), "id", edge="planned")
reveal_type(balanced)
reveal_type(balanced.aggregate(n=anabranch.aggregates.Count()))
"""
PACKAGE = Path(anabranch.__file__).parent


@pytest.mark.slow
def test_a_script_of_a_user_has_types(tmp_path, monkeypatch):
    api = pytest.importorskip("mypy.api")
    pytest.importorskip("pyspark")
    (tmp_path / "user.py").write_text(SCRIPT)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MYPYPATH", str(PACKAGE.parent))
    out, err, status = api.run(["--config-file=", "--follow-imports=silent", "--cache-dir=.mypy", "user.py"])
    assert status == 0, out + err
    assert [line.partition("note: ")[2] for line in out.splitlines()[:2]] == [
        'Revealed type is "anabranch.spark.balanced.Balanced"',
        'Revealed type is "pyspark.sql.dataframe.DataFrame"',
    ]
    # Without it the types of an installed package do not count.
    assert (PACKAGE / "py.typed").exists()
