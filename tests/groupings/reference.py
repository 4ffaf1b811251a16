"""Groupings as the papers tell them, in plain Python: slow and obviously right.

Functions that end in ``_routes`` give the one right answer. Where a tie between workers may be broken either way, a
function that begins with ``replay`` follows the routes it is given instead, and says for each tuple which loads the
chosen worker was allowed to have.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import count, islice

MASK = 2**64 - 1
# Shares and their sums are about 1, and are off by less than this.
_ROUNDING = 1e-12
P1, P2, P3, P4, P5 = (
    0x9E3779B185EBCA87,
    0xC2B2AE3D27D4EB4F,
    0x165667B19E3779F9,
    0x85EBCA77C2B2AE63,
    0x27D4EB2F165667C5,
)


def rotate(x: int, bits: int) -> int:
    return (x << bits | x >> (64 - bits)) & MASK


def hash_long(value: int, seed: int) -> int:
    h = (seed + P5 + 8) & MASK
    h ^= rotate(value * P2 & MASK, 31) * P1 & MASK
    h = (rotate(h, 27) * P1 + P4) & MASK
    h = (h ^ h >> 33) * P2 & MASK
    h = (h ^ h >> 29) * P3 & MASK
    return h ^ h >> 32


def scale(key: int, n: int) -> int:
    return (key >> 32) * n >> 32


def candidates(key: int, n: int) -> list[int]:
    """All workers in the order in which the key prefers them: cosets of the distance, one after the other."""
    if n == 1:
        return [0]
    distance = 1 + ((key & 0xFFFFFFFF) * (n - 1) >> 32)
    laps = math.gcd(distance, n)
    return [(scale(key, n) + lap + step * distance) % n for lap in range(laps) for step in range(n // laps)]


def key_routes(keys: list[int], n: int) -> list[int]:
    return [scale(key, n) for key in keys]


def shuffle_routes(keys: list[int], n: int, start: int) -> list[int]:
    return [(start + i) % n for i in range(len(keys))]


def partial_key_routes(keys: list[int], n: int, choices: int, loads: list[int] | None = None) -> list[int]:
    loads = loads or [0] * n
    routes = []
    for key in keys:
        worker = min(candidates(key, n)[:choices], key=lambda w: loads[w])
        loads[worker] += 1
        routes.append(worker)
    return routes


def static_two_choices_routes(keys: list[int], n: int) -> list[int]:
    loads, homes, routes = [0] * n, {}, []
    for key in keys:
        if key not in homes:
            homes[key] = min(candidates(key, n)[:2], key=lambda w: loads[w])
        loads[homes[key]] += 1
        routes.append(homes[key])
    return routes


def offline_greedy_routes(keys: list[int], n: int, counts: dict[int, int]) -> list[int]:
    loads, homes = [0] * n, {}
    for key in sorted(counts, key=lambda k: (-counts[k], k)):
        homes[key] = loads.index(min(loads))
        loads[homes[key]] += counts[key]
    return [homes.get(key, scale(key, n)) for key in keys]


def consistent_routes(keys: list[int], owners: list[int], epsilon: float) -> list[int]:
    loads, routes = [0] * len(owners), []
    for i, key in enumerate(keys):
        virtual = next(v for v in _virtual_workers(key, len(owners)) if not _full(loads, v, i + 1, epsilon))
        loads[virtual] += 1
        routes.append(owners[virtual])
    return routes


def replay_consistent(
    keys: list[int], routes: list[int], n: int, epsilon: float, max_rehashes: int
) -> Iterator[tuple[int, set[int]]]:
    """For each tuple the virtual worker chosen, and those that could have been."""
    loads = [0] * n
    for i, (key, virtual) in enumerate(zip(keys, routes, strict=True)):
        tried = islice(_virtual_workers(key, n), 1 + max_rehashes)
        found = next((v for v in tried if not _full(loads, v, i + 1, epsilon)), None)
        yield virtual, {v for v in range(n) if loads[v] == min(loads)} if found is None else {found}
        loads[virtual] += 1


def _virtual_workers(key: int, n: int) -> Iterator[int]:
    """In the order in which the key tries them, without end."""
    yield scale(key, n)
    for salt in count(1):
        yield scale(hash_long(key, salt), n)


def _full(loads: list[int], virtual: int, total: int, epsilon: float) -> bool:
    return loads[virtual] >= (1 + epsilon) * total / len(loads)


def replay_online_greedy(keys: list[int], routes: list[int], n: int) -> Iterator[tuple[int, set[int]]]:
    """For each tuple the worker chosen, and the workers that could have been."""
    loads: list[int] = [0] * n
    homes: dict[int, int] = {}
    for key, worker in zip(keys, routes, strict=True):
        least = {w for w in range(n) if loads[w] == min(loads)}
        yield worker, {homes[key]} if key in homes else least
        homes[key] = worker
        loads[worker] += 1


def replay_head(
    keys: list[int], routes: list[int], n: int, theta: float, choices_at: Callable[[int, Counter[int]], int]
) -> Iterator[tuple[int, set[int]]]:
    """For each tuple the worker chosen, and the workers that could have been; `choices_at` is asked at each tuple."""
    loads: list[int] = [0] * n
    counts: Counter[int] = Counter()
    for total, (key, worker) in enumerate(zip(keys, routes, strict=True), start=1):
        counts[key] += 1
        choices = choices_at(total, counts)
        if counts[key] < theta * total:
            right = {min(candidates(key, n)[:2], key=lambda w: loads[w])}
        elif choices >= n:
            right = {w for w in range(n) if loads[w] == min(loads)}
        else:
            right = {min(candidates(key, n)[:choices], key=lambda w: loads[w])}
        yield worker, right
        loads[worker] += 1


class DChoicesSchedule:
    """Choices of D-Choices at each tuple: solved at the first, then after every twentieth of the tuples.

    `found` has the router's own choices at each tuple: they are taken where rounding may decide, and nowhere else.
    """

    def __init__(self, n: int, theta: float, epsilon: float, found: list[int] | None = None) -> None:
        self.n, self.theta, self.epsilon, self.found = n, theta, epsilon, found
        self.choices, self.next = n, 1

    def __call__(self, total: int, counts: Counter[int]) -> int:
        if total >= self.next:
            solved = solve_choices(list(counts.values()), total, self.theta, self.epsilon, self.n)
            reached = {self._reached(hashes) for hashes in solved}
            found = self.found[total - 1] if self.found else None
            self.choices = found if found in reached else min(reached)
            self.next = total + min(max(total // 20, 100), 10_000)
        return self.choices

    def _reached(self, hashes: int) -> int:
        return self.n if hashes >= self.n else math.ceil(self.n - self.n * ((self.n - 1) / self.n) ** hashes)


def solve_choices(counts: list[int], total: int, theta: float, epsilon: float, n: int) -> set[int]:
    """The smallest d ≥ 2 that satisfies the condition for every prefix of the head; n where none below n does.

    Several where the two sides of the condition are equal but for rounding.
    """
    shares = sorted((count / total for count in counts if count), reverse=True)
    head = [share for share, count in zip(shares, sorted(counts, reverse=True), strict=False) if count >= theta * total]
    tail = max(0.0, 1 - sum(head))
    found = set()
    for d in range(2, n):
        spare = min((_spare(head[:h], head[h:], tail, d, n, epsilon) for h in range(1, len(head) + 1)), default=1.0)
        if spare >= -_ROUNDING:
            found.add(d)
        if spare > _ROUNDING:
            return found
    return found | {n}


def _spare(prefix: list[float], rest: list[float], tail: float, d: int, n: int, epsilon: float) -> float:
    b = n - n * ((n - 1) / n) ** (len(prefix) * d)
    return b * (1 / n + epsilon) - (sum(prefix) + (b / n) ** d * sum(rest) + (b / n) ** 2 * tail)
