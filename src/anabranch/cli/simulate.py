"""``anabranch simulate``: groupings on a stream, compared."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from anabranch.cli import options, streams, values
from anabranch.cli.output import check_writable, console, print_table, print_text, say, terminal_width, write_records
from anabranch.errors import ConfigError

if TYPE_CHECKING:
    from anabranch.groupings import Grouping
    from anabranch.simulate import Cell, Change
    from anabranch.streams import Stream

_Text = str | None
_ROUTES = values.Section("How tuples are routed")
_TIME = values.Section("Time that passes")


def simulate(
    stream: options.SweptStream = None,
    input: options.Input = None,
    key: options.Key = None,
    timestamp: Annotated[
        _Text,
        options.STREAM.text(
            "Column of --input with the arrival times: a timestamp, a date or a number of seconds."
            "  [default: arrivals by --rate]",
            "COLUMN",
        ),
    ] = None,
    source_key: Annotated[
        _Text,
        options.STREAM.text(
            "Column of --input that decides a tuple's source (of correlated-pairs: second)."
            "  [default: sources in turn]",
            "COLUMN",
        ),
    ] = None,
    tuples: options.Tuples = None,
    grouping: Annotated[
        list[str] | None,
        _ROUTES.text(
            "Grouping, repeatable, or 'all'; parameters as in 'partial-key(choices=3)'.  [default: all]", "NAME"
        ),
    ] = None,
    edge: Annotated[
        str,
        _ROUTES.text(
            "adaptive: a router in each source; planned: a table, made after each window from its counts as on "
            "Spark, for the groupings that can be written as one.",
            "NAME",
        ),
    ] = "adaptive",
    reset_loads: Annotated[
        bool, _ROUTES.flag("--reset-loads", "Start each window with zero loads and a plan, as on Spark.")
    ] = False,
    workers: options.Workers = (16,),
    sources: options.Sources = (5,),
    window: options.Window = None,
    change: Annotated[
        list[str] | None,
        options.SIZES.text(
            "5M:+2 adds two workers, 5M:-3 removes worker number 3 (counting from 0), at tuple 5M; repeatable.",
            "TUPLE:±N",
        ),
    ] = None,
    rate: Annotated[
        float | None,
        _TIME.number("--rate", "Arrivals per second.  [default: 0.8 of what the workers can serve]", zero=False),
    ] = None,
    service_ms: Annotated[
        float,
        _TIME.number(
            "--service-ms", "Milliseconds per tuple that a worker of speed 1 needs.", "MILLISECONDS", zero=False
        ),
    ] = 1,
    merge_ms: Annotated[
        float | None,
        _TIME.number(
            "--merge-ms",
            "Milliseconds per partial state that merging takes.  [default: a tenth of --service-ms]",
            "MILLISECONDS",
        ),
    ] = None,
    speeds: Annotated[
        Sequence[float],
        _TIME.read(
            "--speeds", values.speeds, "Relative worker speeds, repeated: 2,1 = every other twice as fast.", "NUMBERS"
        ),
    ] = (1,),
    report_s: Annotated[
        float, _TIME.number("--report-s", "Seconds between the workers' reports to the routers.", "SECONDS", zero=False)
    ] = 10,
    report_noise: Annotated[
        float, _TIME.number("--report-noise", "Relative noise of the reported seconds.", "SHARE")
    ] = 0.05,
    seed: Annotated[int, options.seed("stream, hashes and noise")] = 0,
    repeat: Annotated[
        int, options.OTHER.whole("--repeat", "Runs per cell, with seeds seed, seed+1, …: mean ± spread.")
    ] = 1,
    json_: Annotated[_Text, options.json("cell")] = None,
    plot: Annotated[
        list[Path] | None, options.OTHER.text("Draw to a .png, .svg, .pdf or .html file; repeatable.", "FILE")
    ] = None,
    progress: Annotated[bool, typer.Option(help="Show a progress bar on stderr.")] = True,
) -> None:
    """Route a skewed stream with several groupings and compare balance, memory and latency.

    The table has one row per grouping. makespan: time of the slowest worker, summed over windows, over the ideal (1.0
    is perfect). imbalance: (largest − mean load) / tuples. replication: (key, worker) pairs per key (key grouping has
    1.0). latency: time queued and served at a worker and merged by the aggregator. saturation: largest arrival rate
    that keeps queues bounded.

    Try:

      anabranch simulate --stream 'zipf(z=1.4)' --workers 16

      anabranch simulate --input words.parquet --key word --grouping key --grouping 'partial-key(choices=3)'

      anabranch simulate --stream 'zipf(z=1.0:2.0:0.1)' --workers 16,32,64 --repeat 10 --json sweep.json
    """
    from anabranch.report.pictures import check_path
    from anabranch.simulate import Settings, sweep

    for path in plot or ():
        check_path(path)
        check_writable(path)
    if json_ not in (None, "-"):
        check_writable(json_ or "")
    if timestamp is not None and rate is not None:
        raise ConfigError("--timestamp and --rate both say when tuples arrive; leave one of them out")
    columns = () if input is None or source_key in (None, key) else (str(source_key),)
    make_stream, of_stream = streams.choose(stream, tuples, input, key, timestamp=timestamp, columns=columns)
    vary: dict[str, Sequence[Any]] = {"n_workers": workers, "n_sources": sources, **of_stream}
    # The shortest of a sweep: what does not fit into it is refused before the first run.
    first = make_stream(**{p: min(listed) if p == "n_tuples" else listed[0] for p, listed in of_stream.items()})
    if input is None and source_key is not None:
        _check_source_key(source_key, first)
    cells: list[Cell] = []
    chosen = _groupings(grouping, edge)
    settings = Settings(
        window=window,
        seed=seed,
        rate=rate,
        service_s=service_ms / 1000,
        merge_s=None if merge_ms is None else merge_ms / 1000,
        speeds=tuple(speeds),
        report_s=report_s,
        report_noise=report_noise,
        reset_loads=reset_loads,
        edge=edge,
        limit=tuples,
        source_key="key" if source_key is not None and source_key == key else source_key,
    )
    # Whether a change fits depends on the number of workers: all of them are tried before the first run.
    changes = _changes(change)
    most = streams.most_tuples(first, settings.limit)
    _check_changes(changes, most)
    tried = [replace(settings, n_workers=n, changes=changes) for n in vary["n_workers"]]
    runs = len(chosen) * repeat
    for listed in vary.values():
        runs *= len(listed)
    with _progress_bar(None if most is None else most * runs, show=progress) as advance:
        for cell in sweep(make_stream, chosen, tried[0], vary=vary, repeat=repeat, progress=advance):
            cells.append(cell)
    _show(cells, json_, plot or [])
    for note in _notes(cells, chosen):
        say(f"note: {note}")


def _groupings(texts: list[str] | None, edge: str) -> dict[str, Grouping]:
    """By the text that was given; all are those that the edge can run and that route by their name alone."""
    from anabranch.groupings import named, names, parse
    from anabranch.simulate import planned_edge

    alone = [name for name in names() if not named(name).needs_table]
    fitting = [name for name in alone if edge != "planned" or planned_edge.fits(parse(name))]
    listed = [name for text in texts or ["all"] for name in (fitting if text == "all" else [text])]
    chosen = {text: parse(text) for text in listed}
    if edge == "planned":
        for grouping in chosen.values():
            planned_edge.check(grouping)
    return chosen


def _changes(texts: list[str] | None) -> tuple[Change, ...]:
    """Changes, whose positions may have a suffix: 5M:+2 is 5000000:+2."""
    from anabranch.simulate import Change

    parts = [text.partition(":") for text in texts or ()]
    return tuple(Change.parse(f"{values.whole(at, '--change')}{colon}{what}") for at, colon, what in parts)


def _check_changes(changes: Sequence[Change], most: int | None) -> None:
    for change in changes:
        if most is not None and change.at >= most:
            raise ConfigError(f"the change at tuple {change.at} lies after the end of the stream ({most} tuples)")


def _check_source_key(column: str, stream: Stream) -> None:
    columns = next(stream.batches(stop=1)).schema.names
    if column not in columns:
        there = f"stream {stream.name} has {' and '.join(columns)} only"
        raise ConfigError(f"--source-key names a column of --input, got {column!r}; {there}")


@contextmanager
def _progress_bar(total: int | None, *, show: bool) -> Iterator[Callable[[int], None]]:
    """A bar over all tuples of all runs, on stderr, where that is a terminal."""
    from rich.progress import Progress, TimeRemainingColumn

    err = console(stderr=True)
    with Progress(
        *Progress.get_default_columns()[:-1],
        TimeRemainingColumn(),
        console=err,
        transient=True,
        disable=not show or not err.is_terminal,
    ) as bar:
        task = bar.add_task("routing", total=total)
        yield lambda done: bar.update(task, advance=done)


def _show(cells: list[Cell], json_file: str | None, plot_files: list[Path]) -> None:
    from anabranch.report.comparison import table
    from anabranch.report.pictures import plot

    records = json.dumps([cell.record() for cell in cells], indent=1)
    if json_file == "-":
        print_text(records)
    else:
        print_table(table(cells, terminal_width()))
        if json_file is not None:
            write_records(records, json_file)
    for path in plot_files:
        plot(cells, path)
        say(f"picture: {path}")


def _notes(cells: list[Cell], chosen: dict[str, Grouping]) -> Iterator[str]:
    """What a reader should know of streams that are too short for a grouping."""
    for label, grouping in chosen.items():
        shortest = min((cell.results[0] for cell in cells if cell.grouping == label), key=lambda r: r.tuples)
        duration = shortest.tuples / shortest.rate if shortest.rate else 0.0
        tuples, seconds = grouping.warm_up
        if shortest.tuples <= tuples:
            yield f"{label} learns for {tuples:,} tuples and the stream has {shortest.tuples:,}: it only learned"
        elif 0 < seconds >= duration:
            yield (
                f"{label} adapts after {seconds:g} s and the stream lasts {duration:.1f} s: "
                "lower --rate or take more tuples"
            )
        adaptive = shortest.settings["edge"] == "adaptive"
        if adaptive and len(set(shortest.settings["speeds"])) > 1 and duration <= shortest.settings["report_s"]:
            yield (
                f"{label} ran without knowing the speeds: workers first report after "
                f"{shortest.settings['report_s']:g} s (--report-s) and the stream lasts {duration:.1f} s"
            )
