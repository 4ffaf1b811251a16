"""Malformed records, put aside batch by batch with the reason."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from anabranch.apps.app import App
from anabranch.apps.kafka.ends import KafkaSource
from anabranch.apps.run.checkpoint import Checkpoint
from anabranch.apps.run.notes import Note, silent
from anabranch.apps.sinks.folder import Folder
from anabranch.apps.sinks.sink import Sink
from anabranch.apps.sources.file_source import FileSource
from anabranch.apps.sources.reread import Reread
from anabranch.apps.sources.source import observed

_COMPLETE = "anabranch-dead-letters.json"


@dataclass
class DeadLetters:
    """Finds the malformed records of a batch once it is committed, and hands them to a sink.

    The query itself only counts them. A batch that has any is read again, from and to the very offsets, or the files,
    that the checkpoint has written down for it, and parsed by the same expressions; so nothing is read twice as long as
    all is well. A file in the checkpoint says up to which batch the sink is complete.

    Guarantees
    ----------
    Every malformed record of every committed batch reaches the sink under its batch number, also when the run ended
    between the commit and that. A batch that is handed in again is the same.

    Parameters
    ----------
    sink
        Where they go; None to count them only.
    reasons, example
        Malformed records that this object has seen, by reason (without the value that is at fault), and one of them.
    read, good
        Records of this run's batches, and those of them that were not malformed.
    note
        Takes a line about those that were gone before they were put aside.
    """

    source: KafkaSource | FileSource
    app: App
    columns: Mapping[str, str]
    checkpoint: Checkpoint
    sink: Sink | None = None
    reasons: Counter[str] = field(default_factory=Counter)
    example: dict[str, Any] = field(default_factory=dict)
    read: int = 0
    good: int = 0
    note: Note = silent

    @property
    def count(self) -> int:
        """Malformed records that this object has seen."""
        return self.reasons.total()

    @property
    def are_all(self) -> bool:
        """Whether this run has read records and found none that was good."""
        return self.read > 0 and self.good == 0

    def catch_up(self, spark: SparkSession) -> int:
        """Put aside those of committed batches that a run before this one did not get to; gives their number."""
        done = self.checkpoint.batches()
        return sum(self._put_aside(spark, batch) for batch in range(self._complete() + 1, done))

    def batch(self, spark: SparkSession, progress: Mapping[str, Any]) -> int:
        """Put aside those of the batch that a `StreamingQueryProgress` tells about; gives their number."""
        batch = int(progress["batchId"])
        # Spark keeps a hundred batches' progress: those that this call comes too late for are looked at all the same.
        missed = range(self._complete() + 1, batch)
        late = sum(self._put_aside(spark, earlier) for earlier in missed)
        # The good records among those were not counted; most likely there were some.
        self.good += len(missed)
        counted = observed(progress)
        if counted is not None:
            self.read += counted["records"]
            self.good += counted["records"] - counted["n"]
        if counted is not None and counted["n"] == 0:
            self._mark(batch)
            return late
        return late + self._put_aside(spark, batch, None if counted is None else counted["n"])

    def first(self, spark: SparkSession) -> str:
        """Where the first malformed row is of the batch that could not be done, and why it is one."""
        rows = self._reread(spark, self.checkpoint.batches()).rows
        found = rows.orderBy(*self.source.place).first()
        if found is None:
            return "which is not there any more"
        example = found.asDict()
        return f"{self.source.where(spark, self.app, self.columns, example)}: {example['reason']}"

    def _put_aside(self, spark: SparkSession, batch: int, counted: int | None = None) -> int:
        again = self._reread(spark, batch)
        rows = again.rows.persist()
        try:
            n = self._remember(rows)
            if n and self.sink is not None:
                self.sink.write(rows, batch)
        finally:
            rows.unpersist()
        self._tell_lost(batch, again, None if counted is None else counted - n)
        self._mark(batch)
        return n

    def _reread(self, spark: SparkSession, batch: int) -> Reread:
        return self.source.reread(spark, self.app, self.columns, self.checkpoint, batch)

    def _tell_lost(self, batch: int, again: Reread, malformed: int | None) -> None:
        """Say how many malformed rows are lost; where they were not counted, at most all that are gone."""
        if not again.gone or malformed == 0:
            return
        lost = f"{malformed:,}" if malformed is not None else "some" if again.most is None else f"up to {again.most:,}"
        self.note(
            f"{lost} malformed {self.source.rows} of batch {batch} are lost: {again.gone} before they were put aside; "
            f"the answers have all good {self.source.rows}"
        )

    def _remember(self, rows: DataFrame) -> int:
        place = self.source.place
        first = F.min_by(F.struct(*rows.columns), F.struct(*place))
        kinds = rows.groupBy(F.substring_index("reason", ": ", 1).alias("kind"))
        found = kinds.agg(F.count(F.lit(1)).alias("n"), first.alias("first")).collect()
        self.reasons.update({row["kind"]: row["n"] for row in found})
        if found and not self.example:
            examples = (row["first"].asDict() for row in found)
            self.example = min(examples, key=lambda example: [example[name] for name in place])
        return sum(row["n"] for row in found)

    @property
    def _folder(self) -> Folder:
        return Folder(self.checkpoint.uri)

    def _complete(self) -> int:
        text = self._folder.read(_COMPLETE)
        return -1 if text is None else int(json.loads(text)["complete"])

    def _mark(self, batch: int) -> None:
        self._folder.write(_COMPLETE, json.dumps({"complete": batch}) + "\n")
