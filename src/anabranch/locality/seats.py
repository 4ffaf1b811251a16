"""Seats: which server each worker is on, where a server may have many workers of an operator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from anabranch.errors import InputError
from anabranch.groupings import TableGrouping
from anabranch.locality.pairs import Pairs
from anabranch.locality.placement import Placement


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

    servers: NDArray[np.int32]

    def __post_init__(self) -> None:
        if self.servers.ndim != 2 or not self.servers.size or self.servers.min() < 0:
            raise InputError(f"servers must be numbers from 0, a row an operator, got {self.servers.tolist()}")

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
        keys = [_all(table, of) for table, of in zip(placement.tables, _keys(chain), strict=True)]
        # A split key, which comes several times, goes to one of its workers each time.
        routes = [router.route(of) for router, of in zip(placement.routers(), keys, strict=True)]
        tables = (TableGrouping(of, own[at]) for of, own, at in zip(keys, self.servers, routes, strict=True))
        return replace(placement, n_servers=self.n_servers, tables=tuple(tables))

    def by_worker(self, placement: Placement, now: Placement) -> Placement:
        """A placement on servers as tables of workers; `now` is the one on workers that it takes the place of.

        What it promises, and the loads of servers, stay as they are.
        """
        routers = now.routers()
        tables = []
        for operator, table in enumerate(placement.tables):
            current = routers[operator].route(table.keys)
            own = self.servers[operator]
            stays = own[current] == table.workers
            tables.append(TableGrouping(table.keys, np.where(stays, current, _seat(table, own, current))))
        return replace(placement, n_servers=self.servers.shape[1], tables=tuple(tables))


def _keys(chain: Sequence[Pairs]) -> list[NDArray[np.uint64]]:
    """The keys of each operator."""
    inner = [np.union1d(before.second, after.first) for before, after in pairwise(chain)]
    return [np.unique(chain[0].first), *inner, np.unique(chain[-1].second)]


def _all(table: TableGrouping, keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The keys of a table, as often as it names them, and all others."""
    return np.sort(np.concatenate([table.keys, np.setdiff1d(keys, table.keys)]))


def _seat(table: TableGrouping, own: NDArray[np.int32], current: NDArray[np.int32]) -> NDArray[np.int32]:
    """A worker on the server of each key, by hash among those there; where there is none, the worker that it has."""
    by_server = np.argsort(own, kind="stable").astype(np.int32)
    counts = np.bincount(own, minlength=int(table.workers.max(initial=0)) + 1)
    starts = np.cumsum(counts) - counts
    there = counts[table.workers] > 0
    out = current.copy()
    servers, keys = table.workers[there], table.keys[there]
    # The high bits choose the worker of keys outside the tables: here it is the others.
    turn = (keys & np.uint64(0xFFFFFFFF)) % counts[servers].astype(np.uint64)
    out[there] = by_server[starts[servers] + turn.astype(np.int64)]
    return out
