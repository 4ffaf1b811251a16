"""``anabranch run``: an application on a stream."""

from __future__ import annotations

import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Any

import typer

from anabranch.cli import endpoints
from anabranch.cli.output import print_table, say
from anabranch.cli.values import Section
from anabranch.errors import ConfigError, MissingExtraError

if TYPE_CHECKING:
    from anabranch.apps import App, Events, Pipeline

_Text = str | None
_DEFAULT = "spillway"
_ENDS = Section("Where tuples come from, and where answers go")
_KEYS = Section("How keys are spread")
_SPARK = Section("Spark")


def run(
    app: Annotated[_Text, typer.Argument(help="Application; without one, the list of them.", metavar="APP")] = None,
    source: Annotated[
        _Text,
        _ENDS.text(
            "Folder of text, CSV, JSON or Parquet files, to which files may be added while it runs, or a "
            "pattern such as 'logs/*.csv', but no single file; "
            "'kafka://HOST:PORT/TOPIC?format=json&from=earliest' for a topic (formats json, text, csv; csv takes "
            "columns=a,b,c; failOnDataLoss=false skips records that the topic has removed unread); or "
            "'generator:zipf(z=1.4, keys=100k, rate=50k, tuples=1M)' for a stream of anabranch streams.",
            "DIR|URL",
        ),
    ] = None,
    format: Annotated[
        _Text, _ENDS.text("text, csv, json or parquet.  [default: by the files' endings; Kafka: json]", "NAME")
    ] = None,
    column: Annotated[
        list[str] | None,
        _ENDS.text("Where a column of the application is found: price=close; repeatable.", "NAME=COLUMN"),
    ] = None,
    batch: Annotated[
        int | None, _ENDS.whole("--batch", "Most files (Kafka: records; generator: tuples) in a micro-batch.")
    ] = None,
    once: Annotated[bool, _ENDS.flag("--once", "Read what is there now, then end.")] = False,
    sink: Annotated[
        str,
        _ENDS.text(
            "Folder for Parquet files, one folder per batch; 'kafka://HOST:PORT/TOPIC'; or 'console'.", "DIR|URL"
        ),
    ] = endpoints.CONSOLE,
    adopt: Annotated[
        bool,
        _ENDS.flag(
            "--adopt",
            "Take over a topic for --sink that holds another query's answers; batch numbers go on from there.",
        ),
    ] = False,
    dead_letters: Annotated[
        _Text,
        _ENDS.text(
            "Where malformed rows of files and records of a topic go: a folder or a topic.  "
            "[default: dead-letters in --checkpoint]",
            "DIR|URL",
        ),
    ] = None,
    strict: Annotated[bool, _ENDS.flag("--strict", "End with an error at the first malformed row.")] = False,
    kafka_properties: endpoints.KafkaProperties = None,
    grouping: Annotated[str, _KEYS.text("How keys are spread; see anabranch groupings.", "NAME")] = _DEFAULT,
    edge: Annotated[
        _Text, _KEYS.text("Where routes are made: adaptive, planned or local.  [default: adaptive]", "NAME")
    ] = None,
    workers: Annotated[
        int, _KEYS.whole("--workers", "Workers that share the keys; on a cluster, as many as it runs tasks at once.")
    ] = 16,
    regime: Annotated[
        str, _KEYS.text("batch: states are merged every batch. resident: they stay on workers.", "NAME")
    ] = "batch",
    flush_every: Annotated[int, _KEYS.whole("--flush-every", "resident: batches between merges.")] = 1,
    work_us: Annotated[
        float, _KEYS.number("--work-us", "Emulated work of a worker per tuple: a delay.", "MICROSECONDS")
    ] = 0,
    seed: Annotated[int, _KEYS.whole("--seed", "Seed of the hash functions.", at_least=0)] = 0,
    checkpoint: Annotated[
        _Text,
        _SPARK.text(
            "Folder from which a run that was stopped or killed goes on.  [default: none, cannot be resumed]", "DIR"
        ),
    ] = None,
    ledger: Annotated[
        _Text,
        _SPARK.text(
            "Folder for what workers report, where Python does not reach --checkpoint.  [default: in there]", "DIR"
        ),
    ] = None,
    restarts: Annotated[
        int, _SPARK.whole("--restarts", "Restarts after a batch that Spark could not repeat.", at_least=0)
    ] = 3,
    master: Annotated[
        _Text, _SPARK.text("Spark master.  [default: local[*]; with --work-us a thread per worker]", "URL")
    ] = None,
    jars: Annotated[_Text, _SPARK.text("Jars for Spark, such as its Kafka connector's.", "FOLDER|JAR,JAR")] = None,
    packages: Annotated[
        _Text,
        _SPARK.text(
            "Maven packages for Spark: org.apache.spark:spark-sql-kafka-0-10_2.13:VERSION OF SPARK.",
            "GROUP:NAME:VERSION",
        ),
    ] = None,
    conf: Annotated[
        list[str] | None, _SPARK.text("Setting of Spark: spark.executor.memory=4g; repeatable.", "NAME=VALUE")
    ] = None,
    top: Annotated[
        int,
        Section().whole("--top", "Heaviest keys to print at the end of a run with --sink DIR.", at_least=0),
    ] = 10,
) -> None:
    """Run an application on a stream with Spark, its keys balanced over workers.

    One line per micro-batch goes to stderr: tuples per second, makespan (time of the slowest worker over the ideal; 1.0
    is perfect), imbalance, replication (partial states per key) and hot keys. Ctrl-C, SIGTERM or SIGHUP ends the run
    after the batch that is running, with exit code 0, a second one at once; with --checkpoint, the same command goes on
    where it ended, and every batch is in the sink once (in a topic at least once). With --once, exit code 1 if every
    record that was read is malformed. A topic needs Spark's Kafka connector: see --packages and --jars.

    Try:

      anabranch run

      anabranch run word-count --source logs/ --once

      anabranch run word-count --source 'generator:drifting(z=1.4, rate=20k)' --sink counts/ --checkpoint state/

      anabranch run vwap --source trades/ --column quantity=qty --grouping key --workers 8 --once

      anabranch run vwap --source kafka://127.0.0.1:9092/trades --sink kafka://127.0.0.1:9092/vwap --checkpoint state/
    """
    if find_spec("pyspark") is None:
        raise MissingExtraError("anabranch run needs PySpark, which is not installed; install anabranch[spark]")
    if app is None:
        _list_apps()
        return
    with _signals(_end, signal.SIGTERM, signal.SIGHUP), tempfile.TemporaryDirectory(prefix="anabranch-") as folder:
        from anabranch.apps import Balancing, Checkpoint, Pipeline, named
        from anabranch.apps import source as source_of
        from anabranch.groupings import parse

        balancing = Balancing(
            parse(grouping), workers, edge=edge, regime=regime, flush_every=flush_every, work_us=work_us, seed=seed
        )
        chosen = named(app)()
        connection = endpoints.connection(kafka_properties)
        if source is None:
            raise ConfigError(
                "run needs --source: a folder of files, kafka://HOST:PORT/TOPIC, or generator:zipf for generated tuples"
            )
        pipeline = Pipeline(
            chosen,
            source_of(source, format=format, batch=batch, connection=connection),
            endpoints.sink(sink, chosen, connection, adopt=adopt),
            Checkpoint(checkpoint or folder, ledger),
            balancing,
            columns=_columns(column),
            once=once,
            restarts=restarts,
            strict=strict,
        )
        pipeline = replace(
            pipeline, dead_letters=endpoints.dead_letters(dead_letters, pipeline, checkpoint, connection)
        )
        settings = endpoints.session_settings(jars, packages, conf)
        _claim(pipeline)
        if checkpoint is None:
            say("no --checkpoint: this run cannot be resumed")
        _run(pipeline, master, settings, 0 if sink == endpoints.CONSOLE else top)


