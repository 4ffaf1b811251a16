"""``anabranch chain``: two or more stateful operators in a row, and how often a tuple stays on its server."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from anabranch.cli import options, streams, values
from anabranch.cli.output import check_writable, print_table, print_text, write_records
from anabranch.errors import ConfigError

if TYPE_CHECKING:
    from rich.table import Table

    from anabranch.chain import ChainResult, ChainSettings
    from anabranch.streams import Stream

_Text = str | None
_MOST_SERVERS = 1_000
_SERVERS = values.Section("Servers and their links")
_PLANS = values.Section("How tables are made")


def chain(
    stream: Annotated[
        _Text, options.stream("It needs two keys. Sweeps: locality=0.6:1:0.1.", "correlated-pairs")
    ] = None,
    input: options.Input = None,
    keys: Annotated[
        _Text,
        options.STREAM.text(
            "Columns of --input that the operators are keyed by, in order, as state,hashtag.", "COLUMNS"
        ),
    ] = None,
    timestamp: Annotated[_Text, options.STREAM.text("Column of --input with times, for --period-s.", "COLUMN")] = None,
    tuples: options.Tuples = None,
    servers: Annotated[
        Sequence[int], _SERVERS.wholes("--servers", "Servers. Sweeps, as 2,4,6.", at_most=_MOST_SERVERS)
    ] = (6,),
    gigabits: Annotated[
        Sequence[float],
        _SERVERS.read("--gigabits", values.numbers, "Bandwidth of a server's link, in Gb/s. Sweeps.", "NUMBER"),
    ] = (10,),
    padding: Annotated[
        Sequence[int], _SERVERS.wholes("--padding", "Bytes of padding per tuple. Sweeps, as 0,4k,20k.", at_least=0)
    ] = (0,),
    between: Annotated[
        str, _SERVERS.text("A stateless operator between each two: nothing, shuffle, local-or-shuffle.", "NAME")
    ] = "nothing",
    method: Annotated[
        list[str] | None,
        _PLANS.text(
            "How tables are made: hash (none), greedy, metis (needs anabranch[locality]), worst; repeatable."
            "  [default: hash, greedy]",
            "NAME",
        ),
    ] = None,
    mode: Annotated[
        str, _PLANS.text("online: new tables after every period; offline: once, after the first.", "NAME")
    ] = "online",
    period: Annotated[int, _PLANS.whole("--period", "Tuples per period.")] = 100_000,
    period_s: Annotated[
        float | None,
        _PLANS.number(
            "--period-s", "Seconds per period by --timestamp instead; 604800 is a week.", "SECONDS", zero=False
        ),
    ] = None,
    history: Annotated[int, _PLANS.whole("--history", "Periods that a plan is made from.", at_least=None)] = 1,
    fade: Annotated[
        float, _PLANS.number("--fade", "What a period counts, of what the one after it does; 1: all alike.", "SHARE")
    ] = 1,
    capacity: Annotated[
        int | None, _PLANS.whole("--capacity", "Counters for pairs per worker.  [default: all pairs are counted]")
    ] = None,
    alpha: Annotated[
        float, _PLANS.number("--alpha", "Largest load of an operator on a server over the mean, in a plan.")
    ] = 1.03,
    split: Annotated[
        bool, _PLANS.flag("--split", "Put hot keys on every server; their tuples stay where they are.")
    ] = False,
    careful: Annotated[
        bool, _PLANS.flag("--careful", "Change tables only where that is expected to pay for moving the state.")
    ] = False,
    seed: Annotated[int, options.seed("stream, hashes and METIS")] = 0,
    json_: Annotated[_Text, options.json("row")] = None,
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

      anabranch chain --stream 'correlated-pairs(locality=0.6,0.8)' --servers 2,4,6 --padding 0,12k --method greedy

      anabranch chain --input tweets.parquet --keys state,hashtag --timestamp at --period-s 604800 --history 4
    """
    if json_ not in (None, "-"):
        check_writable(json_ or "")
    for option, value in {"--keys": keys, "--timestamp": timestamp, "--period-s": period_s}.items():
        if input is None and value is not None:
            raise ConfigError(f"{option} is about --input; give --input FILE with it")
    if (timestamp is None) != (period_s is None):
        raise ConfigError("--timestamp COLUMN and --period-s SECONDS go together; give both, or neither")
    vary: dict[str, Sequence[Any]] = {"n_servers": servers, "padding": padding, "gigabits": gigabits}
    make_stream, of_stream, columns = _streams(stream, tuples, input, keys, timestamp)
    fixed = {
        "keys": columns,
        "mode": mode,
        "period": period,
        "period_s": period_s,
        "history": history,
        "fade": fade,
        "capacity": capacity,
        "alpha": alpha,
        "split": split,
        "careful": careful,
        "between": between,
        "seed": seed,
        "limit": tuples,
    }
    vary |= of_stream | {"method": method or ["hash", "greedy"]}
    results = list(_results(vary, fixed, make_stream, list(of_stream)))
    _require_plans(results)
    _show(results, vary, json_)


