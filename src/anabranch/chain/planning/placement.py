"""A placement: a routing table for each operator of a chain, and what is expected of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anabranch import snapshot
from anabranch.arrays import F64, I32, I64, U64, Bools
from anabranch.chain.planning.graph import Hop
from anabranch.chain.planning.pairs import Pairs
from anabranch.errors import ConfigError, SnapshotError
from anabranch.groupings import TableGrouping, TableRouter
from anabranch.metrics import makespan_of


@dataclass(frozen=True, eq=False)
class Placement:
    """Where the keys of each operator of a chain are, and how local and even that was on the pairs it was made from.

    Parameters
    ----------
    n_servers
        Servers; every operator has a worker on each.
    tables
        Of each operator, key → server. A key outside goes by hash, under a seed of the operator's own. A key that has
        several is split: behind an operator a tuple from server s goes to number s of them, modulo how many they are,
        and before the first one to each in turn.
    locality
        Of each hop, the share of the tuples that stay on their server, expected of tuples like those planned for.
    loads
        Of each operator and server, the tuples expected.
    heavy
        Of each operator, keys that have more tuples than a server may have. Such a key keeps its operator out of
        balance, unless its table splits it.
    seed
        Seed of the hashes of keys outside the tables.
    """

    n_servers: int
    tables: tuple[TableGrouping, ...]
    locality: tuple[float, ...]
    loads: F64
    heavy: tuple[U64, ...]
    seed: int = 0

    @classmethod
    def hashed(cls, n_operators: int, n_servers: int, seed: int = 0) -> Placement:
        """Every key by hash, as before anything is known."""
        nothing = np.zeros(0, dtype=np.uint64)
        return cls(
            n_servers,
            (TableGrouping(),) * n_operators,
            (1 / n_servers,) * (n_operators - 1),
            np.zeros((n_operators, n_servers)),
            (nothing,) * n_operators,
            seed,
        )

    @property
    def makespans(self) -> tuple[float, ...]:
        """Of each operator, the largest expected load over the mean: the paper's α; 1.0 is perfect or no load."""
        return tuple(makespan_of(loads) if loads.any() else 1.0 for loads in self.loads)

    @property
    def n_split(self) -> int:
        """Keys of all operators that are on several servers."""
        return sum(len(table.split_keys) for table in self.tables)

    def routers(self) -> list[TableRouter]:
        """A router for each operator.

        Operators hash under different seeds. Under one seed a key that two operators share would always stay where it
        is, and locality by hash would be luck and not 1 / n_servers.
        """
        return [
            TableRouter(table, self.n_servers, 0, 1, self.seed + operator) for operator, table in enumerate(self.tables)
        ]

    def measured(self, chain: Sequence[Pairs]) -> tuple[tuple[float, ...], F64]:
        """Locality of each hop, and loads, that these tables have on other pairs.

        Tuples whose pair was not counted are taken to be local by chance and to spread evenly.
        """
        return expected(self.flows(chain), self.n_servers)

    def flows(self, chain: Sequence[Pairs]) -> list[Flow]:
        """Where these tables send the tuples of each hop; those of a split key go to each of its servers in parts."""
        self.check(chain)
        routers, flows = self.routers(), []
        parts = _in_turn(self.tables[0])
        for i, pairs in enumerate(chain):
            row, sent, share = _servers(routers[i], pairs.first, parts)
            second, counts = pairs.second[row], pairs.counts[row] * share
            received = routers[i + 1].route_from(second, sent)
            flows.append(Flow.of(pairs, sent, received, counts))
            parts = _arrived(self.tables[i + 1], second, received, counts, self.n_servers)
        return flows

    def check(self, chain: Sequence[Pairs]) -> None:
        """Raise ConfigError unless the pairs are those of a chain as long as this one."""
        if len(chain) != len(self.tables) - 1:
            raise ConfigError(
                f"a chain of {len(self.tables)} operators has pairs for {len(self.tables) - 1} hops, got {len(chain)}"
            )

    def moved(self, other: Placement, keys: Sequence[U64]) -> list[Bools]:
        """Of each operator, which of these keys change their server when `other` takes the place of this placement."""
        both = zip(self.routers(), other.routers(), keys, strict=True)
        return [np.asarray(before.route(of) != after.route(of)) for before, after, of in both]

    def pack(self) -> bytes:
        """Bytes that `unpack` reads, to be stored before the placement takes effect."""
        arrays: dict[str, NDArray[np.generic]] = {"loads": self.loads}
        for i, table in enumerate(self.tables):
            arrays |= {f"keys{i}": table.keys, f"workers{i}": table.workers, f"heavy{i}": self.heavy[i]}
        header = {"kind": "placement", "n_servers": self.n_servers, "seed": self.seed, "locality": list(self.locality)}
        return snapshot.pack(header, arrays)

    @classmethod
    def unpack(cls, data: bytes) -> Placement:
        """A placement from its bytes; SnapshotError when they are damaged or something else."""
        try:
            header, arrays = snapshot.unpack(data)
        except SnapshotError as error:
            reason = str(error).partition(";")[0]
            raise SnapshotError(f"these bytes hold no whole placement: {reason}; pass Placement.pack()") from None
        if header.get("kind") != "placement":
            kind = header.get("kind") or "a router"
            raise SnapshotError(f"these bytes hold {kind}, not a placement; pass Placement.pack()")
        n_operators = len(arrays["loads"])
        tables = tuple(TableGrouping(arrays[f"keys{i}"], arrays[f"workers{i}"]) for i in range(n_operators))
        heavy = tuple(arrays[f"heavy{i}"] for i in range(n_operators))
        return cls(header["n_servers"], tables, tuple(header["locality"]), arrays["loads"], heavy, header["seed"])


