"""Whose answers a topic holds: every record names its query, and a topic takes those of one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from operator import or_

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from anabranch.apps.kafka.address import KafkaAddress
from anabranch.apps.kafka.connection import Connection
from anabranch.apps.kafka.topic_notes import Adopted, TopicNotes
from anabranch.apps.kafka.topics import Tail, tails, topic_id
from anabranch.apps.sinks.sink import BATCH
from anabranch.errors import ConfigError, InputError

HEADER = "anabranch-query"


@dataclass(frozen=True)
class Owner:
    """The query whose answers a topic gets.

    Parameters
    ----------
    query
        Name of its checkpoint.
    first
        What its batch 0 is numbered in the topic.
    """

    query: str
    first: int = 0

    def headers(self) -> Column:
        """Headers of its records, as Spark's connector takes them."""
        named = F.struct(F.lit(HEADER).alias("key"), F.lit(self.query).cast("binary").alias("value"))
        return F.array(named).alias("headers")


@dataclass(frozen=True)
class Answers:
    """What a topic has of answers.

    Parameters
    ----------
    highest
        The highest batch number; -1 where there is none.
    foreign
        Rows that the query has neither written nor adopted.
    """

    highest: int
    foreign: int


@dataclass(frozen=True)
class SinkTopic:
    """A topic for answers, as a query finds it before it starts.

    Guarantees
    ----------
    A topic that ends with records of another query, or with records that name no query, is refused, or adopted where
    that is asked for. In an adopted topic the batch numbers of this query are higher than all that was there. So the
    row with the highest batch number is its own, for each key that it has an answer for. A query that has answered
    before does not adopt answers of another one, because its own rows of keys that do not change again would stay
    behind them.

    Parameters
    ----------
    answered
        Batches that the query has answered.
    """

    address: KafkaAddress
    connection: Connection
    notes: TopicNotes
    answered: int = 0

    def owner(self, spark: SparkSession, query: str, *, adopt: bool) -> Owner:
        """The query as the owner of this topic; ConfigError where it is another's."""
        ends = self._tails()
        # A topic that is made again under its name is another one. Brokers of before 2.8 cannot tell.
        name = topic_id(self._properties, self.address.topic) or self.address.topic
        adopted = self.notes.adopted(name)
        foreign = {p: t.end - 1 for p, t in ends.items() if t.mark != query and t.end > adopted.ends.get(p, 0)}
        if not foreign:
            return Owner(query, adopted.first)
        if not adopt:
            partition, offset = min(foreign.items())
            raise ConfigError(
                f"topic {self.address.topic} holds records that are not of this query, such as partition {partition}, "
                f"offset {offset}, and its rows would be mixed up with them; choose another topic or the checkpoint of "
                "the query that wrote them, or take the topic over with --adopt, which goes on with higher batch "
                "numbers"
            )
        answers = self._answers(spark, query, ends, adopted)
        if answers.foreign and self.answered:
            raise ConfigError(
                f"topic {self.address.topic} holds answers of other queries, {answers.foreign:,} in all, and this "
                f"one has answered before (batches: {self.answered:,}): keys that do not change again would keep the "
                "rows of the others; start with a new checkpoint and --adopt, or choose another topic"
            )
        adopted = Adopted(answers.highest + 1, {p: tail.end for p, tail in ends.items()})
        self.notes.adopt(name, adopted)
        return Owner(query, adopted.first)

    def _tails(self) -> Mapping[int, Tail]:
        try:
            return tails(self._properties, self.address.topic, HEADER) or {}
        except Exception as error:  # py4j has one class for whatever Java throws
            why = self.connection.redacted(str(getattr(error, "java_exception", error)))
            raise InputError(
                f"cannot read the last records of topic {self.address.topic}, which say whose answers it holds: {why}; "
                "let this user read it"
            ) from None

    def _answers(self, spark: SparkSession, query: str, ends: Mapping[int, Tail], adopted: Adopted) -> Answers:
        """The answers in the topic; those that this query has adopted count as its own."""
        topic = self.address.topic
        options = {
            "assign": json.dumps({topic: [*ends]}),
            "startingOffsets": json.dumps({topic: {str(p): -2 for p in ends}}),
            "endingOffsets": json.dumps({topic: {str(p): tail.end for p, tail in ends.items()}}),
            "includeHeaders": "true",
        }
        rows = spark.read.format("kafka").options(**options | self.address.options(self.connection)).load()
        batch = F.get_json_object(F.col("value").cast("string"), f"$.{BATCH}").try_cast("long")
        own = F.exists("headers", lambda header: (header.key == HEADER) & (header.value == F.lit(query).cast("binary")))
        known = [(F.col("partition") == p) & (F.col("offset") < at) for p, at in adopted.ends.items()]
        foreign = ~reduce(or_, known, F.coalesce(own, F.lit(False)))
        found = rows.select(batch.alias("batch"), foreign.alias("foreign")).where("batch IS NOT NULL")
        highest, others = found.agg(F.max("batch"), F.count_if("foreign")).collect()[0]
        return Answers(-1 if highest is None else int(highest), int(others))

    @property
    def _properties(self) -> Mapping[str, str]:
        return self.address.properties(self.connection)
