"""Coin synopsis: hot keys by flipping coins."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from anabranch.arrays import I32, I64, U64, Bools
from anabranch.containers import slot_table
from anabranch.errors import ConfigError
from anabranch.kernels import njit

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
# r + l ≤ 63 leaves this bit of a vector free.
HOT = np.uint64(1 << 63)
# Cells of `CoinArrays.sizes` and `CoinArrays.draws`.
USED, UPDATES = 0, 1
_DRAWN = 0


class Coin(NamedTuple):
    """The parameters of a synopsis, for kernels."""

    r: int
    l: int  # noqa: E741
    p: float
    zeta: int
    seed: np.uint64


class CoinArrays(NamedTuple):
    """Flat arrays of the synopsis, for kernels.

    Slot s is of `keys[s]` with bit vector `bits[s]`, and `hot[s]` says whether it was appended. `sizes` holds the slots
    that are `USED`, from the first on, and the `UPDATES` of the synopsis; `draws` the random numbers drawn so far.
    """

    keys: U64
    bits: U64
    hot: Bools
    table: I32
    where: I32
    sizes: I64
    draws: U64


class CoinSynopsis:
    """Bit vectors of the keys that threw many heads, declining at random.

    When to use it: to predict hot keys at a few nanoseconds per tuple; only one tuple in 2^r touches the synopsis.

    Guarantees
    ----------
    - A key is hot only after `zeta` different numbers of heads, and until its bit vector is empty.
    - A key alone, without decline: with r = 10 a hot key has occurred 128, 256, 512, 1024 times with probability at
      least 99.28, 97.35, 90.98, 73.53 % (Table I).
    - A key of rate 4p is in the synopsis at 98 % of the updates, one of 0.1p at no more than 25 % (Theorem 2).
    - The synopsis holds no more than 2 / p keys on average.

    Parameters
    ----------
    r
        A tuple reaches the synopsis when it throws at least r heads before the first tail: one in 2^r does.
    l
        Bits of a vector; r + l ≤ 63.
    p
        At each update every vector is shifted to the right with this probability, and an empty one is evicted.
    zeta
        Set bits that make a key hot.
    seed
        Seed of the coins.

    Examples
    --------
    >>> import numpy as np
    >>> synopsis = CoinSynopsis(r=2, p=0.01)
    >>> rare = np.arange(1000, dtype=np.uint64)
    >>> synopsis.update(np.concatenate([rare, np.full(1000, 7, dtype=np.uint64)]))
    >>> bool(synopsis.is_hot(np.array([7], dtype=np.uint64))[0])
    True

    References
    ----------
    DStream, sections III-B and IV. The chance of reaching the synopsis is 2^−r, as in the paper's proofs; bit t − r is
    set, at most l − 1 (the paper's t − r − 1 can be −1); vectors decline independently; at most 16 / p keys are kept.
    """

    def __init__(self, r: int = 6, l: int = 16, p: float = 0.01, zeta: int = 2, seed: int = 0) -> None:  # noqa: E741
        check_coin(r, l, p, zeta)
        self.r, self.l, self.p, self.zeta, self.seed = r, l, p, zeta, seed & 0xFFFFFFFFFFFFFFFF
        capacity = math.ceil(16 / p) if p > 0 else 1 << 16
        self.state = CoinArrays(
            keys=np.zeros(capacity, dtype=np.uint64),
            bits=np.zeros(capacity, dtype=np.uint64),
            hot=np.zeros(capacity, dtype=np.bool_),
            table=slot_table.empty(capacity),
            where=np.zeros(capacity, dtype=np.int32),
            sizes=np.zeros(2, dtype=np.int64),
            draws=np.zeros(1, dtype=np.uint64),
        )

    def __len__(self) -> int:
        return int(self.state.sizes[USED])

    @property
    def coin(self) -> Coin:
        """Its parameters, for kernels."""
        return Coin(self.r, self.l, self.p, self.zeta, np.uint64(self.seed))

    @property
    def n_updates(self) -> int:
        """Tuples that reached the synopsis."""
        return int(self.state.sizes[UPDATES])

    @property
    def nbytes(self) -> int:
        """Bytes of its arrays."""
        return sum(array.nbytes for array in self.state)

    def update(self, keys: U64) -> None:
        """Flip the coin for each key."""
        changes = np.empty(len(self.state.keys) + 1, dtype=np.uint64)
        _update(self.state, self.coin, keys, changes)

    def is_hot(self, keys: U64) -> Bools:
        """Whether each key is hot now."""
        out = np.zeros(len(keys), dtype=np.bool_)
        _is_hot(self.state.keys, self.state.hot, self.state.table, keys, out)
        return out

    def hot_keys(self) -> U64:
        """Keys that are hot now."""
        n = len(self)
        return self.state.keys[:n][self.state.hot[:n]]

    def estimate(self, keys: U64) -> I64:
        """Order of magnitude of each key's recent count: 2^(r + highest bit + 1), 0 for keys not in the synopsis."""
        out = np.zeros(len(keys), dtype=np.int64)
        _estimate(self.state.keys, self.state.bits, self.state.table, keys, self.r, out)
        return out

    def merge(self, other: CoinSynopsis) -> None:
        """Add another synopsis: the bits of both."""
        self.load(*pool([self.entries(), other.entries()]))

    def entries(self) -> tuple[U64, U64]:
        """Keys and bit vectors, with `HOT` set for hot keys: they stay hot until all other bits are gone."""
        n = len(self)
        return self.state.keys[:n].copy(), self.state.bits[:n] | np.where(self.state.hot[:n], HOT, np.uint64(0))

    def load(self, keys: U64, bits: U64) -> None:
        """Become a synopsis of what `entries` gave, of the highest bits where there are too many."""
        kept = np.argsort(bits, kind="stable")[::-1][: len(self.state.keys)]
        n = len(kept)
        self.state.keys[:n] = keys[kept]
        self.state.bits[:n] = bits[kept] & ~HOT
        self.state.hot[:n] = are_hot(bits[kept], self.zeta)
        self.state.sizes[USED] = n
        slot_table.fill(self.state.keys, self.state.table, self.state.where, n)


def are_hot(bits: U64, zeta: int) -> Bools:
    """Whether bit vectors as `CoinSynopsis.entries` gives them are of hot keys."""
    hot: Bools = (bits & HOT > 0) | (np.bitwise_count(bits & ~HOT) >= zeta)
    return hot


def check_coin(r: int, l: int, p: float, zeta: int) -> None:  # noqa: E741
    """Raise ConfigError unless the parameters make a synopsis."""
    if r < 0 or l < 1 or r + l > 63:
        raise ConfigError(f"r must be at least 0, l at least 1 and r + l at most 63, got r={r}, l={l}")
    if not 0 <= p < 1:
        raise ConfigError(f"p must be at least 0 and below 1, got {p}")
    if not 1 <= zeta <= l:
        raise ConfigError(f"zeta must be from 1 to l = {l}, got {zeta}")


def pool(entries: list[tuple[U64, U64]]) -> tuple[U64, U64]:
    """Keys and bit vectors of several synopses; a key that several have gets the bits of all."""
    keys, inverse = np.unique(np.concatenate([keys for keys, _ in entries]), return_inverse=True)
    bits = np.zeros(len(keys), dtype=np.uint64)
    np.bitwise_or.at(bits, inverse, np.concatenate([bits for _, bits in entries]))
    return keys, bits


def shifted(keys: U64, bits: U64, n: int) -> tuple[U64, U64]:
    """Keys and bit vectors after n declines of each; those that are left hot stay so."""
    left = (bits & ~HOT) >> np.uint64(n)
    kept = left > 0
    return keys[kept], (left | bits & HOT)[kept]


@njit(cache=True, inline="always")
def draw(draws: U64, seed: np.uint64) -> np.uint64:
    """The next random number: splitmix64 of a counter, so that a restored synopsis goes on as before."""
    draws[_DRAWN] += np.uint64(1)
    x = (draws[_DRAWN] + seed * np.uint64(0xD1342543DE82EF95)) * _GOLDEN
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.uint64(x ^ (x >> np.uint64(31)))


@njit(cache=True)
def record(
    keys: U64,
    bits: U64,
    hot: Bools,
    table: I32,
    where: I32,
    sizes: I64,
    draws: U64,
    coin: Coin,
    key: np.uint64,
    heads: int,
    changes: U64,
) -> tuple[bool, int]:
    """One synopsis update by a tuple with `heads` beyond r: set its bit, then decline.

    Returns whether `key` turned hot, and how many hot keys were evicted; those are written into `changes`.
    """
    sizes[UPDATES] += 1
    at = slot_table.place_of(key, keys, table)
    slot = table[at] - 1
    appended = False
    if slot < 0 and sizes[USED] < len(keys):
        slot = np.int32(sizes[USED])
        sizes[USED] += 1
        keys[slot] = key
        bits[slot] = 0
        hot[slot] = False
        table[at] = slot + 1
        where[slot] = at
    if slot >= 0:
        bits[slot] |= np.uint64(1) << np.uint64(min(heads, coin.l - 1))
        if not hot[slot] and _popcount(bits[slot]) >= coin.zeta:
            hot[slot] = True
            appended = True
    deleted = _decline(keys, bits, hot, table, where, sizes, draws, coin, changes) if coin.p > 0 else 0
    return appended, deleted


@njit(cache=True, inline="always")
def _popcount(x: np.uint64) -> int:
    n = 0
    while x:
        x &= x - np.uint64(1)
        n += 1
    return n


@njit(cache=True)
def _decline(
    keys: U64, bits: U64, hot: Bools, table: I32, where: I32, sizes: I64, draws: U64, coin: Coin, changes: U64
) -> int:
    """Shift each vector with probability p. From the last slot down, because an eviction moves the last key."""
    deleted = 0
    per_skip = 1 / np.log1p(-coin.p)
    slot = sizes[USED] - 1
    while True:
        uniform = (np.float64(draw(draws, coin.seed) >> np.uint64(11)) + 0.5) * 2.0**-53
        skip = np.log(uniform) * per_skip
        if skip >= slot + 1:
            return deleted
        slot -= np.int64(skip)
        bits[slot] >>= np.uint64(1)
        if bits[slot] == 0:
            if hot[slot]:
                changes[deleted] = keys[slot]
                deleted += 1
            slot_table.delete(where[slot], keys, table, where)
            last = sizes[USED] - 1
            if slot != last:
                keys[slot], bits[slot], hot[slot], where[slot] = keys[last], bits[last], hot[last], where[last]
                table[where[slot]] = slot + 1
            sizes[USED] = last
        slot -= 1
        if slot < 0:
            return deleted


@njit(cache=True, inline="always")
def heads_of(number: np.uint64) -> int:
    """Heads before the first tail: the trailing ones of a random number."""
    heads = 0
    while number & np.uint64(1):
        heads += 1
        number >>= np.uint64(1)
    return heads


@njit(cache=True)
def _update(arrays: CoinArrays, coin: Coin, new: U64, changes: U64) -> None:
    keys, bits, hot, table, where, sizes, draws = arrays
    r, seed = np.uint64(coin.r), coin.seed
    mask = (np.uint64(1) << r) - np.uint64(1)
    for i in range(len(new)):
        number = draw(draws, seed)
        if number & mask == mask:
            record(keys, bits, hot, table, where, sizes, draws, coin, new[i], heads_of(number >> r), changes)


@njit(cache=True)
def _is_hot(keys: U64, hot: Bools, table: I32, asked: U64, out: Bools) -> None:
    for i in range(len(asked)):
        slot = table[slot_table.place_of(asked[i], keys, table)] - 1
        out[i] = slot >= 0 and hot[slot]


@njit(cache=True)
def _estimate(keys: U64, bits: U64, table: I32, asked: U64, r: int, out: I64) -> None:
    for i in range(len(asked)):
        slot = table[slot_table.place_of(asked[i], keys, table)] - 1
        if slot >= 0:
            length = 0
            vector = bits[slot]
            while vector:
                vector >>= np.uint64(1)
                length += 1
            out[i] = np.int64(1) << (r + length)
