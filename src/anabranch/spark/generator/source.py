"""The built-in source: the synthetic streams as a Spark data source, streaming or batch."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from anabranch.errors import ConfigError
from anabranch.kernels import njit
from anabranch.spark.data_sources import load
from anabranch.spark.generator.settings import MICROSECONDS, GeneratorSettings
from anabranch.streams import Stream
from anabranch.streams.counter_random import lane, seed_bits, uniform
from anabranch.streams.registry import written

try:
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows, SupportsTriggerAvailableNow
except ImportError:  # Spark 4.1 asks Python sources for their latest offset and nothing else
    ReadAllAvailable = ReadMaxRows = None  # type: ignore[assignment, misc]
    SupportsTriggerAvailableNow = object  # type: ignore[assignment, misc]

FORMAT = "anabranch"
_SCHEMA = "key string, value double, timestamp timestamp"
# Far above the draws that the streams take for themselves.
_VALUE_LANE = 1 << 41
_ARROW_ROWS = 16_384


def generate(
    spark: SparkSession,
    stream: Stream,
    *,
    streaming: bool = True,
    rate: float = 0.0,
    seed: int = 0,
    batch: int = 100_000,
    partitions: int = 2,
) -> DataFrame:
    """A skewed DataFrame out of nothing: columns ``key`` (text), ``value`` (1 to 100) and ``timestamp`` (event time).

    When to use it: to try a query without a source, and to load one with a known skew.

    Guarantees
    ----------
    Tuple i depends on the stream, the seed and i alone: a micro-batch that runs again has the same tuples, a query that
    resumes goes on with the next one, and neither `batch` nor `partitions` changes any of them.

    Parameters
    ----------
    stream
        Any synthetic stream of `anabranch.streams`; its length is where the data ends.
    streaming
        False gives a batch DataFrame of the whole stream.
    rate
        Tuples per second, by the clock; 0 is as fast as the query takes them. Event time advances at this rate (at 0:
        by a microsecond per tuple) from the moment the query was first started, or from 1970 in a batch DataFrame.
    seed
        Selects the tuples.
    batch
        Most tuples in a micro-batch (on Spark 4.1, of a stream that never ends).
    partitions
        Slices of a micro-batch, each read by its own task.

    Examples
    --------
    >>> from anabranch.spark import session
    >>> from anabranch.streams import Zipf
    >>> words = generate(session(), Zipf(n_tuples=1_000_000, n_keys=1000, z=1.4))  # doctest: +SKIP
    """
    options = {"rate": repr(rate), "seed": str(seed), "batch": str(batch), "partitions": str(partitions)}
    options["stream"] = written(stream)
    GeneratorSettings.of(options)
    return load(spark, Generator, options, streaming=streaming)


class Generator(DataSource):
    """``spark.readStream.format("anabranch")``, once `spark.dataSource.register(Generator)` has been called.

    Options: ``stream`` (a text that `streams.parse` reads), ``tuples`` (where it ends; never, unless given), and
    ``seed``, ``rate``, ``batch`` and ``partitions`` as in `generate`. ``start`` is the event time of tuple 0, in ISO
    8601. The brackets of ``stream`` may hold all of them: ``zipf(z=1.4, rate=2k)``.
    """

    @classmethod
    def name(cls) -> str:
        """Name of the format."""
        return FORMAT

    def schema(self) -> str:
        """Key, value and event time."""
        return _SCHEMA

    def reader(self, schema: StructType) -> DataSourceReader:
        """For `spark.read`: the whole stream."""
        return _Reader(GeneratorSettings.of(self.options))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """For `spark.readStream`."""
        return GeneratorStreamReader(GeneratorSettings.of(self.options))


@dataclass
class Slice(InputPartition):
    """Tuples `first` to `stop` (exclusive); `started` is tuple 0's event time in microseconds since 1970."""

    first: int
    stop: int
    started: int


