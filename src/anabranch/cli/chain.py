"""``anabranch chain``: two or more stateful operators in a row, and how often a tuple stays on its server."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from anabranch.cli import stream_options as options
from anabranch.cli import streams, values
from anabranch.cli.output import check_writable, print_table, print_text, write_records
from anabranch.errors import ConfigError

if TYPE_CHECKING:
    from rich.table import Table

    from anabranch.chain import ChainResult, ChainSettings
    from anabranch.streams import Stream

_Text = str | None
_MOST_SERVERS = 1_000


def chain(
    input: options.Input = None,
    keys: Annotated[
        _Text,
        typer.Option(
            help="Columns of --input that the operators are keyed by, in order, as state,hashtag.", metavar="COLUMNS"
        ),
    ] = None,
    timestamp: Annotated[
        _Text, typer.Option(help="Column of --input with times, for --period-s.", metavar="COLUMN")
    ] = None,
    tuples: options.Tuples = None,
    locality: Annotated[
        _Text,
        typer.Option(
            help="Without --input: share of equal pairs. Sweeps, as 0.6:1:0.1.  [default: 0.8]", metavar="SHARE"
        ),
    ] = None,
    values_: Annotated[
        _Text,
        typer.Option("--values", help="Without --input: values of each key.  [default: 100 per server]", metavar="N"),
    ] = None,
    servers: Annotated[str, typer.Option(help="Servers. Sweeps, as 2,4,6.", metavar="N")] = "6",
    method: Annotated[
        list[str] | None,
        typer.Option(
            help="How tables are made: hash (none), greedy, metis (needs anabranch[locality]), worst; repeatable."
            "  [default: hash, greedy]",
            metavar="NAME",
        ),
    ] = None,
    mode: Annotated[
        str, typer.Option(help="online: new tables after every period; offline: once, after the first.", metavar="NAME")
    ] = "online",
    period: Annotated[str, typer.Option(help="Tuples per period.", metavar="N")] = "100k",
    period_s: Annotated[
        _Text, typer.Option(help="Seconds per period by --timestamp instead; 604800 is a week.", metavar="SECONDS")
    ] = None,
    history: Annotated[int, typer.Option(help="Periods that a plan is made from.", metavar="N")] = 1,
    fade: Annotated[
        str, typer.Option(help="What a period counts, of what the one after it does; 1: all alike.", metavar="SHARE")
    ] = "1",
    capacity: Annotated[
        _Text, typer.Option(help="Counters for pairs per worker.  [default: all pairs are counted]", metavar="N")
    ] = None,
    alpha: Annotated[
        str, typer.Option(help="Largest load of an operator on a server over the mean, in a plan.", metavar="NUMBER")
    ] = "1.03",
    split: Annotated[
        bool, typer.Option("--split", help="Put hot keys on every server; their tuples stay where they are.")
    ] = False,
    careful: Annotated[
        bool, typer.Option("--careful", help="Change tables only where that is expected to pay for moving the state.")
    ] = False,
    padding: Annotated[str, typer.Option(help="Bytes of padding per tuple. Sweeps, as 0,4k,20k.", metavar="N")] = "0",
    gigabits: Annotated[
        str, typer.Option(help="Bandwidth of a server's link, in Gb/s. Sweeps.", metavar="NUMBER")
    ] = "10",
    between: Annotated[
        str,
        typer.Option(help="A stateless operator between each two: nothing, shuffle, local-or-shuffle.", metavar="NAME"),
    ] = "nothing",
    seed: Annotated[int, typer.Option(help="Seed of stream, hashes and METIS.", metavar="N")] = 0,
    json_: Annotated[
        _Text, typer.Option("--json", help="Write one record per row; - for stdout.", metavar="FILE")
    ] = None,
) -> None:
    """Send a stream through two or more stateful operators in a row, each with its own key, on several servers.

    Keys that often occur together are put on the same server by a routing table, so that their tuples need not cross
    the network from one operator to the next; keys outside the table go by hash. There is one row per method.
    locality: share of the tuples that stay on their server. predicted: what the plans had promised. makespan: largest
    load over the mean (1.0 is perfect), of the worse operator, averaged over periods. throughput: of a model in
    which the busiest server or link sets the pace. moved: keys that change their server, per period. split (with
    --split): keys that are on several servers, with a partial state on each. The first period goes by hash and does
    not count.

    Try:

      anabranch chain --locality 0.8 --servers 2,4,6 --padding 0,12k --method hash --method greedy --method worst

      anabranch chain --input tweets.parquet --keys state,hashtag --timestamp at --period-s 604800 --history 4
    """
    if json_ not in (None, "-"):
        check_writable(json_ or "")
    values.check_at_least(seed, "--seed", 0)
    vary: dict[str, list[Any]] = {
        "n_servers": values.wholes(servers, "--servers", at_least=1, at_most=_MOST_SERVERS),
        "padding": values.wholes(padding, "--padding", at_least=0),
        "gigabits": values.numbers(gigabits, "--gigabits"),
    }
    if input is None:
        _refuse({"--keys": keys, "--timestamp": timestamp, "--period-s": period_s})
        vary["locality"] = values.numbers(locality or "0.8", "--locality")
    elif locality is not None or values_ is not None:
        raise ConfigError("--locality and --values are of the synthetic stream; leave them out, or --input")
    vary["method"] = method or ["hash", "greedy"]
    fixed = {
        "mode": mode,
        "period": values.whole(period, "--period", at_least=1),
        "period_s": None if period_s is None else values.number(period_s, "--period-s", zero=False),
        "history": history,
        "fade": values.number(fade, "--fade"),
        "capacity": None if capacity is None else values.whole(capacity, "--capacity", at_least=1),
        "alpha": values.number(alpha, "--alpha"),
        "split": split,
        "careful": careful,
        "between": between,
        "seed": seed,
        "limit": None if tuples is None else streams.n_tuples(tuples),
    }
    if (timestamp is None) != (period_s is None):
        raise ConfigError("--timestamp COLUMN and --period-s SECONDS go together; give both, or neither")
    replayed, columns = (None, ("key", "second")) if input is None else _replay(input, keys, timestamp)
    n_values = None if values_ is None else values.whole(values_, "--values", at_least=1)
    results = list(_results(vary, fixed | {"keys": columns}, replayed, n_values))
    _require_plans(results)
    _show(results, vary, json_)


def _require_plans(results: list[tuple[dict[str, Any], ChainResult]]) -> None:
    """Refuse a stream that ends before the first plan: tables would look as if they were of no use."""
    for _, result in results:
        if len(result.periods) == 1 and result.settings["method"] != "hash":
            raise ConfigError(
                f"the stream has {result.periods[0].tuples:,} tuples, which is one period, and the first goes by hash; "
                "give a shorter one with --period or --period-s"
            )


def _refuse(given: Mapping[str, str | None]) -> None:
    for option, value in given.items():
        if value is not None:
            raise ConfigError(f"{option} is about --input; give --input FILE with it")


def _replay(path: Path, keys: str | None, timestamp: str | None) -> tuple[Stream, tuple[str, ...]]:
    """The stream of a file, and the names under which its columns arrive."""
    from anabranch.streams import Replay

    listed = tuple(part.strip() for part in (keys or "").split(",") if part.strip())
    if len(listed) < 2:
        raise ConfigError("--input needs --keys COLUMN,COLUMN: which columns are the operators keyed by, in order?")
    if len(set(listed)) < len(listed):
        raise ConfigError(f"--keys must name different columns, got {keys!r}")
    # A replay calls its key column "key": where another column has that name, it must be the one.
    key = "key" if "key" in listed else listed[0]
    others = tuple(name for name in listed if name != key)
    arriving = tuple("key" if name == key else name for name in listed)
    return Replay(str(path), key, timestamp=timestamp, columns=others), arriving


def _results(
    vary: Mapping[str, list[Any]], fixed: Mapping[str, Any], replayed: Stream | None, n_values: int | None
) -> Iterator[tuple[dict[str, Any], ChainResult]]:
    from anabranch.chain import ChainSettings, Servers, simulate_chain
    from anabranch.streams import CorrelatedPairs

    def settings_of(chosen: Mapping[str, Any]) -> ChainSettings:
        own = {name: chosen[name] for name in ("n_servers", "padding", "method")}
        return ChainSettings(**own, **fixed, servers=Servers(bandwidth=chosen["gigabits"] * 1e9 / 8))

    combinations = [dict(zip(vary, listed, strict=True)) for listed in product(*vary.values())]
    # Every combination is tried before the first run.
    tried = [settings_of(chosen) for chosen in combinations]
    for chosen, settings in zip(combinations, tried, strict=True):
        stream = replayed
        if stream is None:
            n_tuples = 1_000_000 if settings.limit is None else settings.limit
            # So few as the paper's, one for each server, would leave servers without any when they are hashed.
            stream = CorrelatedPairs(n_tuples, n_values or 100 * settings.n_servers, chosen["locality"])
        yield chosen, simulate_chain(stream, settings)


def _show(
    results: list[tuple[dict[str, Any], ChainResult]], vary: Mapping[str, list[Any]], json_file: str | None
) -> None:
    records = json.dumps([result.record() for _, result in results], indent=1)
    if json_file == "-":
        print_text(records)
        return
    swept = [name for name, listed in vary.items() if len(listed) > 1 and name != "method"]
    print_table(_table(results, swept))
    if json_file is not None:
        write_records(records, json_file)


def _table(results: list[tuple[dict[str, Any], ChainResult]], swept: list[str]) -> Table:
    from rich.table import Table

    from anabranch.report.units import count

    headings = {"n_servers": "servers", "gigabits": "Gb/s", "locality": "of pairs"}
    table = Table(box=None, pad_edge=False)
    for heading in [headings.get(name, name) for name in swept]:
        table.add_column(heading, justify="right")
    table.add_column("method")
    splits = any(result.settings["split"] for _, result in results)
    for heading in ("locality", "predicted", "makespan", "throughput/s", "moved", *["split"] * splits):
        table.add_column(heading, justify="right")
    for chosen, result in results:
        predicted = "" if result.predicted != result.predicted else f"{result.predicted:.3f}"
        figures = f"{result.locality:.3f}", predicted, f"{result.makespan:.3f}"
        rates = [count(round(result.throughput)), count(round(result.moved)), *[count(round(result.split))] * splits]
        table.add_row(*(f"{chosen[name]:g}" for name in swept), chosen["method"], *figures, *rates)
    return table
