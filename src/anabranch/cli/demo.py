"""``anabranch demo``: key grouping beside a grouping that splits hot keys, on real micro-batches."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from anabranch.cli import options
from anabranch.cli.output import check_writable, print_table, print_text, say
from anabranch.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from anabranch.apps.demo import Demo, Trial


def demo(
    stream: Annotated[
        str, options.STREAM.text("Synthetic stream with its parameters and its end; see anabranch streams.", "STREAM")
    ] = "drifting(tuples=240k, keys=10k, z=1.4, every=80k)",
    batch: Annotated[int, options.STREAM.whole("--batch", "Tuples in a micro-batch.")] = 40_000,
    grouping: Annotated[str, options.OTHER.text("Grouping to set beside key grouping.", "NAME")] = "spillway",
    workers: Annotated[int, options.OTHER.whole("--workers", "Workers.")] = 16,
    work_us: Annotated[
        float, options.OTHER.number("--work-us", "Time that a worker takes per tuple: a delay.", "MICROSECONDS")
    ] = 400,
    html: Annotated[Path, options.OTHER.text("Page to write.", "FILE")] = Path("demo/demo.html"),
) -> None:
    """Count the words of a skewed stream with Spark, under key grouping and under one that splits hot words.

    Both run the same micro-batches on a local Spark with one thread per worker, each worker taking a fixed time per
    tuple. Their answers are compared with each other and with an exact count made without Spark.
    """
    if find_spec("pyspark") is None:
        raise MissingExtraError("anabranch demo needs PySpark, which is not installed; install anabranch[spark]")
    check_writable(html)
    from anabranch.apps import GeneratorSource
    from anabranch.apps.demo import Demo
    from anabranch.groupings import KeyGrouping, parse

    source = GeneratorSource(f"generator:{stream}", batch)
    made = Demo(source, (KeyGrouping(), parse(grouping)), workers, work_us)
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
    listed |= {"workers": str(demo.n_workers), "work": f"{demo.work_us:g} µs per tuple", "answers equal": equal}
    print_table(live_table(runs))
    print_text(f"answers equal: {equal} ({count(len(exact))} words, {count(sum(exact.values()))} tuples)")
    title = f"One stream, {count(sum(exact.values()))} tuples, {demo.n_workers} workers, {len(runs)} groupings"
    html.write_text(live_page(title, listed, runs), encoding="utf-8")
    say(f"page: {html}")
    if wrong:
        raise InputError(f"{', '.join(wrong)} must give the exact counts, and did not; this is a bug")
