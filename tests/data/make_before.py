"""Write tests/data/before.tar.gz: `python -m tests.data.make_before`, when what a version leaves behind is to be kept.

It holds ledgers and checkpoints of queries that were stopped half-way. Make it anew only where a checkpoint of before
is meant to be refused.
"""

from __future__ import annotations

import tarfile
import tempfile
import time
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from tests.spark.queries_of_before import CHECKPOINT, FILES, N_BEFORE, QUERIES, Query, renamed, rows_of_batch
from tests.spark.running import write_files

from anabranch.spark import session
from anabranch.spark.spark_session import ROCKSDB

OUTPUT = Path(__file__).with_name("before.tar.gz")


def one_batch(df: DataFrame, checkpoint: Path) -> None:
    """Run a single micro-batch: the next one would come in an hour."""

    def take(batch: DataFrame, number: int) -> None:
        batch.toArrow()

    writer = df.writeStream.outputMode("update").option("checkpointLocation", str(checkpoint))
    query = writer.foreachBatch(take).trigger(processingTime="1 hour").start()
    while not query.recentProgress:
        time.sleep(0.2)
        if query.exception() is not None:
            raise query.exception()
    query.stop()


def leave(spark: SparkSession, query: Query, folder: Path) -> None:
    """Run the first batches of a query, which leave a ledger and a checkpoint in the folder."""
    files = write_files(folder.parents[1] / folder.name, [rows_of_batch(i) for i in range(N_BEFORE)])
    for _ in range(N_BEFORE):
        one_batch(query(spark, files, str(folder / "ledger")), folder / "checkpoint")
    renamed(folder / "checkpoint", {str(files): FILES, str(folder / "checkpoint"): CHECKPOINT})


def main() -> None:
    """Leave all and pack it."""
    spark = session(spark_sql_shuffle_partitions="2")
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", ROCKSDB)
    with tempfile.TemporaryDirectory() as scratch:
        for name, query in QUERIES.items():
            leave(spark, query, Path(scratch) / "before" / name)
        with tarfile.open(OUTPUT, "w:gz") as archive:
            archive.add(Path(scratch) / "before", "before", filter=_plain)
    spark.stop()


def _plain(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """Without checksums, which Hadoop would look for in vain or find stale, and without the maker's name."""
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return None if entry.name.endswith(".crc") else entry


if __name__ == "__main__":
    main()
