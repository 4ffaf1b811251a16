"""``anabranch produce``: a stream into a topic of Kafka."""

from __future__ import annotations

import time
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated

import typer

from anabranch.cli import endpoints, options, streams
from anabranch.cli.output import print_text, say
from anabranch.errors import ConfigError, MissingExtraError, QueryError

if TYPE_CHECKING:
    from anabranch.apps.kafka.produce import Produced

_Text = str | None
_NEEDED = {"pyspark": "PySpark", "confluent_kafka": "confluent-kafka"}


def produce(
    address: Annotated[str, typer.Argument(help="Where to: kafka://HOST:PORT[,HOST:PORT]/TOPIC.", metavar="ADDRESS")],
    stream: options.Stream = None,
    input: options.Input = None,
    key: options.Key = None,
    timestamp: Annotated[
        _Text, options.STREAM.text("Time column of --input; records are sent at its pace.", "COLUMN")
    ] = None,
    columns: Annotated[
        _Text, options.STREAM.text("Columns of --input to send besides the key, as price,quantity.", "NAMES")
    ] = None,
    tuples: Annotated[
        int | None,
        options.STREAM.whole("--tuples", "Records to send, at most.  [default: 1M, or all of --input]"),
    ] = None,
    rate_: Annotated[
        float | None,
        options.OTHER.number(
            "--rate", "Records per second.  [default: as fast as it goes, or at the pace of --timestamp]", zero=False
        ),
    ] = None,
    format: Annotated[
        str,
        typer.Option(
            help="How values are written. json: an object of all columns and time. text: the key. csv: all columns, "
            "the time last. Read the topic with the same ?format=.",
            metavar="NAME",
        ),
    ] = "json",
    keyed: Annotated[
        bool,
        typer.Option(
            "--keyed",
            help="Give records their key, so that a key stays in one partition.  [default: spread evenly, no key]",
        ),
    ] = False,
    partitions: Annotated[int, options.OTHER.whole("--partitions", "Partitions of the topic, where it is made.")] = 4,
    kafka_properties: endpoints.KafkaProperties = None,
    seed: Annotated[int, options.seed("the stream; the same gives the same records")] = 0,
) -> None:
    """Stream tuples into a topic of Kafka at a given rate, with event times.

    A record's timestamp, and its field time, is the moment at which it was due. So a reader of the topic can tell how
    late its answers are. Every second, a line goes to stderr. The topic is made where it is missing. Exit 1 if a record
    could not be delivered.

    Try:

      anabranch produce kafka://127.0.0.1:9092/words --stream 'drifting(z=1.4)' --rate 20k --tuples 1M

      anabranch produce kafka://127.0.0.1:9092/trades --input trades.parquet --key symbol --columns price,qty --keyed
    """
    for module, name in _NEEDED.items():
        if find_spec(module) is None:
            raise MissingExtraError(
                f"anabranch produce needs {name}, which is not installed; install anabranch[spark,kafka]"
            )
    from anabranch.apps import KafkaAddress
    from anabranch.apps.kafka.produce import Produce

    others = tuple(name.strip() for name in columns.split(",")) if columns is not None else ()
    chosen = streams.one("produce", *streams.choose(stream, tuples, input, key, timestamp=timestamp, columns=others))
    if timestamp is not None and rate_ is not None:
        raise ConfigError("--timestamp and --rate both say when records are due; leave one of them out")
    producing = Produce(
        KafkaAddress.parse(address),
        chosen,
        rate=rate_ or 0.0,
        format=format,
        keyed=keyed,
        partitions=partitions,
        seed=seed,
        limit=tuples,
        connection=endpoints.connection(kafka_properties),
    )
    done = producing.run(_Ticker())
    delivered = done.sent - done.failed
    print_text(f"{_line(delivered, done.seconds)} to {producing.address.topic}")
    if done.failed:
        raise QueryError(f"{done.failed:,} of {done.sent:,} records were not delivered: {done.reason}; send them again")


class _Ticker:
    """Prints how far it is, every second."""

    def __init__(self) -> None:
        self._next = time.monotonic() + 1

    def __call__(self, done: Produced) -> None:
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + 1
            failed = f" · {done.failed:,} failed" if done.failed else ""
            say(_line(done.sent, done.seconds) + failed)


def _line(records: int, seconds: float) -> str:
    from anabranch.report.units import duration, rate

    return f"{records:,} records in {duration(seconds)} · {rate(records / seconds if seconds else 0)} records/s"
