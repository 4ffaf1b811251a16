"""``anabranch produce``: a stream into a topic of Kafka."""

from __future__ import annotations

import time
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from anabranch.cli import ends, streams, values
from anabranch.cli import stream_options as options
from anabranch.cli.output import print_text, say
from anabranch.errors import ConfigError, MissingExtraError, QueryError

if TYPE_CHECKING:
    from anabranch.apps.kafka.produce import Produced
    from anabranch.streams import Stream

_Text = str | None
_NEEDED = {"pyspark": "PySpark", "confluent_kafka": "confluent-kafka"}


def produce(
    address: Annotated[str, typer.Argument(help="Where to: kafka://HOST:PORT[,HOST:PORT]/TOPIC.", metavar="ADDRESS")],
    stream: options.Name = None,
    input: options.Input = None,
    key: options.Key = None,
    timestamp: Annotated[
        _Text,
        typer.Option(help="Time column of --input; records are sent at its pace.", metavar="COLUMN"),
    ] = None,
    columns: Annotated[
        _Text, typer.Option(help="Columns of --input to send besides the key, as price,quantity.", metavar="NAMES")
    ] = None,
    tuples: Annotated[
        _Text, typer.Option(help="Records to send, at most.  [default: 1M, or all of --input]", metavar="N")
    ] = None,
    keys: Annotated[_Text, options.one("keys")] = None,
    z: Annotated[_Text, options.one("z")] = None,
    flip: Annotated[_Text, options.one("flip")] = None,
    every: Annotated[_Text, options.one("every")] = None,
    period: Annotated[_Text, options.one("period")] = None,
    phases: Annotated[_Text, options.one("phases")] = None,
    share: Annotated[_Text, options.one("share")] = None,
    length: Annotated[_Text, options.one("length")] = None,
    mu: Annotated[_Text, options.one("mu")] = None,
    sigma: Annotated[_Text, options.one("sigma")] = None,
    skew_percent: Annotated[_Text, options.one("skew-percent")] = None,
    half_skew: options.HalfSkew = False,
    values_: Annotated[_Text, options.one("values")] = None,
    locality: Annotated[_Text, options.one("locality")] = None,
    padding: Annotated[_Text, options.one("padding")] = None,
    rate_: Annotated[
        _Text,
        typer.Option(
            "--rate",
            help="Records per second.  [default: as fast as it goes, or at the pace of --timestamp]",
            metavar="NUMBER",
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
    partitions: Annotated[str, typer.Option(help="Partitions of the topic, where it is made.", metavar="N")] = "4",
    kafka_properties: ends.KafkaProperties = None,
    seed: Annotated[int, typer.Option(help="Seed of the stream; the same gives the same records.", metavar="N")] = 0,
) -> None:
    """Stream tuples into a topic of Kafka at a given rate, with event times.

    A record's timestamp, and its field time, is the moment at which it was due: what reads the topic can tell how late
    its answers are. A line a second goes to stderr. The topic is made where it is missing. Exit 1 if a record could not
    be delivered.

    Try:

      anabranch produce kafka://127.0.0.1:9092/words --stream drifting --z 1.4 --rate 20k --tuples 1M

      anabranch produce kafka://127.0.0.1:9092/trades --input trades.parquet --key symbol --columns price,qty --keyed
    """
    for module, name in _NEEDED.items():
        if find_spec(module) is None:
            raise MissingExtraError(
                f"anabranch produce needs {name}, which is not installed; install anabranch[spark,kafka]"
            )
    from anabranch.apps import KafkaAddress
    from anabranch.apps.kafka.produce import Produce

    given = {"keys": keys, "z": z, "flip": flip, "mu": mu, "sigma": sigma, "skew_percent": skew_percent}
    given |= {"every": every, "period": period, "phases": phases, "share": share, "length": length}
    given |= {"values": values_, "locality": locality, "padding": padding}
    values.check_at_least(seed, "--seed", 0)
    if input is not None:
        if stream is not None or half_skew or any(given.values()):
            raise ConfigError("--input replays a file and takes no --stream or its parameters; leave one of them out")
        chosen = _replay(input, key, timestamp, columns)
    else:
        if any(text is not None for text in (key, timestamp, columns)):
            raise ConfigError("--key, --timestamp and --columns name columns of --input; give --input FILE with them")
        chosen = _synthetic(stream, tuples, given, half_skew)
    if timestamp is not None and rate_ is not None:
        raise ConfigError("--timestamp and --rate both say when records are due; leave one of them out")
    producing = Produce(
        KafkaAddress.parse(address),
        chosen,
        rate=0.0 if rate_ is None else values.number(rate_, "--rate", zero=False),
        format=format,
        keyed=keyed,
        partitions=values.whole(partitions, "--partitions", at_least=1),
        seed=seed,
        limit=None if tuples is None else streams.n_tuples(tuples),
        connection=ends.connection(kafka_properties),
    )
    done = producing.run(_Ticker())
    delivered = done.sent - done.failed
    print_text(f"{_line(delivered, done.seconds)} to {producing.address.topic}")
    if done.failed:
        raise QueryError(f"{done.failed:,} of {done.sent:,} records were not delivered: {done.reason}; send them again")


def _replay(path: Path, key: str | None, timestamp: str | None, columns: str | None) -> Stream:
    from anabranch.streams import Replay

    if key is None:
        raise ConfigError("--input needs --key COLUMN: which column holds the key?")
    others = () if columns is None else tuple(name.strip() for name in columns.split(","))
    return Replay(str(path), key, timestamp=timestamp, columns=others)


def _synthetic(name: str | None, tuples: str | None, given: dict[str, str | None], half_skew: bool) -> Stream:
    make, vary = streams.synthetic(name or "zipf", tuples or "1M", given, half_skew)
    if any(len(listed) > 1 for listed in vary.values()):
        raise ConfigError("produce takes one value per parameter; it sends one stream")
    return make(**{parameter: listed[0] for parameter, listed in vary.items()})


class _Ticker:
    """Prints how far it is, once a second."""

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
