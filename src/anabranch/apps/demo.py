"""One skewed stream through real micro-batches under several groupings, with the answers compared."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import SparkSession

from anabranch.apps.balancing import DEFAULT_GROUPING, Balancing
from anabranch.apps.run.checkpoint import Checkpoint
from anabranch.apps.run.pipeline import Events, Pipeline
from anabranch.apps.sinks.sink import MemorySink
from anabranch.apps.sources.source import GeneratorSource
from anabranch.apps.word_count import WordCount
from anabranch.errors import ConfigError
from anabranch.groupings import Grouping, KeyGrouping
from anabranch.spark.generator.settings import GeneratorSettings
from anabranch.spark.progress import BatchMetrics

_WARM_UP = "generator:zipf(z=1.4, keys=1k, tuples=4k)"


@dataclass(frozen=True)
class Trial:
    """What a grouping did with the stream.

    Parameters
    ----------
    grouping
        Its name.
    batches
        Metrics of its micro-batches.
    counts
        Its answer: how often each word came.
    """

    grouping: str
    batches: tuple[BatchMetrics, ...]
    counts: dict[str, int]


@dataclass(frozen=True)
class Demo:
    """Counts a drifting stream of words under key grouping and another one; workers take a fixed time a tuple.

    The time a tuple is a delay, so that a session with a thread per worker behaves as that many machines would.

    Parameters
    ----------
    source
        The stream; it must end.
    groupings
        Run one after the other, on the same tuples.
    n_workers, work_us
        Workers, and microseconds that each takes a tuple.
    """

    source: GeneratorSource
    groupings: tuple[Grouping, ...] = field(default=(KeyGrouping(), DEFAULT_GROUPING))
    n_workers: int = 16
    work_us: float = 400.0

    def __post_init__(self) -> None:
        if not self.groupings:
            raise ConfigError("the demo needs at least one grouping, got none")
        if self._settings.tuples is None:
            raise ConfigError("the demo's stream must end, got no tuples; add tuples=N to it")

    def trials(
        self, spark: SparkSession, on_batch: Callable[[str, BatchMetrics], None] | None = None
    ) -> Iterator[Trial]:
        """Run the groupings; `on_batch` takes the name of the grouping with each batch that is done."""
        self._warm_up(spark)
        for grouping in self.groupings:
            batches: list[BatchMetrics] = []

            def done(metrics: BatchMetrics, name: str = grouping.name, to: list[BatchMetrics] = batches) -> None:
                to.append(metrics)
                if on_batch is not None:
                    on_batch(name, metrics)

            balancing = Balancing(grouping, self.n_workers, work_us=self.work_us)
            answer = _counts(spark, self.source, balancing, Events(on_batch=done))
            yield Trial(grouping.name, tuple(batches), answer)

    def exact_counts(self) -> dict[str, int]:
        """How often each word is in the stream, counted without Spark."""
        counts: Counter[str] = Counter()
        for batch in self._settings.stream.batches(self._settings.seed, 1 << 20):
            found = batch["key"].value_counts()
            counts.update(dict(zip(map(str, found.field(0).to_pylist()), found.field(1).to_pylist(), strict=True)))
        return dict(counts)

    @property
    def _settings(self) -> GeneratorSettings:
        return GeneratorSettings.of(self.source.options())

    def _warm_up(self, spark: SparkSession) -> None:
        """Start Python workers and load kernels, so that the first trial does not pay for the second."""
        for grouping in self.groupings:
            _counts(spark, GeneratorSource(_WARM_UP), Balancing(grouping, self.n_workers), Events())


def _counts(spark: SparkSession, source: GeneratorSource, balancing: Balancing, events: Events) -> dict[str, int]:
    sink = MemorySink()
    with tempfile.TemporaryDirectory(prefix="anabranch-demo-") as folder:
        checkpoint = Checkpoint(str(Path(folder) / "checkpoint"))
        pipeline = Pipeline(WordCount(), source, sink, checkpoint, balancing, once=True)
        pipeline.run(spark, events)
    return {word: row["count"] for word, row in sink.latest("word").items()}
