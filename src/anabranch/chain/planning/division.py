"""A division of keys among servers that is made, balanced and improved in place."""

from __future__ import annotations

import numpy as np

from anabranch.arrays import I32, I64
from anabranch.chain.planning import hubs, moves
from anabranch.chain.planning.graph import KeyGraph
from anabranch.chain.planning.packing import Packing, pack

_MOST_SWEEPS = 12
# A sweep that gains less than this share of the tuples is the last.
_LEAST_GAIN = 2e-4
_MOST_EXCHANGES = 10


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

    def __init__(self, graph: KeyGraph, n_servers: int, alpha: float, servers: I32 | None = None) -> None:
        self.graph = graph
        self.n_servers = n_servers
        n_vertices = int(graph.starts[-1])
        self.servers = np.full(n_vertices, -1, dtype=np.int32) if servers is None else servers
        others = [0, *(int(graph.staying[graph.vertices(operator)].sum()) for operator in range(graph.n_operators - 1))]
        self.packings = [
            pack(graph.weights[graph.vertices(operator)], n_servers, alpha, others[operator])
            for operator in range(graph.n_operators)
        ]
        self.loads = np.zeros((graph.n_operators, n_servers), dtype=np.int64)
        for operator in range(graph.n_operators):
            self._add_up(operator)

    def finish(self) -> None:
        """Place what has no server, balance every operator, and improve what balance leaves room for."""
        for operator in range(self.graph.n_operators):
            self._settle(operator)
            self._balance(operator)
        self._improve()
        for operator in range(self.graph.n_operators):
            self._exchange_hubs(operator)
        # What spread keys bring moves with the keys of the operator before.
        for operator in range(1, self.graph.n_operators):
            self._balance(operator)

    def local(self) -> int:
        """Tuples whose two keys are on one server, over all hops."""
        starts, hops = self.graph.starts, self.graph.hops
        together = (
            self.servers[hop.first + starts[i]] == self.servers[hop.second + starts[i + 1]]
            for i, hop in enumerate(hops)
        )
        return sum(int(hop.counts[same].sum()) for hop, same in zip(hops, together, strict=True))

    def _exchange_hubs(self, operator: int) -> None:
        """Exchange the heavy keys of an operator, let the others follow, and keep that if it is better."""
        before = self.local(), self.servers.copy(), self.loads.copy()
        found = hubs.hubs_of(self.graph, operator, self.packings[operator].heavy)
        limit = self.packings[operator].limit
        follow = hubs.exchange(self.graph, found, limit, self.loads[operator], self.servers)
        if follow is None:
            return
        self.servers[follow >= 0] = follow[follow >= 0]
        for other in range(self.graph.n_operators):
            self._balance(other)
        self._improve()
        if self.local() <= before[0]:
            self.servers[:], self.loads[:] = before[1:]

    def _improve(self) -> None:
        """Keys to the server with most of their tuples, as long as there is room and it gains."""
        total = sum(hop.total for hop in self.graph.hops)
        for _ in range(_MOST_SWEEPS):
            gained = sum(self._renumber(operator) for operator in range(1, self.graph.n_operators))
            gained += sum(self._sweep(operator) for operator in range(self.graph.n_operators))
            if gained <= _LEAST_GAIN * total:
                return

    def _add_up(self, operator: int) -> None:
        self.loads[operator] = self._sum(operator, self.graph.weights)
        if operator:
            self.loads[operator] += self._sum(operator - 1, self.graph.staying)

    def _sum(self, operator: int, values: I64) -> I64:
        """By server, over the keys of an operator."""
        at = self.graph.vertices(operator)
        placed = self.servers[at] >= 0
        return np.bincount(self.servers[at][placed], values[at][placed], self.n_servers).astype(np.int64)

    def _numbers(self, operator: int) -> I64:
        at = self.graph.vertices(operator)
        return np.arange(at.start, at.stop, dtype=np.int64)

    def _settle(self, operator: int) -> None:
        """Keys without a server, heaviest first, to their neighbours or else to the least loaded."""
        numbers = self._numbers(operator)
        self._add_up(operator)
        homeless = numbers[self.servers[numbers] < 0]
        order = homeless[np.argsort(-self.graph.weights[homeless], kind="stable")]
        moves.settle(order, self._state(operator))

    def _balance(self, operator: int) -> None:
        """Take keys from servers above the limit, those that lose least; if that is not enough, pack the heavy ones."""
        packing = self.packings[operator]
        self._add_up(operator)
        self._relieve(operator, self._numbers(operator))
        if self.loads[operator].max() <= packing.limit:
            return
        heavy = packing.heavy + self.graph.starts[operator]
        self.servers[heavy] = self._named_bins(operator, heavy, packing)[packing.bins]
        self._add_up(operator)
        self._relieve(operator, np.setdiff1d(self._numbers(operator), heavy, assume_unique=True))

    def _relieve(self, operator: int, numbers: I64) -> None:
        crowded = self.loads[operator] > self.packings[operator].limit
        numbers = numbers[crowded[self.servers[numbers]]]
        if not len(numbers):
            return
        losses = np.empty(len(numbers), dtype=np.float64)
        state = self._state(operator)
        moves.losses(numbers, state, losses)
        moves.relieve(numbers[np.argsort(losses, kind="stable")], state)

    def _named_bins(self, operator: int, heavy: I64, packing: Packing) -> I32:
        """A server for each bin of the packing: one that it has much in common with."""
        return matched(self._common(operator, heavy, packing.bins))

    def _common(self, operator: int, numbers: I64, bins: I32) -> I64:
        """Tuples that the keys of each bin share with keys of other operators on each server."""
        common = np.zeros((self.n_servers, self.n_servers), dtype=np.int64)
        moves.common(numbers, bins, self._state(operator), common)
        return common

    def _renumber(self, operator: int) -> int:
        """Give the keys of whole servers to other servers, where that gains; balance stays as it is."""
        numbers = self._numbers(operator)
        common = self._common(operator, numbers, self.servers[numbers])
        server = matched(common)
        gained = int(common[np.arange(self.n_servers), server].sum() - np.trace(common))
        if gained <= 0:
            return 0
        self.servers[numbers] = server[self.servers[numbers]]
        self._add_up(operator)
        return gained

    def _sweep(self, operator: int) -> int:
        self._add_up(operator)
        return int(moves.sweep(self._numbers(operator), self._state(operator)))

    def _state(self, operator: int) -> moves.State:
        graph, limit = self.graph, self.packings[operator].limit
        edges = graph.offsets, graph.neighbours, graph.counts
        return moves.State(*edges, graph.weights, limit, self.loads[operator], self.servers)


def matched(common: I64) -> I32:
    """A column for each row of a square matrix: the largest entries first, then exchanged while that gains."""
    n = len(common)
    out = np.full(n, -1, dtype=np.int32)
    taken = np.zeros(n, dtype=bool)
    for entry in np.argsort(-common, axis=None, kind="stable"):
        row, column = divmod(int(entry), n)
        if out[row] < 0 and not taken[column]:
            out[row] = column
            taken[column] = True
    for _ in range(_MOST_EXCHANGES):
        if not _exchanged(common, out):
            break
    return out


def _exchanged(common: I64, columns: I32) -> bool:
    """Exchange the columns of two rows wherever that gains; whether it did anywhere."""
    any_gain = False
    for row in range(len(columns)):
        own = common[np.arange(len(columns)), columns]
        gains = common[row, columns] + common[:, columns[row]] - own - own[row]
        other = int(np.argmax(gains))
        if gains[other] > 0:
            columns[row], columns[other] = columns[other], columns[row]
            any_gain = True
    return any_gain
