"""Data sources of ours in several sessions, as a notebook platform has them."""

from __future__ import annotations

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql.datasource import DataSource

from anabranch.aggregates import Count
from anabranch.spark import balance
from anabranch.spark.data_sources import load
from anabranch.spark.generator.source import generate
from anabranch.streams import Zipf

from .running import rows_of, run

pytestmark = pytest.mark.spark

WORDS = Zipf(n_tuples=300, n_keys=5, z=1.0)


class Shadow(DataSource):
    """Its name is one of Spark's own."""

    @classmethod
    def name(cls) -> str:
        return "parquet"


def test_a_second_session_runs_a_query_with_a_ledger(spark, tmp_path):
    counts = []
    for number, session in enumerate((spark, spark.newSession(), spark)):
        words = generate(session, WORDS)
        balanced = balance(words, "key", "w-choices", 2, edge="planned", ledger=str(tmp_path / f"ledger-{number}"))
        done = run(balanced.aggregate(n=Count()), tmp_path / f"checkpoint-{number}")
        counts.append(done.last(1))
    assert counts[0] == counts[1] == counts[2] == rows_of(plain(spark), 1)


def test_the_active_session_stays_what_it_was(spark):
    sessions = spark._jvm.org.apache.spark.sql.classic.SparkSession
    sessions.setActiveSession(spark._jsparkSession)
    generate(spark.newSession(), WORDS)
    assert sessions.getActiveSession().get().equals(spark._jsparkSession)


def test_a_name_that_spark_has_given_is_still_refused(spark):
    with pytest.raises(AnalysisException, match="DATA_SOURCE_ALREADY_EXISTS"):
        load(spark, Shadow, {})


def plain(spark):
    return generate(spark, WORDS, streaming=False).groupBy("key").count().toArrow()