def slices(settings: GeneratorSettings, first: int, stop: int, started: int) -> list[Slice]:
    """Cut a range of tuples into at most `settings.partitions` slices of almost equal length, none of them empty."""
    n = min(settings.partitions, stop - first)
    bounds = [first + (stop - first) * i // n for i in range(n + 1)] if n > 0 else [first]
    return [Slice(low, high, started) for low, high in pairwise(bounds)]


class _Reader(DataSourceReader):
    def __init__(self, settings: GeneratorSettings) -> None:
        if settings.tuples is None:
            raise ConfigError("a batch DataFrame must end, got no tuples; add the option tuples, or use readStream")
        self.settings, self.tuples = settings, settings.tuples

    def partitions(self) -> list[Slice]:
        return slices(self.settings, 0, self.tuples, self.settings.start or 0)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Slice)
        return read_slice(self.settings, partition)


class GeneratorStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Offsets are ``{"tuple": i, "started": µs}``: tuples before i have been read, and the stream's time began then.

    Spark keeps one in a Python process beside the driver, and calls `read` alone in tasks.
    """

    def __init__(self, settings: GeneratorSettings) -> None:
        self.settings = settings
        # Where a trigger for what is there now has stopped the clock, and a stream without clock and end.
        self._stopped_s: float | None = None
        self._stopped_at: int | None = None
        # Spark 4.1 does not say where a batch starts: it is where the last one that it asked for ended.
        self._position: dict[str, int] | None = None

    def initialOffset(self) -> dict[str, int]:
        started = self.settings.start
        return {"tuple": 0, "started": int(time.time() * MICROSECONDS) if started is None else started}

    def getDefaultReadLimit(self) -> Any:
        return ReadMaxRows(self.settings.batch)

    def prepareForTriggerAvailableNow(self) -> None:
        self._stopped_s = time.time()

    def latestOffset(self, start: dict[str, int] | None = None, limit: object = None) -> dict[str, int]:
        """Where the next batch ends: after all tuples that are there by now, or after `batch` of them."""
        if start is None:
            # Spark 4.1 makes one batch of what is there now, so a stream that ends must be in it as a whole.
            start, takes_all = self._position or self.initialOffset(), self.settings.tuples is not None
        else:
            takes_all = ReadAllAvailable is not None and isinstance(limit, ReadAllAvailable)
        end = self._tuples_by_now(start)
        if not takes_all:
            end = min(end, start["tuple"] + self.settings.batch)
        return {**start, "tuple": max(start["tuple"], end)}

    def _tuples_by_now(self, start: dict[str, int]) -> int:
        """Tuples that are there: as many as the rate allows, or all, or, of an endless stream, one batch more."""
        settings = self.settings
        if settings.rate > 0:
            now_s = time.time() if self._stopped_s is None else self._stopped_s
            due = int(max(0.0, now_s - start["started"] / MICROSECONDS) * settings.rate)
            return due if settings.tuples is None else min(due, settings.tuples)
        if settings.tuples is not None:
            return settings.tuples
        if self._stopped_s is None:
            return start["tuple"] + settings.batch
        self._stopped_at = self._stopped_at or start["tuple"] + settings.batch
        return self._stopped_at

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[Slice]:
        self._position = end
        return slices(self.settings, start["tuple"], end["tuple"], end["started"])

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Slice)
        return read_slice(self.settings, partition)


def read_slice(settings: GeneratorSettings, part: Slice) -> Iterator[pa.RecordBatch]:
    """The tuples of a slice, as Arrow batches."""
    first = part.first
    for batch in settings.stream.batches(settings.seed, _ARROW_ROWS, start=part.first, stop=part.stop):
        yield _rows(settings, batch["key"], first, part.started)
        first += batch.num_rows


def _rows(settings: GeneratorSettings, keys: pa.Array, first: int, started: int) -> pa.RecordBatch:
    values = np.empty(len(keys), dtype=np.float64)
    _fill_values(seed_bits(settings.seed), first, values)
    elapsed = np.arange(first, first + len(keys)) * (MICROSECONDS / (settings.rate or MICROSECONDS))
    times = pa.array(started + elapsed.astype(np.int64)).cast(pa.timestamp("us", tz="UTC"))
    columns: Mapping[str, pa.Array] = {"key": keys.cast(pa.string()), "value": pa.array(values), "timestamp": times}
    return pa.record_batch(columns)


@njit(cache=True)
def _fill_values(seed: np.uint64, first: int, out: NDArray[np.float64]) -> None:
    """Cents from 1.00 to 100.99, like prices."""
    start = lane(seed, _VALUE_LANE)
    for i in range(out.size):
        out[i] = np.floor(100.0 + 10_000.0 * uniform(start, first + i)) / 100.0