def _claim(pipeline: Pipeline) -> None:
    from anabranch.apps.sinks.hadoop import NeedsSessionError

    # A path that only Spark opens is claimed when the query starts.
    with suppress(NeedsSessionError):
        pipeline.claim()


def _list_apps() -> None:
    from rich.table import Table

    from anabranch.apps import named, names

    table = Table(box=None, pad_edge=False)
    table.add_column("name", no_wrap=True)
    table.add_column("what it does")
    table.add_column("columns (other names)")
    for name in names():
        fields = (f"{f.name} ({', '.join(f.aliases)})" if f.aliases else f.name for f in named(name).fields)
        table.add_row(name, named(name).summary(), ", ".join(fields))
    print_table(table)


def _columns(texts: list[str] | None) -> dict[str, str]:
    parts = [text.partition("=") for text in texts or ()]
    for name, equals, column in parts:
        if not (name and equals and column):
            raise ConfigError(f"--column takes NAME=COLUMN, as in price=close, got {name + equals + column!r}")
    return {name: column for name, _, column in parts}


def _run(pipeline: Pipeline, master: str | None, conf: dict[str, str], top: int) -> None:
    from anabranch.apps import Events, own_session
    from anabranch.cli.progress import Progress

    # Emulated work is a delay: with a thread per worker, delays pass side by side as they would on as many machines.
    threads = f"local[{pipeline.balancing.n_workers}]" if pipeline.balancing.work_us else None
    with own_session(f"anabranch run {pipeline.app.name}", master or threads, **conf) as spark:
        done = pipeline.checkpoint.batches()
        if done:
            say(f"resuming after batch {done - 1}")
            endpoints.tell_held(pipeline)
        progress = Progress()
        events = Events(on_batch=progress.batch, on_restart=progress.restart, on_late=progress.late, on_note=say)
        with _stopped_by_signals(events):
            pipeline.run(spark, events)
        progress.summary(stopped=events.stop)
        if pipeline.checkpoint.batches() > done:
            endpoints.tell_held(pipeline)
        endpoints.tell_malformed(pipeline)
        if top:
            _print_top(pipeline, spark, top, stopped=events.stop)
    endpoints.check_some_good(pipeline)


