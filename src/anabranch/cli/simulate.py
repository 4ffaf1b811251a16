"""``anabranch simulate``: groupings on a stream, compared."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from anabranch.cli import streams, values
from anabranch.cli.output import check_writable
from anabranch.errors import ConfigError

if TYPE_CHECKING:
    from anabranch.groupings import Grouping
    from anabranch.simulate import Cell, Change, Settings
    from anabranch.streams import Stream

_Text = str | None


def simulate(
    stream: Annotated[
        _Text,
        typer.Option(
            help="Synthetic stream: zipf, evolving-zipf, drifting, log-normal, ln1, ln2, country, correlated-pairs."
        ),
    ] = None,
    input: Annotated[
        Path | None, typer.Option(help="Replay a Parquet or CSV file, or a folder of them, instead.", metavar="FILE")
    ] = None,
    key: Annotated[_Text, typer.Option(help="Key column of --input.", metavar="COLUMN")] = None,
    timestamp: Annotated[
        _Text, typer.Option(help="Column of --input with the arrival times (else --rate).", metavar="COLUMN")
    ] = None,
    source_key: Annotated[
        _Text, typer.Option(help="Column that decides a tuple's source; else round robin.", metavar="COLUMN")
    ] = None,
    tuples: Annotated[_Text, typer.Option(help="Length of the stream: 1M; of --input, all unless given.")] = None,
    keys: Annotated[_Text, typer.Option(help="Distinct keys (zipf, evolving-zipf, drifting): 100k. Sweeps.")] = None,
    z: Annotated[_Text, typer.Option(help="Zipf exponent: 1.2. Sweeps, as 1.0:2.0:0.1 or 0.8,1.4.")] = None,
    flip: Annotated[_Text, typer.Option(help="evolving-zipf: share of the stream after which ranks flip.")] = None,
    mu: Annotated[_Text, typer.Option(help="log-normal: mean of the logarithm.")] = None,
    sigma: Annotated[_Text, typer.Option(help="log-normal: standard deviation of the logarithm.")] = None,
    skew_percent: Annotated[_Text, typer.Option(help="country: percent of the hot name: 80. Sweeps.")] = None,
    half_skew: Annotated[bool, typer.Option("--half-skew", help="country: skewed in the first half only.")] = False,
    every: Annotated[_Text, typer.Option(help="drifting: tuples between changes of the hot set: 100k.")] = None,
    values_: Annotated[_Text, typer.Option("--values", help="correlated-pairs: values of each key: 6.")] = None,
    locality: Annotated[_Text, typer.Option(help="correlated-pairs: share of equal pairs: 0.8.")] = None,
    padding: Annotated[_Text, typer.Option(help="correlated-pairs: bytes of padding a tuple.")] = None,
    grouping: Annotated[
        list[str] | None,
        typer.Option(help="Grouping, repeatable, or 'all'; parameters as in 'partial-key(choices=3)'.", metavar="NAME"),
    ] = None,
    workers: Annotated[str, typer.Option(help="Workers. Sweeps, as 16,32,64.")] = "16",
    sources: Annotated[str, typer.Option(help="Sources. Sweeps.")] = "5",
    window: Annotated[_Text, typer.Option(help="Tuples a window (a micro-batch); 10k a source.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of stream, hashes and noise.")] = 0,
    repeat: Annotated[int, typer.Option(help="Runs a cell with seeds seed, seed+1, …: mean ± spread.", min=1)] = 1,
    rate: Annotated[_Text, typer.Option(help="Arrivals a second; 0.8 of what the workers can serve.")] = None,
    service_ms: Annotated[str, typer.Option(help="Milliseconds that a worker of speed 1 needs a tuple.")] = "1",
    merge_ms: Annotated[_Text, typer.Option(help="Milliseconds that merging a partial state takes.")] = None,
    speeds: Annotated[
        str, typer.Option(help="Relative worker speeds, repeated: 2,1 = every other twice as fast.")
    ] = "1",
    report_s: Annotated[str, typer.Option(help="Seconds between the workers' reports to the routers.")] = "10",
    report_noise: Annotated[str, typer.Option(help="Relative noise of the reported seconds.")] = "0.05",
    change: Annotated[
        list[str] | None,
        typer.Option(help="At a tuple, workers come (5M:+2) or one goes (5M:-3); repeatable.", metavar="TUPLE:±N"),
    ] = None,
    reset_loads: Annotated[
        bool, typer.Option("--reset-loads", help="Start each window with zero loads and a plan, as on Spark.")
    ] = False,
    json_: Annotated[
        _Text, typer.Option("--json", help="Write one record a cell; - for stdout.", metavar="FILE")
    ] = None,
    plot: Annotated[
        list[Path] | None,
        typer.Option(help="Draw to a .png, .svg, .pdf or .html file; repeatable.", metavar="FILE"),
    ] = None,
    progress: Annotated[bool, typer.Option(help="Show a progress bar on stderr.")] = True,
) -> None:
    """Route a skewed stream with several groupings and compare balance, memory and latency.

    The table has one row a grouping. makespan: time of the slowest worker, summed over windows, over the ideal (1.0 is
    perfect). imbalance: (largest − mean load) / tuples. replication: (key, worker) pairs a key (key grouping has 1.0).
    latency: time queued and served at a worker and merged by the aggregator. saturation: largest arrival rate that
    keeps queues bounded.

    Try:

      anabranch simulate --stream zipf --z 1.4 --workers 16

      anabranch simulate --input words.parquet --key word --grouping key --grouping 'partial-key(choices=3)'

      anabranch simulate --stream zipf --workers 16,32,64 --z 1.0:2.0:0.1 --repeat 10 --json sweep.json
    """
    from anabranch.report.plot import check_path
    from anabranch.simulate import sweep

    for path in plot or ():
        check_path(path)
        check_writable(path)
    if json_ not in (None, "-"):
        check_writable(json_ or "")
    given = {"keys": keys, "z": z, "flip": flip, "mu": mu, "sigma": sigma, "skew_percent": skew_percent}
    given |= {"every": every, "values": values_, "locality": locality, "padding": padding}
    vary: dict[str, list[Any]] = {
        "n_workers": values.wholes(workers, "--workers"),
        "n_sources": values.wholes(sources, "--sources"),
    }
    if input is not None:
        if stream is not None or half_skew or any(given.values()):
            raise ConfigError("--input replays a file and takes no --stream or its parameters; leave one of them out")
        make_stream = streams.replay(input, key, timestamp, source_key)
    else:
        if key is not None or timestamp is not None:
            raise ConfigError("--key and --timestamp name columns of --input; give --input FILE with them")
        make_stream, swept = streams.synthetic(stream or "zipf", tuples or "1M", given, half_skew)
        vary |= swept
    cells: list[Cell] = []
    chosen = _groupings(grouping)
    settings = replace(
        _settings(window, seed, rate, service_ms, merge_ms, speeds, report_s, report_noise, reset_loads),
        limit=None if tuples is None else streams.n_tuples(tuples),
        source_key="key" if source_key is not None and source_key == key else source_key,
    )
    # Whether a change fits depends on the number of workers: all of them are tried before the first run.
    changes = _changes(change)
    tried = [replace(settings, n_workers=n, changes=changes) for n in vary["n_workers"]]
    runs = len(chosen) * repeat
    for listed in vary.values():
        runs *= len(listed)
    with _progress_bar(make_stream, vary, runs, settings.limit, show=progress) as advance:
        for cell in sweep(make_stream, chosen, tried[0], vary=vary, repeat=repeat, progress=advance):
            cells.append(cell)
    _show(cells, json_, plot or [])


def _groupings(texts: list[str] | None) -> dict[str, Grouping]:
    from anabranch.groupings import names, parse

    listed = [name for text in texts or ["all"] for name in (names() if text == "all" else [text])]
    return {text: parse(text) for text in listed}


def _settings(
    window: str | None,
    seed: int,
    rate: str | None,
    service_ms: str,
    merge_ms: str | None,
    speeds: str,
    report_s: str,
    report_noise: str,
    reset_loads: bool,
) -> Settings:
    from anabranch.simulate import Settings

    def optional(text: str | None, option: str) -> float | None:
        return None if text is None else values.number(text, option)

    merge = optional(merge_ms, "--merge-ms")
    return Settings(
        window=None if window is None else values.whole(window, "--window"),
        seed=seed,
        rate=optional(rate, "--rate"),
        service_s=values.number(service_ms, "--service-ms") / 1000,
        merge_s=None if merge is None else merge / 1000,
        speeds=tuple(values.numbers(speeds, "--speeds")),
        report_s=values.number(report_s, "--report-s"),
        report_noise=values.number(report_noise, "--report-noise"),
        reset_loads=reset_loads,
    )


def _changes(texts: list[str] | None) -> tuple[Change, ...]:
    """Changes, whose positions may have a suffix: 5M:+2 is 5000000:+2."""
    from anabranch.simulate import Change

    parts = [text.partition(":") for text in texts or ()]
    return tuple(Change.parse(f"{values.whole(at, '--change')}{colon}{what}") for at, colon, what in parts)


@contextmanager
def _progress_bar(
    make_stream: Callable[..., Stream], vary: dict[str, list[Any]], runs: int, limit: int | None, *, show: bool
) -> Iterator[Callable[[int], None]]:
    """A bar over all tuples of all runs, on stderr, where that is a terminal."""
    from rich.console import Console
    from rich.progress import Progress, TimeRemainingColumn

    first = {name: listed[0] for name, listed in vary.items() if name not in ("n_workers", "n_sources")}
    n_tuples = make_stream(**first).n_tuples
    n_tuples = n_tuples if limit is None else min(limit, n_tuples or limit)
    console = Console(stderr=True)
    with Progress(
        *Progress.get_default_columns()[:-1],
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not show or not console.is_terminal,
    ) as bar:
        task = bar.add_task("routing", total=None if n_tuples is None else n_tuples * runs)
        yield lambda done: bar.update(task, advance=done)


def _show(cells: list[Cell], json_file: str | None, plot_files: list[Path]) -> None:
    from rich.console import Console

    from anabranch.report.plot import plot
    from anabranch.report.table import table

    records = json.dumps([cell.record() for cell in cells], indent=1)
    if json_file == "-":
        typer.echo(records)
    else:
        console = Console()
        Console(width=None if console.is_terminal else 140).print(table(cells))
        if json_file is not None:
            Path(json_file).write_text(records + "\n")
    for path in plot_files:
        plot(cells, path)
        typer.echo(f"picture: {path}", err=True)
