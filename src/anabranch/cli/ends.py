"""Both ends of a run, as the command line names them: sinks, dead letters, and what Spark needs to reach them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from anabranch.errors import ConfigError, QueryError

if TYPE_CHECKING:
    from anabranch.apps import App, Connection, Pipeline, Sink

CONSOLE = "console"
KafkaProperties = Annotated[
    str | None,
    typer.Option(
        help="File of Kafka client properties, such as security.protocol=SASL_SSL. They may also be in variables "
        "such as ANABRANCH_KAFKA_SECURITY_PROTOCOL.",
        metavar="FILE",
    ),
]


def sink(text: str, app: App, connection: Connection) -> Sink:
    """The sink that --sink names."""
    from anabranch.apps import ConsoleSink

    return ConsoleSink(app.heaviest, show=typer.echo) if text == CONSOLE else _kept(text, app.key, connection)


def _kept(text: str, key: str, connection: Connection) -> Sink:
    from anabranch.apps import FolderSink, KafkaSink
    from anabranch.apps.source import is_topic

    return KafkaSink(text, key, connection) if is_topic(text) else FolderSink(text)


def dead_letters(text: str | None, pipeline: Pipeline, checkpoint: str | None, connection: Connection) -> Sink | None:
    """Where malformed records go; None where there are none, or nothing to keep them in."""
    if pipeline.letters is None:
        if text is not None:
            raise ConfigError("--dead-letters is for records of a topic; leave it out with any other --source")
        return None
    place = text or (f"{checkpoint.rstrip('/')}/dead-letters" if checkpoint else None)
    return None if place is None else _kept(place, "key", connection)


def connection(file: str | None) -> Connection:
    """What --kafka-properties and the environment say."""
    from anabranch.apps import Connection

    return Connection.load(file)


def session_settings(jars: str | None, packages: str | None, given: list[str] | None) -> dict[str, str]:
    """Settings of the session: those given, and those that bring more classes."""
    conf = dict(_setting(text) for text in given or ())
    conf |= {} if packages is None else {"spark_jars_packages": packages}
    if jars is None:
        return conf
    if not os.path.isdir(jars):
        missing = [path for path in jars.split(",") if "://" not in path and not os.path.exists(path)]
        if missing:
            raise ConfigError(f"--jars must name a folder with jars, or jars, got {missing[0]!r}, which is not there")
        return conf | {"spark_jars": jars}
    found = sorted(str(path) for path in Path(jars).absolute().glob("*.jar"))
    if not found:
        raise ConfigError(f"--jars must name a folder with jars, got {jars!r}, which has none")
    return conf | {"spark_jars": ",".join(found)}


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (equals and name.startswith("spark.")):
        raise ConfigError(f"--conf takes NAME=VALUE, as in spark.executor.memory=4g, got {text!r}")
    return name, value


def tell_malformed(pipeline: Pipeline, in_files: int) -> None:
    """Say where malformed records are, or, where nothing keeps them, what one was. `in_files`: lines of files."""
    letters, sink = pipeline.letters, pipeline.dead_letters
    if letters is None and in_files:
        typer.echo(f"{in_files:,} malformed: lines that are no JSON, left out; they are still in their files", err=True)
    if letters is None or not letters.count:
        return
    example = letters.example
    place = f"partition {example['partition']}, offset {example['offset']}"
    shown = f"{letters.count:,} malformed, such as {place}: {example['reason']}"
    nowhere = "THEY ARE KEPT NOWHERE; add --dead-letters DIR, or --checkpoint DIR"
    typer.echo(f"{shown}; {nowhere if sink is None else f'they are in {_place(sink)}'}", err=True)


def check_some_good(pipeline: Pipeline) -> None:
    """Refuse to call a run done that read all there was and found nothing but malformed records."""
    from anabranch.apps import KafkaSource

    letters = pipeline.letters
    if letters is None or not pipeline.once or not letters.are_all:
        return
    assert isinstance(pipeline.source, KafkaSource)
    reason, _ = letters.reasons.most_common(1)[0]
    raise QueryError(
        f"all {letters.read:,} records that were read are malformed, most often for the reason: {reason}; they were "
        f"read with format={pipeline.source.records.format}: correct format= or columns= in --source, or --column, and "
        "read them again with a new --checkpoint"
    )


def _place(sink: Sink) -> str:
    from anabranch.apps import FolderSink, KafkaSink

    return sink.uri if isinstance(sink, FolderSink) else sink.text if isinstance(sink, KafkaSink) else str(sink)