@contextmanager
def _stopped_by_signals(events: Events) -> Iterator[None]:
    """Have the first Ctrl-C (SIGTERM, SIGHUP) end the run after its batch, and the second at once."""
    from anabranch.apps import end_java

    def stop(number: int, frame: object) -> None:
        if events.stop:
            # Its batch would go on, and fail at length once its rows are not taken any more.
            end_java()
            _end(number, frame)
        events.stop = True
        # The terminal may be gone.
        with suppress(OSError):
            say("stopping after this batch; once more to stop at once")

    # Spark's own handler, there since the session was made, would cancel the batch.
    with _signals(stop, signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        yield


def _end(number: int, frame: object) -> None:
    """End at once, but in good order: what is open is closed, and temporary files go."""
    # No KeyboardInterrupt: py4j would log a traceback where it waits for Java.
    sys.exit(128 + number)


@contextmanager
def _signals(handler: Callable[[int, object], object], *numbers: signal.Signals) -> Iterator[None]:
    """Have these signals handled so as long as the block runs, except those that nohup has set aside."""
    kept = [number for number in numbers if signal.getsignal(number) != signal.SIG_IGN]
    before = {number: signal.signal(number, handler) for number in kept}
    try:
        yield
    finally:
        for number, former in before.items():
            signal.signal(number, former)


def _print_top(pipeline: Pipeline, spark: Any, top: int, *, stopped: bool) -> None:
    rows: Sequence[Sequence[str]] = []
    # A signal to the whole process group has ended Spark as well, which then cannot be asked.
    with suppress(Exception) if stopped else nullcontext():
        rows = pipeline.heaviest(spark, top)
    if rows:
        _print_rows(pipeline.app, rows)


def _print_rows(app: App, rows: Sequence[Sequence[str]]) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for name in rows[0]:
        table.add_column(name, justify="left" if name == app.key else "right")
    for row in rows[1:]:
        table.add_row(*row)
    print_table(table)
