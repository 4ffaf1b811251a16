"""``anabranch demo``: key grouping beside a grouping that splits hot keys, on real micro-batches."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from anabranch.cli import values
from anabranch.cli.output import check_writable, print_table, print_text, say
from anabranch.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from anabranch.apps.demo import Demo, Trial


def demo(
    tuples: Annotated[str, typer.Option(help="Length of the stream.", metavar="N")] = "240k",
    batch: Annotated[str, typer.Option(help="Tuples in a micro-batch.", metavar="N")] = "40k",
    keys: Annotated[str, typer.Option(help="Distinct words.", metavar="N")] = "10k",
    z: Annotated[str, typer.Option(help="Skew: exponent of the Zipf law.", metavar="NUMBER")] = "1.4",
    every: Annotated[str, typer.Option(help="Tuples between changes of the hot words.", metavar="N")] = "80k",
    grouping: Annotated[str, typer.Option(help="Grouping to set beside key grouping.", metavar="NAME")] = "spillway",
    workers: Annotated[str, typer.Option(help="Workers.", metavar="N")] = "16",
    work_us: Annotated[
        str, typer.Option(help="Time that a worker takes per tuple: a delay.", metavar="MICROSECONDS")
    ] = "400",
    html: Annotated[Path, typer.Option(help="Page to write.", metavar="FILE")] = Path("demo/demo.html"),
) -> None:
    """Count the words of a drifting, skewed stream with Spark, under key grouping and under one that splits hot words.

    Both run the same micro-batches on a local Spark with one thread per worker, each worker taking a fixed time per
    tuple. Their answers are compared with each other and with an exact count made without Spark.
    """
    if find_spec("pyspark") is None:
        raise MissingExtraError("anabranch demo needs PySpark, which is not installed; install anabranch[spark]")
    check_writable(html)
    from anabranch.apps import GeneratorSource
    from anabranch.apps.demo import Demo
    from anabranch.groupings import KeyGrouping, parse

    given = {"keys": keys, "z": z, "every": every, "tuples": tuples}
    query = "&".join(f"{name}={value}" for name, value in given.items())
    source = GeneratorSource(f"generator:drifting?{query}", values.whole(batch, "--batch", at_least=1))
    n_workers = values.whole(workers, "--workers", at_least=1)
    work = values.number(work_us, "--work-us")
    made = Demo(source, (KeyGrouping(), parse(grouping)), n_workers, work)
    _show(made, _run(made), html)


def _run(demo: Demo) -> list[Trial]:
    from anabranch.apps import own_session
    from anabranch.cli.progress import batch_line

    say("starting Spark and its Python workers")
    with own_session("anabranch demo", f"local[{demo.n_workers}]") as spark:
        return list(demo.trials(spark, lambda name, m: say(f"{name}: {batch_line(m)}")))


def _show(demo: Demo, trials: list[Trial], html: Path) -> None:
    from anabranch.cli.progress import live_run
    from anabranch.report.live import live_page, live_table
    from anabranch.report.units import count

    runs = [live_run(trial.grouping, trial.batches) for trial in trials]
    exact = demo.exact_counts()
    wrong = [trial.grouping for trial in trials if trial.counts != exact]
    equal = f"no: {', '.join(wrong)}" if wrong else "yes"
    listed = {name: str(value) for name, value in demo.source.options().items()}
    listed |= {"workers": str(demo.n_workers), "work": f"{demo.work_us:g} µs a tuple", "answers equal": equal}
    print_table(live_table(runs))
    print_text(f"answers equal: {equal} ({count(len(exact))} words, {count(sum(exact.values()))} tuples)")
    title = f"One stream, {count(sum(exact.values()))} tuples, {demo.n_workers} workers, {len(runs)} groupings"
    html.write_text(live_page(title, listed, runs), encoding="utf-8")
    say(f"page: {html}")
    if wrong:
        raise InputError(f"{', '.join(wrong)} must give the exact counts, and did not; this is a bug")
