"""A division of keys among servers that is made, balanced and improved in place."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anabranch.locality import moves
from anabranch.locality.graph import KeyGraph
from anabranch.locality.packing import Packing, pack

_MOST_SWEEPS = 12
# A sweep that gains less than this share of the tuples is the last.
_LEAST_GAIN = 2e-4


class Division:
    """Which server each key of a graph is on, with the load of each operator on each server.

    Parameters
    ----------
    graph
        The keys.
    n_servers, alpha
        Servers, and how far above the mean the load of one may be, for each operator on its own.
    servers
        A server for each vertex, −1 for one that has none yet; none by default.

    References
    ----------
    Caneill et al. 2016, §3.1 and §3.3. The paper balances the sum over operators; ours keeps every operator within
    alpha, for operators of a chain may wait for each other, and a server with twice the tuples of one and none of the
    other does not have half of the work of each.
    """

    def __init__(self, graph: KeyGraph, n_servers: int, alpha: float, servers: NDArray[np.int32] | None = None) -> None:
        self.graph = graph
        self.n_servers = n_servers
        n_vertices = int(graph.starts[-1])
        self.servers = np.full(n_vertices, -1, dtype=np.int32) if servers is None else servers
        self.packings = [
            pack(graph.weights[graph.vertices(operator)], n_servers, alpha) for operator in range(graph.n_operators)
        ]
        self.loads = np.zeros((graph.n_operators, n_servers), dtype=np.int64)
        for operator in range(graph.n_operators):
            self._add_up(operator)

    def finish(self) -> None:
        """Place what has no server, balance every operator, and improve what balance leaves room for."""
        for operator in range(self.graph.n_operators):
            self._settle(operator)
            self._balance(operator)
        total = sum(hop.total for hop in self.graph.hops)
        for _ in range(_MOST_SWEEPS):
            gained = sum(self._sweep(operator) for operator in range(self.graph.n_operators))
            if gained <= _LEAST_GAIN * total:
                return

    def _add_up(self, operator: int) -> None:
        at = self.graph.vertices(operator)
        placed = self.servers[at] >= 0
        load = np.bincount(self.servers[at][placed], self.graph.weights[at][placed], self.n_servers)
        self.loads[operator] = load.astype(np.int64)

    def _numbers(self, operator: int) -> NDArray[np.int64]:
        at = self.graph.vertices(operator)
        return np.arange(at.start, at.stop, dtype=np.int64)

    def _settle(self, operator: int) -> None:
        """Keys without a server, heaviest first, to their neighbours or else to the least loaded."""
        numbers = self._numbers(operator)
        homeless = numbers[self.servers[numbers] < 0]
        order = homeless[np.argsort(-self.graph.weights[homeless], kind="stable")]
        moves.settle(order, *self._state(operator))

    def _balance(self, operator: int) -> None:
        """Take keys from servers above the limit, those that lose least; if that is not enough, pack the heavy ones."""
        packing = self.packings[operator]
        self._relieve(operator, self._numbers(operator))
        if self.loads[operator].max() <= packing.limit:
            return
        heavy = packing.heavy + self.graph.starts[operator]
        self.servers[heavy] = self._named_bins(operator, heavy, packing)[packing.bins]
        self._add_up(operator)
        self._relieve(operator, np.setdiff1d(self._numbers(operator), heavy, assume_unique=True))

    def _relieve(self, operator: int, numbers: NDArray[np.int64]) -> None:
        crowded = self.loads[operator] > self.packings[operator].limit
        numbers = numbers[crowded[self.servers[numbers]]]
        if not len(numbers):
            return
        losses = np.empty(len(numbers), dtype=np.float64)
        state = self._state(operator)
        moves.losses(numbers, *state, losses)
        moves.relieve(numbers[np.argsort(losses, kind="stable")], *state)

    def _named_bins(self, operator: int, heavy: NDArray[np.int64], packing: Packing) -> NDArray[np.int32]:
        """A server for each bin of the packing, those first that have most in common."""
        common = np.zeros((self.n_servers, self.n_servers), dtype=np.int64)
        moves.common(heavy, packing.bins, *self._state(operator), common)
        return matched(common)

    def _sweep(self, operator: int) -> int:
        return int(moves.sweep(self._numbers(operator), *self._state(operator)))

    def _state(self, operator: int) -> tuple[NDArray[np.int64], ...]:
        graph = self.graph
        limit = np.array([self.packings[operator].limit], dtype=np.int64)
        edges = graph.offsets, graph.neighbours, graph.counts
        return *edges, graph.weights, limit, self.loads[operator], self.servers  # type: ignore[return-value]


def matched(common: NDArray[np.int64]) -> NDArray[np.int32]:
    """A column for each row of a square matrix, the largest entries first."""
    n = len(common)
    out = np.full(n, -1, dtype=np.int32)
    taken = np.zeros(n, dtype=bool)
    for entry in np.argsort(-common, axis=None, kind="stable"):
        row, column = divmod(int(entry), n)
        if out[row] < 0 and not taken[column]:
            out[row] = column
            taken[column] = True
    return out
