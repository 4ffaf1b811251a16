"""Seats: which server each worker is on, where a server may have many workers of an operator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from anabranch.arrays import I32, U64
from anabranch.chain.planning.pairs import Pairs
from anabranch.chain.planning.placement import Placement
from anabranch.errors import InputError
from anabranch.groupings import TableGrouping, TableRouter


@dataclass(frozen=True, eq=False)
class Seats:
    """The server of each worker of each operator: a plan is for servers, tuples are routed to workers.

    Guarantees
    ----------
    - `by_server` sends each key of the pairs to the server of the worker that it goes to.
    - `by_worker` sends each key to a worker on its server, where the operator has one there; a key whose worker is on
      that server already stays with it.

    Parameters
    ----------
    servers
        For each operator and worker, the number of its server, from 0.

    Examples
    --------
    >>> seats = Seats.of([["a", "b", "a"], ["b", "a", "b"]])
    >>> seats.n_servers, seats.servers.tolist()
    (2, [[0, 1, 0], [1, 0, 1]])
    """

    servers: I32

    def __post_init__(self) -> None:
        if self.servers.ndim != 2 or not self.servers.size or self.servers.min() < 0:
            raise InputError(f"servers must be numbers from 0, one row per operator, got {self.servers.tolist()}")

    @classmethod
    def of(cls, hosts: Sequence[Sequence[str]]) -> Seats:
        """From the host of each worker of each operator; hosts are numbered in the order of their names."""
        numbers = {host: number for number, host in enumerate(sorted({host for own in hosts for host in own}))}
        return cls(np.array([[numbers[host] for host in own] for own in hosts], dtype=np.int32))

    @property
    def n_servers(self) -> int:
        """Servers that have any worker."""
        return int(self.servers.max()) + 1

    def by_server(self, placement: Placement, chain: Sequence[Pairs]) -> Placement:
        """The same routes as tables of servers, for every key of the tables and of these pairs."""
        placement.check(chain)
        routers, tables = placement.routers(), []
        for operator, of in enumerate(_keys(chain)):
            table, own = placement.tables[operator], self.servers[operator]
            whole = np.setdiff1d(np.concatenate([table.keys, of]), table.split_keys)
            split, workers = self._split_by_server(table, operator)
            keys = np.concatenate([whole, split])
            servers = own[np.concatenate([routers[operator].route(whole), workers])]
            order = np.argsort(keys, kind="stable")
            tables.append(TableGrouping(keys[order], servers[order]))
        return replace(placement, n_servers=self.n_servers, tables=tuple(tables))

    def _split_by_server(self, table: TableGrouping, operator: int) -> tuple[U64, I32]:
        """Split keys of a table of workers, and their workers: behind an operator one for each server of senders."""
        named = np.isin(table.keys, table.split_keys)
        if not operator or not named.any():
            return table.keys[named], table.workers[named]
        keys = np.repeat(table.split_keys, self.n_servers)
        # Tuples of a server come from several workers: the first of them stands for all.
        sender = np.tile(_first_on_each(self.servers[operator - 1], self.n_servers), len(table.split_keys))
        return keys, TableRouter(table, self.servers.shape[1], 0, 1, 0).route_from(keys, sender)

    def by_worker(self, placement: Placement, now: Placement) -> Placement:
        """A placement on servers as tables of workers; `now` is the one on workers that it takes the place of.

        What it promises, and the loads of servers, stay as they are. A split key has a worker for each worker that
        sends, on that one's server.
        """
        routers, n_workers = now.routers(), self.servers.shape[1]
        tables = []
        for operator, table in enumerate(placement.tables):
            own = self.servers[operator]
            dealt = np.isin(table.keys, table.split_keys) & (operator > 0)
            keys, servers = table.keys[~dealt], table.workers[~dealt]
            current = routers[operator].route(keys)
            workers = np.where(own[current] == servers, current, _seat(keys, servers, own, current))
            if dealt.any():
                split = np.repeat(table.split_keys, n_workers)
                senders = np.tile(np.arange(n_workers, dtype=np.int32), len(table.split_keys))
                router = TableRouter(table, self.n_servers, 0, 1, 0)
                servers = router.route_from(split, self.servers[operator - 1][senders])
                # Each sender has another worker of the server, and each key begins with another.
                seats = _seat(split + senders.astype(np.uint64), servers, own, senders)
                keys, workers = np.concatenate([keys, split]), np.concatenate([workers, seats])
            tables.append(TableGrouping(keys, workers))
        return replace(placement, n_servers=n_workers, tables=tuple(tables))


def _first_on_each(servers: I32, n_servers: int) -> I32:
    """The first worker on each server; where there is none, the one of the server's number or any."""
    first = np.arange(n_servers, dtype=np.int32) % np.int32(len(servers))
    there, worker = np.unique(servers, return_index=True)
    first[there] = worker
    return first


def _keys(chain: Sequence[Pairs]) -> list[U64]:
    """The keys of each operator."""
    inner = [np.union1d(before.second, after.first) for before, after in pairwise(chain)]
    return [np.unique(chain[0].first), *inner, np.unique(chain[-1].second)]


def _seat(keys: U64, servers: I32, own: I32, current: I32) -> I32:
    """A worker on the server of each key, by hash among those there; where there is none, the worker that it has."""
    by_server = np.argsort(own, kind="stable").astype(np.int32)
    counts = np.bincount(own, minlength=int(servers.max(initial=0)) + 1)
    starts = np.cumsum(counts) - counts
    there = counts[servers] > 0
    out = current.copy()
    servers, keys = servers[there], keys[there]
    # The high bits choose the worker of keys outside the tables: here it is the others.
    turn = (keys & np.uint64(0xFFFFFFFF)) % counts[servers].astype(np.uint64)
    out[there] = by_server[starts[servers] + turn.astype(np.int64)]
    return out
