"""Settings of a simulated chain of operators."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import Any

from anabranch.chain.planning import METHODS, Manager, Servers
from anabranch.chain.planning.planner import Method
from anabranch.errors import ConfigError

MODES = ("online", "offline")
BETWEEN = ("nothing", "local-or-shuffle", "shuffle")


@dataclass(frozen=True)
class ChainSettings:
    """Operators, servers and how routing tables come about.

    Parameters
    ----------
    keys
        Columns of the stream that the operators are keyed by, in the order of the chain.
    n_servers
        Servers; each has a worker of every operator.
    method
        How tables are made; see `anabranch.chain.place`. "hash" makes none.
    mode
        "online": new tables after every period, from the pairs of the last ones. "offline": once, after the first.
    period, period_s
        Tuples of a period; or seconds of the stream's own time, for streams that have it. The first goes by hash.
    history
        Periods whose pairs a plan is made from.
    fade
        What a period counts in a plan, of what the one after it does; 1 counts all alike.
    capacity
        Counters that a worker has for pairs; None: it counts them all.
    alpha
        How far above the mean the load of a server may be, for each operator, in a plan.
    split
        Whether plans put hot keys on several servers; see `anabranch.chain.place`.
    careful
        Online: new tables take effect only where the manager expects them to pay. Otherwise always.
    padding
        Bytes that a tuple carries.
    servers
        What a tuple costs.
    state_bytes
        Bytes of a key's state, for the manager.
    between
        A stateless operator between each two: "nothing", or one that tuples reach by "shuffle", or by
        "local-or-shuffle", which stays on the server.
    seed
        Of the stream, METIS and hashes.
    limit
        Read at most so many tuples; default all.
    """

    keys: tuple[str, ...] = ("key", "second")
    n_servers: int = 6
    method: Method = "metis"
    mode: str = "online"
    period: int = 100_000
    period_s: float | None = None
    history: int = 1
    fade: float = 1.0
    capacity: int | None = None
    alpha: float = 1.03
    split: bool = False
    careful: bool = False
    padding: int = 0
    servers: Servers = field(default_factory=Servers)
    state_bytes: float = 64.0
    between: str = "nothing"
    seed: int = 0
    limit: int | None = None

    def __post_init__(self) -> None:
        if len(self.keys) < 2:
            raise ConfigError(f"a chain has at least 2 operators, got keys {self.keys}; name a column for each")
        for name in ("n_servers", "period", "history", "capacity", "limit"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ConfigError(f"{name} must be at least 1, got {value}")
        if self.period_s is not None and not (self.period_s > 0 and math.isfinite(self.period_s)):
            raise ConfigError(f"period_s must be above 0, got {self.period_s}")
        if not 0 < self.fade <= 1:
            raise ConfigError(f"fade must be above 0 and at most 1, got {self.fade}")
        if self.padding < 0:
            raise ConfigError(f"padding must be 0 or more bytes, got {self.padding}")
        if self.seed < 0:
            raise ConfigError(f"seed must be 0 or a positive whole number, got {self.seed}")
        for name, known in (("method", METHODS), ("mode", MODES), ("between", BETWEEN)):
            if getattr(self, name) not in known:
                raise ConfigError(f"{name} must be one of {', '.join(known)}, got {getattr(self, name)!r}")
        if not (self.alpha >= 1 and math.isfinite(self.alpha)):
            raise ConfigError(f"alpha must be at least 1, got {self.alpha}")

    @property
    def manager(self) -> Manager:
        """The manager of a chain with these settings."""
        return Manager(
            self.n_servers,
            alpha=self.alpha,
            method=self.method,
            seed=self.seed,
            servers=self.servers,
            padding=self.padding,
            state_bytes=self.state_bytes,
            split=self.split,
        )

    def record(self) -> dict[str, Any]:
        """The settings as JSON values."""
        return {**asdict(self), "keys": list(self.keys)}
