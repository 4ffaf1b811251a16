"""Skewed Parquet files and a quiet session for the benchmarks on Spark."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from anabranch.spark import session
from anabranch.streams import Zipf


def write_zipf(folder: Path, *, n_tuples: int, n_files: int, z: float = 1.4, n_keys: int = 100_000) -> Path:
    """`n_files` files with keys as text and a double, unless they are there."""
    folder.mkdir(parents=True, exist_ok=True)
    stream = Zipf(n_tuples=n_tuples, n_keys=n_keys, z=z)
    each = n_tuples // n_files
    for i in range(n_files):
        path = folder / f"part-{i:03d}.parquet"
        if path.exists():
            continue
        (batch,) = stream.batches(seed=1, size=each, start=i * each, stop=(i + 1) * each)
        keys = pc.binary_join_element_wise("key-", pc.utf8_lpad(batch["key"].cast(pa.string()), 6, "0"), "")
        values = np.random.default_rng(i).random(each)
        temporary = path.with_suffix(".tmp")
        pq.write_table(pa.table({"key": keys, "value": values}), temporary)
        temporary.rename(path)
    return folder


def quiet_session(master: str, **conf: str) -> SparkSession:
    """A session for timing."""
    logging.getLogger("py4j").setLevel(logging.ERROR)
    # Shuffle files in memory-backed folders would hide what they cost on a cluster's disks; the default is kept.
    return session("anabranch-benchmark", master=master, **conf)


def run(df: DataFrame) -> None:
    """Compute every row of a batch DataFrame and drop it."""
    df.write.format("noop").mode("overwrite").save()
