"""The planner: routing tables that keep correlated keys on one server."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, get_args

import numpy as np

from anabranch.arrays import I32, U64
from anabranch.chain.planning import greedy, metis
from anabranch.chain.planning.division import Division, matched
from anabranch.chain.planning.graph import KeyGraph
from anabranch.chain.planning.pairs import Pairs
from anabranch.chain.planning.placement import Placement
from anabranch.chain.planning.splitting import Pieces, heavy_keys, in_pieces, spread_keys
from anabranch.errors import ConfigError, InputError
from anabranch.groupings import TableGrouping

Method = Literal["metis", "greedy", "hash", "worst"]
METHODS = get_args(Method)


def place(
    pairs: Pairs | Sequence[Pairs],
    n_servers: int,
    *,
    alpha: float = 1.03,
    method: Method = "metis",
    seed: int = 0,
    previous: Placement | None = None,
    split: bool | Sequence[int] = False,
) -> Placement:
    """A routing table for each operator that keeps frequent pairs on one server, and every operator balanced.

    Guarantees
    ----------
    - The load of every operator on every server, by the pairs given, is at most alpha times the mean, unless the keys
      that are too heavy to fit anywhere cannot be packed more evenly than that. A key that is heavier than a server may
      be is the clearest case; such keys are named in `Placement.heavy`, and `split` takes care of them. What spread
      keys bring is as even as the operator before, and the other keys even it out as far as they can.
    - The same pairs, in any order, give the same tables.

    Parameters
    ----------
    pairs
        Pairs of the two operators, or, for a chain of more, those of each two operators in a row.
    n_servers
        Servers; each has a worker of every operator.
    alpha
        How far above the mean a server may be.
    method
        "metis": METIS, which needs the extra ``locality``. "greedy": our own, the heaviest pair first. "hash": no table
        at all. "worst": what would stay on its server under "greedy" never does, a lower bound for comparison.
    seed
        Of METIS, and of the hashes of keys outside the tables.
    previous
        The placement in force: servers are numbered so that as few tuples' keys as possible move.
    split
        Whether hot keys get several servers; or the numbers of the operators whose keys do. Such a key has a partial
        state on each of them, to be merged. A key with more than 1 % of a server's share of the tuples is spread: it is
        on every server, and its tuples stay on the one that they come from. Keys of the first operator come from
        nowhere: those that are heavier than a server may be have as many servers as they need, in turn. "worst" splits
        nothing.

    Examples
    --------
    >>> import numpy as np
    >>> asia, oceania, java, ruby, python = np.arange(1, 6, dtype=np.uint64)
    >>> first = np.array([asia, asia, asia, oceania, oceania, oceania])
    >>> second = np.array([java, ruby, python, java, ruby, python])
    >>> pairs = Pairs.exact(first, second, np.array([3463, 2011, 1131, 1230, 890, 4119]))
    >>> found = place(pairs, n_servers=2, method="greedy", alpha=1.2)
    >>> asia_on, oceania_on = found.routers()[0].route(np.array([asia, oceania])).tolist()
    >>> found.routers()[1].route(np.array([java, ruby, python])).tolist() == [asia_on, asia_on, oceania_on]
    True

    References
    ----------
    Caneill et al., "Locality-aware routing in stateful streaming applications" (Middleware 2016), §3.3, and §4.2 for
    "worst" (there the worst tables for its synthetic stream; here each operator one server further than the one
    before). Balance holds for each operator, not for their sum; see `Division`. `previous` and `split` are ours; that
    a tuple of a spread key stays where it is, is what §2.2 does for operators without a state.
    """
    chain = [pairs] if isinstance(pairs, Pairs) else list(pairs)
    _check(chain, n_servers, alpha, method)
    may = _operators(split, len(chain) + 1) if method != "worst" else ()
    if method == "hash" or not all(map(len, chain)):
        return _hashed(chain, n_servers, seed)
    graph = KeyGraph.of(chain)
    heavy = heavy_keys(graph, n_servers, alpha)
    spread, pieces = spread_keys(graph, n_servers, may), Pieces()
    parts: Sequence[Pairs] = chain
    if 0 in may and len(heavy[0]):
        parts, pieces = in_pieces(chain, graph, heavy[0], n_servers)
    if len(pieces.keys) or any(map(len, spread)):
        graph = KeyGraph.of(parts, spread)
    if method == "metis":
        division = metis.divide(graph, n_servers, alpha, seed)
    else:
        division = greedy.divide(graph, n_servers, alpha)
    if method == "worst":
        division.servers[:] = (division.servers + graph.operators) % n_servers
    if previous is not None:
        _keep_numbers(division, pieces, previous)
    return _placement(division, chain, heavy, pieces, spread, seed)


def _check(chain: Sequence[Pairs], n_servers: int, alpha: float, method: Method) -> None:
    if not chain:
        raise InputError("a chain has at least two operators, so pairs for at least one hop, got none")
    if n_servers < 1:
        raise ConfigError(f"n_servers must be at least 1, got {n_servers}")
    if not (alpha >= 1 and math.isfinite(alpha)):
        raise ConfigError(f"alpha must be at least 1, got {alpha}; 1.03 lets a server have 3 % more than the mean")
    if method not in METHODS:
        raise ConfigError(f"method must be one of {', '.join(METHODS)}, got {method!r}")


def _operators(split: bool | Sequence[int], n: int) -> Sequence[int]:
    """Operators whose keys may be split."""
    if isinstance(split, bool):
        return range(n) if split else ()
    if isinstance(split, str) or not all(isinstance(one, int | np.integer) and 0 <= one < n for one in split):
        raise ConfigError(f"split must be True, False or numbers of operators from 0 to {n - 1}, got {split!r}")
    return split


def _hashed(chain: Sequence[Pairs], n_servers: int, seed: int) -> Placement:
    bare = Placement.hashed(len(chain) + 1, n_servers, seed)
    return Placement(n_servers, bare.tables, *bare.measured(chain), bare.heavy, seed)


def _keep_numbers(division: Division, pieces: Pieces, previous: Placement) -> None:
    """Number the servers so that most tuples find their keys where they are."""
    graph, n_servers = division.graph, division.n_servers
    if previous.n_servers != n_servers or len(previous.tables) != graph.n_operators:
        raise ConfigError(
            f"previous must be a placement of {graph.n_operators} operators on {n_servers} servers, "
            f"got one of {len(previous.tables)} on {previous.n_servers}; leave it out"
        )
    keys = [pieces.named(graph.keys[0]), *graph.keys[1:]]
    before = np.concatenate([router.route(of) for router, of in zip(previous.routers(), keys, strict=True)])
    common = np.bincount(division.servers * np.int64(n_servers) + before.astype(np.int64), graph.weights, n_servers**2)
    numbers = matched(common.reshape(n_servers, n_servers).astype(np.int64))
    division.servers[:] = numbers[division.servers]


def _placement(
    division: Division, chain: Sequence[Pairs], heavy: tuple[U64, ...], pieces: Pieces, spread: Sequence[U64], seed: int
) -> Placement:
    graph, n_servers = division.graph, division.n_servers
    tables = []
    for operator, hot in enumerate(spread):
        keys = np.concatenate([graph.keys[operator], np.repeat(hot, n_servers)])
        everywhere = np.tile(np.arange(n_servers, dtype=np.int32), len(hot))
        servers = np.concatenate([division.servers[graph.vertices(operator)], everywhere])
        tables.append(_table(keys if operator else pieces.named(keys), servers))
    bare = Placement(n_servers, tuple(tables), (), np.zeros((len(tables), n_servers)), heavy, seed)
    locality, loads = bare.measured(chain)
    return replace(bare, locality=locality, loads=loads)


def _table(keys: U64, servers: I32) -> TableGrouping:
    """In order, and a split key's servers in theirs: the first is for tuples from the first server."""
    order = np.lexsort((servers, keys))
    return TableGrouping(keys[order], servers[order])
