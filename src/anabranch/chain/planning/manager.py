"""The manager, which says whether new tables are worth the state that must move."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from anabranch.arrays import U64
from anabranch.chain.planning.pairs import Pairs
from anabranch.chain.planning.placement import Placement
from anabranch.chain.planning.planner import Method, place
from anabranch.chain.planning.servers import Servers, traffic_of
from anabranch.errors import ConfigError


@dataclass(frozen=True, eq=False)
class Decision:
    """What the manager has decided, and why.

    Parameters
    ----------
    placement
        In force from the next tuple on: the candidate, or what was in force before.
    migrates
        Whether it is the candidate, so that state must move before the next tuple.
    trust
        How much of the locality that plans promised came true so far, from 0 to 1.
    locality_now, locality_candidate
        Mean over hops on the tuples since the last decision: of the tables in force, and of the candidate.
    gain_s, cost_s
        Seconds that the candidate is expected to save, and that moving state takes, at the busiest server.
    moved
        Of each operator, keys that move, where the candidate is taken.
    """

    placement: Placement
    migrates: bool
    trust: float
    locality_now: float
    locality_candidate: float
    gain_s: float
    cost_s: float
    moved: tuple[U64, ...]


@dataclass(frozen=True)
class Manager:
    """Plans anew from the pairs of a period, and changes the tables where that pays for moving the state.

    Guarantees
    ----------
    - Without new tables that are better than those in force nothing moves.
    - The same pairs and the same decision before give the same decision.

    Parameters
    ----------
    n_servers, alpha, method, seed, split
        As in `place`.
    servers, padding
        What tuples cost, and how many bytes each carries.
    state_bytes
        Bytes of a key's state.
    horizon
        How many periods, each as long as the time since the last decision, new tables are expected to last.
    hysteresis
        Share of the time of the busiest server that new tables must save, after the cost of moving state.

    Examples
    --------
    >>> import numpy as np
    >>> first = np.arange(600, dtype=np.uint64) << np.uint64(50)
    >>> pairs = Pairs.exact(first, first + np.uint64(1), np.full(600, 1000))
    >>> manager = Manager(n_servers=3, method="greedy")
    >>> begun = manager.decide([pairs])
    >>> begun.migrates, begun.locality_candidate, manager.decide([pairs], begun).migrates
    (True, 1.0, False)

    References
    ----------
    Caneill et al. 2016, §3.4: the paper reconfigures at fixed intervals. §6 leaves "estimators able to predict the
    impact of a reconfiguration" for later, and this is one: the gain is what the tables would have saved on the period
    they were made from, times the part of such promises that came true before, because the next period has other pairs.
    """

    n_servers: int
    alpha: float = 1.03
    method: Method = "metis"
    seed: int = 0
    servers: Servers = field(default_factory=Servers)
    padding: float = 0.0
    state_bytes: float = 64.0
    horizon: float = 1.0
    hysteresis: float = 0.01
    split: bool | tuple[int, ...] = False

    def __post_init__(self) -> None:
        for name in ("padding", "state_bytes", "horizon", "hysteresis"):
            value = getattr(self, name)
            if not (value >= 0 and math.isfinite(value)):
                raise ConfigError(f"{name} must be 0 or more, got {value}")

    def decide(
        self, chain: Sequence[Pairs], previous: Decision | None = None, *, recent: Sequence[Pairs] | None = None
    ) -> Decision:
        """Whether new tables take effect.

        Parameters
        ----------
        chain
            Pairs to plan from, of each two operators in a row: those since the last decision, or of a longer time.
        previous
            The last decision; None at the start, where every key goes by hash.
        recent
            Pairs since the last decision, where `chain` is of a longer time: what the tables in force have achieved is
            measured on these, and gains are for as many tuples.
        """
        recent = chain if recent is None else recent
        now = Placement.hashed(len(chain) + 1, self.n_servers, self.seed) if previous is None else previous.placement
        now.check(chain)
        chosen = {name: getattr(self, name) for name in ("alpha", "method", "seed", "split")}
        candidate = place(chain, self.n_servers, previous=now, **chosen)
        locality_now = float(np.mean(now.measured(recent)[0]))
        trust = self._trust(previous, locality_now)
        period = _tuples(recent) / max(_tuples(chain), 1.0)
        seconds_now = period * self._seconds(now, chain)
        gain_s = trust * (seconds_now - period * self._seconds(candidate, chain)) * self.horizon
        moved = _moved(now, candidate)
        cost_s = self._cost_s(now, candidate, moved)
        migrates = gain_s - cost_s > self.hysteresis * seconds_now * self.horizon
        return Decision(
            placement=candidate if migrates else now,
            migrates=migrates,
            trust=trust,
            locality_now=locality_now,
            locality_candidate=float(np.mean(candidate.locality)),
            gain_s=gain_s,
            cost_s=cost_s,
            moved=moved if migrates else tuple(keys[:0] for keys in moved),
        )

    def _trust(self, previous: Decision | None, achieved: float) -> float:
        """The mean of what it was and of the part of the last promise that came true."""
        if previous is None:
            return 1.0
        by_chance = 1 / self.n_servers
        promised = float(np.mean(previous.placement.locality)) - by_chance
        if promised <= 0:
            return previous.trust
        return (previous.trust + min(max((achieved - by_chance) / promised, 0.0), 1.0)) / 2

    def _seconds(self, placement: Placement, chain: Sequence[Pairs]) -> float:
        traffic = []
        for flow in placement.flows(chain):
            known = traffic_of(flow.sent, flow.received, self.n_servers, flow.counts)
            traffic.append((known + flow.uncounted / self.n_servers**2) / flow.scale)
        return self.servers.seconds(traffic, self.padding)

    def _cost_s(self, now: Placement, candidate: Placement, moved: Sequence[U64]) -> float:
        """Seconds of the server that sends or receives most states."""
        states = np.zeros((self.n_servers, self.n_servers))
        for before, after, keys in zip(now.routers(), candidate.routers(), moved, strict=True):
            states += traffic_of(before.route(keys), after.route(keys), self.n_servers)
        busiest = max(states.sum(axis=0).max(), states.sum(axis=1).max())
        return float(busiest) * (self.servers.remote_s + self.state_bytes / self.servers.bandwidth)


def _tuples(chain: Sequence[Pairs]) -> float:
    return sum(pairs.total / pairs.scale for pairs in chain)


def _moved(now: Placement, candidate: Placement) -> tuple[U64, ...]:
    """Keys of either table whose server changes; a key in neither goes by the same hash before and after."""
    both = zip(now.tables, candidate.tables, strict=True)
    keys = [np.union1d(before.keys, after.keys) for before, after in both]
    return tuple(of[changed] for of, changed in zip(keys, now.moved(candidate, keys), strict=True))
