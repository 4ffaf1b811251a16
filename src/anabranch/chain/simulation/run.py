"""A chain of operators on servers: tables from the pairs of past periods, and what they do to the next."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator
from itertools import pairwise

import numpy as np

import anabranch
from anabranch.arrays import I32, U64
from anabranch.chain.planning import PairCounts, Pairs, Placement, place
from anabranch.chain.planning.manager import Decision
from anabranch.chain.planning.servers import traffic_of
from anabranch.chain.simulation.result import ChainResult, Period
from anabranch.chain.simulation.settings import ChainSettings
from anabranch.errors import InputError
from anabranch.hashing import hash_keys
from anabranch.metrics import makespan_of
from anabranch.streams import Stream

_Keys = list[U64]


def simulate_chain(
    stream: Stream, settings: ChainSettings | None = None, *, progress: Callable[[int], None] | None = None
) -> ChainResult:
    """Send a stream through a chain of stateful operators and measure locality, balance and throughput.

    Parameters
    ----------
    stream
        Where the tuples come from: a column for the key of each operator.
    settings
        Operators, servers and how tables come about.
    progress
        Called with the number of tuples done since the last call.

    Examples
    --------
    >>> from anabranch.streams import CorrelatedPairs
    >>> stream = CorrelatedPairs(n_tuples=200_000, n_values=4, locality=0.8)
    >>> hashed = simulate_chain(stream, ChainSettings(n_servers=4, method="hash"))
    >>> planned = simulate_chain(stream, ChainSettings(n_servers=4, method="greedy"))
    >>> hashed.locality < 0.5 < planned.locality, hashed.throughput < planned.throughput
    (True, True)

    References
    ----------
    Caneill et al. 2016, §4. The source is on every server and costs nothing, as in the paper's figures, where tuples of
    any size have the same throughput when all of them are local. State moves between two periods and takes no time;
    `Manager` weighs that time.
    """
    settings = settings or ChainSettings()
    run = _Run(settings)
    for keys in _periods(stream, settings):
        run.step(keys)
        if progress is not None:
            progress(len(keys[0]))
    if not run.periods:
        raise InputError("the stream has no tuples; check the input file and its filter")
    described = dict(stream.describe())
    return ChainResult(
        stream=str(described.pop("name")),
        stream_parameters=described,
        settings=settings.record(),
        version=anabranch.__version__,
        periods=tuple(run.periods),
    )


class _Run:
    """The running state of one simulation."""

    def __init__(self, settings: ChainSettings) -> None:
        self.settings = settings
        self.placement = Placement.hashed(len(settings.keys), settings.n_servers, settings.seed)
        self.decision: Decision | None = None
        self.predicted = math.nan
        self.moved = 0
        self.history: deque[list[Pairs]] = deque(maxlen=settings.history)
        self.periods: list[Period] = []

    def step(self, keys: _Keys) -> None:
        """Route the tuples of one period, then make the tables of the next."""
        settings = self.settings
        routes, passed = self._routes(keys)
        traffic = [traffic_of(*both, settings.n_servers) for both in pairwise(passed)]
        local = sum(float(np.trace(hop)) for hop in traffic) / sum(float(hop.sum()) for hop in traffic)
        loads = [np.bincount(of, minlength=settings.n_servers).astype(np.float64) for of in routes]
        self.periods.append(
            Period(
                tuples=len(keys[0]),
                locality=local,
                predicted=self.predicted,
                makespans=tuple(makespan_of(of) for of in loads),
                throughput=settings.servers.throughput(traffic, settings.padding),
                moved=self.moved,
                split=self.placement.n_split,
            )
        )
        self.moved = 0
        if settings.method != "hash" and (settings.mode == "online" or len(self.periods) == 1):
            self._plan(keys, routes)

    def _routes(self, keys: _Keys) -> tuple[list[I32], list[I32]]:
        """Servers of all tuples at each operator, and the same with stateless ones between, where there are (§2.2)."""
        first, *others = self.placement.routers()
        between = self.settings.between
        in_turn = np.arange(len(keys[0]), dtype=np.int32) % np.int32(self.settings.n_servers)
        routes = [first.route(keys[0])]
        passed = routes.copy()
        for router, of in zip(others, keys[1:], strict=True):
            if between != "nothing":
                passed.append(in_turn if between == "shuffle" else routes[-1])
            routes.append(router.route_from(of, passed[-1]))
            passed.append(routes[-1])
        return routes, passed

    def _plan(self, keys: _Keys, routes: list[I32]) -> None:
        counted = [self._count(first, second, routes[i]) for i, (first, second) in enumerate(pairwise(keys))]
        self.history.append(counted)
        fade = self.settings.fade
        chain = [Pairs.faded([period[hop] for period in self.history], fade) for hop in range(len(counted))]
        if self.settings.careful and self.settings.mode == "online":
            self.decision = self.settings.manager.decide(chain, self.decision, recent=counted)
            if not self.decision.migrates:
                return
            new = self.decision.placement
        else:
            s = self.settings
            chosen = {name: getattr(s, name) for name in ("alpha", "method", "seed", "split")}
            new = place(chain, s.n_servers, previous=self.placement, **chosen)
        tables = zip(self.placement.tables, new.tables, strict=True)
        known = [np.union1d(before.keys, after.keys) for before, after in tables]
        self.moved = sum(int(changed.sum()) for changed in self.placement.moved(new, known))
        self.placement, self.predicted = new, float(np.mean(new.locality))

    def _count(self, first: U64, second: U64, routes: I32) -> Pairs:
        """The pairs that the workers of one operator count, each with its own counters."""
        if self.settings.capacity is None:
            return Pairs.exact(first, second)
        parts = []
        for server in range(self.settings.n_servers):
            counts = PairCounts(self.settings.capacity)
            mine = routes == server
            counts.update(first[mine], second[mine])
            parts.append(counts.pairs())
        return Pairs.pooled(parts)


def _periods(stream: Stream, settings: ChainSettings) -> Iterator[_Keys]:
    """Key hashes of each operator, period by period; a partial last one too."""
    held: list[tuple[int, _Keys]] = []
    position = 0
    for batch in stream.batches(seed=settings.seed, stop=settings.limit):
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        for name in (*settings.keys, *(["ts"] if settings.period_s is not None else [])):
            if name not in columns:
                remedy = "give a period in tuples" if name == "ts" else "name another"
                raise InputError(f"the stream has no column {name!r}, it has {', '.join(columns)}; {remedy}")
        hashes = [hash_keys(columns[name]) for name in settings.keys]
        if settings.period_s is None:
            numbers = np.arange(position, position + batch.num_rows) // settings.period
        else:
            numbers = (np.asarray(columns["ts"], dtype=np.float64) // settings.period_s).astype(np.int64)
            if (np.diff(numbers, prepend=held[0][0] if held else numbers[:1]) < 0).any():
                raise InputError("periods of seconds need rows in the order of their time; sort the file by it")
        position += batch.num_rows
        cuts = np.flatnonzero(np.diff(numbers)) + 1
        for begin, end in pairwise([0, *cuts.tolist(), batch.num_rows]):
            if held and held[0][0] != numbers[begin]:
                yield _joined(held)
                held = []
            held.append((int(numbers[begin]), [of[begin:end] for of in hashes]))
    if held:
        yield _joined(held)


def _joined(parts: list[tuple[int, _Keys]]) -> _Keys:
    return [np.concatenate([keys[i] for _, keys in parts]) for i in range(len(parts[0][1]))]