@dataclass(frozen=True, eq=False)
class Flow:
    """Tuples of a hop by the servers that they come from and go to.

    Parameters
    ----------
    sent, received
        Servers.
    counts
        Tuples.
    uncounted
        Tuples whose servers are unknown, because their pairs were not counted.
    scale
        What one tuple counts as.
    """

    sent: I32
    received: I32
    counts: F64
    uncounted: int
    scale: int

    @classmethod
    def of(cls, pairs: Pairs | Hop, sent: I32, received: I32, counts: F64 | None = None) -> Flow:
        """The flow of pairs; `counts` where it has other rows than they."""
        uncounted = pairs.total - int(pairs.counts.sum())
        return cls(sent, received, pairs.counts.astype(float) if counts is None else counts, uncounted, pairs.scale)


def expected(flows: Sequence[Flow], n_servers: int) -> tuple[tuple[float, ...], F64]:
    """Locality of each hop, and loads."""
    locality, leaving, arriving = [], [], []
    for flow in flows:
        rest = flow.uncounted / n_servers
        total = float(flow.counts.sum()) + flow.uncounted
        local = float(flow.counts[flow.sent == flow.received].sum()) + rest
        locality.append(local / total if total else 1 / n_servers)
        leaving.append((np.bincount(flow.sent, flow.counts, n_servers) + rest) / flow.scale)
        arriving.append((np.bincount(flow.received, flow.counts, n_servers) + rest) / flow.scale)
    return tuple(locality), np.array([leaving[0], *arriving])


@dataclass(frozen=True, eq=False)
class _Parts:
    """What part of its tuples each split key has on each of its servers; keys in ascending order."""

    keys: U64
    servers: I32
    parts: F64


def _in_turn(table: TableGrouping) -> _Parts:
    """An equal part wherever the table names the key."""
    split = np.isin(table.keys, table.split_keys)
    order = np.flatnonzero(split)[np.argsort(table.keys[split], kind="stable")]
    keys = table.keys[order]
    _, inverse, times = np.unique(keys, return_inverse=True, return_counts=True)
    return _Parts(keys, table.workers[order], 1 / times[inverse])


def _arrived(table: TableGrouping, keys: U64, servers: I32, counts: F64, n_servers: int) -> _Parts:
    """As tuples have arrived; in equal parts for keys without tuples."""
    there = np.isin(keys, table.split_keys)
    known, number = np.unique(keys[there], return_inverse=True)
    tuples = np.bincount(number * n_servers + servers[there], counts[there], len(known) * n_servers)
    tuples = tuples.reshape(len(known), n_servers)
    row, server = np.nonzero(tuples)
    found = _Parts(known[row], server.astype(np.int32), tuples[row, server] / tuples.sum(axis=1)[row])
    unknown = _in_turn(table)
    new = ~np.isin(unknown.keys, known)
    both = [
        np.concatenate([getattr(found, name), getattr(unknown, name)[new]]) for name in ("keys", "servers", "parts")
    ]
    order = np.argsort(both[0], kind="stable")
    return _Parts(*(column[order] for column in both))


def _servers(router: TableRouter, keys: U64, parts: _Parts) -> tuple[I64, I32, F64]:
    """Servers of keys: the row of a key, a server, and the part of the key's tuples that it gets."""
    row, servers = np.arange(len(keys)), router.route(keys)
    split = np.isin(keys, parts.keys)
    if not split.any():
        return row, servers, np.ones(len(keys))
    begins, ends = np.searchsorted(parts.keys, keys[split]), np.searchsorted(parts.keys, keys[split], side="right")
    n = ends - begins
    at = np.arange(n.sum()) + np.repeat(begins - np.cumsum(n) + n, n)
    return (
        np.concatenate([row[~split], np.repeat(row[split], n)]),
        np.concatenate([servers[~split], parts.servers[at]]),
        np.concatenate([np.ones(int((~split).sum())), parts.parts[at]]),
    )