def _streams(
    stream: str | None, tuples: int | None, input: Path | None, keys: str | None, timestamp: str | None
) -> tuple[Callable[..., Stream], streams.Vary, tuple[str, ...]]:
    """What makes the stream, the values of its parameters, and the columns that the operators are keyed by."""
    if input is None:
        make, vary = streams.choose(stream or "correlated-pairs", tuples, None, None)
        columns = next(make(**{p: listed[0] for p, listed in vary.items()}).batches(stop=1)).schema.names
        if "padding" in vary:
            raise ConfigError(
                f"--padding says how large tuples are here, got {stream!r}; leave padding= out of --stream"
            )
        if "second" not in columns:
            raise ConfigError(f"operators in a row need a stream of two keys, got {stream!r}; take correlated-pairs")
        return make, vary, ("key", "second")
    listed = tuple(part.strip() for part in (keys or "").split(",") if part.strip())
    if len(listed) < 2:
        raise ConfigError("--input needs --keys COLUMN,COLUMN: which columns are the operators keyed by, in order?")
    if len(set(listed)) < len(listed):
        raise ConfigError(f"--keys must name different columns, got {keys!r}")
    # A replay calls its key column "key": where another column has that name, it must be the one.
    key = "key" if "key" in listed else listed[0]
    others = tuple(name for name in listed if name != key)
    arriving = tuple("key" if name == key else name for name in listed)
    return *streams.choose(stream, tuples, input, key, timestamp=timestamp, columns=others), arriving


def _require_plans(results: list[tuple[dict[str, Any], ChainResult]]) -> None:
    """Refuse a stream that ends before the first plan: tables would look as if they were of no use."""
    for _, result in results:
        if len(result.periods) == 1 and result.settings["method"] != "hash":
            raise ConfigError(
                f"the stream has {result.periods[0].tuples:,} tuples, which is one period, and the first goes by hash; "
                "give a shorter one with --period or --period-s"
            )


def _results(
    vary: Mapping[str, Sequence[Any]],
    fixed: Mapping[str, Any],
    make_stream: Callable[..., Stream],
    of_stream: Sequence[str],
) -> Iterator[tuple[dict[str, Any], ChainResult]]:
    from anabranch.chain import ChainSettings, Servers, simulate_chain

    def settings_of(chosen: Mapping[str, Any]) -> ChainSettings:
        own = {name: chosen[name] for name in ("n_servers", "padding", "method")}
        return ChainSettings(**own, **fixed, servers=Servers(bandwidth=chosen["gigabits"] * 1e9 / 8))

    combinations = [dict(zip(vary, listed, strict=True)) for listed in product(*vary.values())]
    # Every combination is tried before the first run.
    tried = [settings_of(chosen) for chosen in combinations]
    for chosen, settings in zip(combinations, tried, strict=True):
        # So few values as the paper's, one for each server, would leave servers without any when they are hashed.
        default = {"n_values": 100 * settings.n_servers} if of_stream else {}
        parameters = default | {name: chosen[name] for name in of_stream}
        yield chosen, simulate_chain(make_stream(**parameters), settings)


def _show(
    results: list[tuple[dict[str, Any], ChainResult]], vary: Mapping[str, Sequence[Any]], json_file: str | None
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

    headings = {"gigabits": "Gb/s", "locality": "of pairs"}
    table = Table(box=None, pad_edge=False)
    for heading in [headings.get(name, name.removeprefix("n_")) for name in swept]:
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
