"""Both ends of a run, as the command line names them: sinks, dead letters, and what Spark needs to reach them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from anabranch.cli.output import print_text, say
from anabranch.errors import ConfigError, QueryError

if TYPE_CHECKING:
    from anabranch.apps import App, Connection, Pipeline, Sink, Source

CONSOLE = "console"
KafkaProperties = Annotated[
    str | None,
    typer.Option(
        help="File of Kafka client properties, such as security.protocol=SASL_SSL. They may also be in variables "
        "such as ANABRANCH_KAFKA_SECURITY_PROTOCOL.",
        metavar="FILE",
    ),
]


def sink(text: str, app: App, connection: Connection, *, adopt: bool = False) -> Sink:
    """The sink that --sink names."""
    from anabranch.apps import ConsoleSink, KafkaSink
    from anabranch.apps.sources.source import is_topic

    if is_topic(text):
        return KafkaSink(text, app.key, connection, adopt)
    if adopt:
        raise ConfigError("--adopt is for a topic that another query has written; leave it out with any other --sink")
    return ConsoleSink(app.heaviest, show=print_text) if text == CONSOLE else _kept(text, app.key, connection)


def _kept(text: str, key: str, connection: Connection) -> Sink:
    from anabranch.apps import FolderSink, KafkaSink
    from anabranch.apps.sources.source import is_topic

    return KafkaSink(text, key, connection) if is_topic(text) else FolderSink(text)


def dead_letters(text: str | None, pipeline: Pipeline, checkpoint: str | None, connection: Connection) -> Sink | None:
    """Where malformed records go; None where there are none, or nothing to keep them in."""
    if pipeline.letters is None:
        if text is not None or pipeline.strict:
            raise ConfigError("--dead-letters and --strict are for files and topics; leave them out with the generator")
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


def tell_held(pipeline: Pipeline) -> None:
    """Say how many batches are not in the answers yet, where workers hold states for several."""
    n = pipeline.checkpoint.held(pipeline.balancing.flush_every)
    if n:
        batches = "the last batch" if n == 1 else f"the last {n} batches"
        say(f"workers hold what {batches} changed; it comes out when the run goes on and there are rows to read")


def tell_malformed(pipeline: Pipeline) -> None:
    """Say where malformed records are, or, where nothing keeps them, what one was."""
    letters, sink = pipeline.letters, pipeline.dead_letters
    if letters is None or not letters.count:
        return
    example = letters.example
    of_file = "file" in example
    place = example["file"] if of_file else f"partition {example['partition']}, offset {example['offset']}"
    shown = f"{letters.count:,} malformed, such as {place}: {example['reason']}"
    nowhere = f"THEY ARE KEPT NOWHERE{' ELSE' * of_file}; add --dead-letters DIR, or --checkpoint DIR"
    say(f"{shown}; {nowhere if sink is None else f'they are in {_place(sink)}'}")


def check_some_good(pipeline: Pipeline) -> None:
    """Refuse to call a run done that read all there was and found nothing but malformed records."""
    letters = pipeline.letters
    if letters is None or not pipeline.once or not letters.are_all:
        return
    reason, _ = letters.reasons.most_common(1)[0]
    rows, how = _read_as(pipeline.source)
    raise QueryError(
        f"all {letters.read:,} {rows} that were read are malformed, most often for the reason: {reason}; {how}, and "
        "read them again with a new --checkpoint"
    )


def _read_as(source: Source) -> tuple[str, str]:
    """What a source is made of, and what may be wrong with the way in which that is read."""
    from anabranch.apps import KafkaSource

    if not isinstance(source, KafkaSource):
        return "rows", "correct --format or --column"
    written = f"they were read with format={source.records.format}"
    return "records", f"{written}: correct format= or columns= in --source, or --column"


def _place(sink: Sink) -> str:
    from anabranch.apps import FolderSink, KafkaSink

    return sink.uri if isinstance(sink, FolderSink) else sink.text if isinstance(sink, KafkaSink) else str(sink)
