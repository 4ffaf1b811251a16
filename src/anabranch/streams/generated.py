"""Streams that are computed, and the rules their parameters share."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa

from anabranch.errors import ConfigError
from anabranch.streams.counter_random import seed_bits
from anabranch.streams.stream import Stream

# Ranks and uniforms are doubles of 52 random bits: with more keys than this their spacing would show.
MAX_KEYS = 2**40


class Generated(Stream):
    """A stream whose tuple i is a function of the seed and i alone.

    A subclass has a field ``n_tuples`` and gives the columns of any range of tuples.
    """

    n_tuples: int

    @property
    def needs_end(self) -> bool:
        """Whether tuples depend on the length of the stream, so that it cannot be endless."""
        return False

    @abstractmethod
    def _columns(self, seed: np.uint64, start: int, count: int) -> Mapping[str, pa.Array]:
        """The columns of `count` tuples from `start` on."""

    def _read(self, seed: int, size: int, start: int, stop: int | None) -> Iterator[pa.RecordBatch]:
        end = self.n_tuples if stop is None else min(stop, self.n_tuples)
        bits = seed_bits(seed)
        return (self._batch(bits, first, min(size, end - first)) for first in range(start, end, size))

    def _batch(self, seed: np.uint64, start: int, count: int) -> pa.RecordBatch:
        columns = self._columns(seed, start, count)
        return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def require_count(name: str, value: object, *, at_least: int = 1, at_most: int = 2**62) -> None:
    """Raise ConfigError unless `value` is an integer within the bounds."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise ConfigError(f"{name} must be a Python int, got {value!r}; convert it with int()")
    if value < at_least:
        raise ConfigError(f"{name} must be at least {at_least}, got {value}; raise it")
    if value > at_most:
        raise ConfigError(f"{name} must be at most {at_most}, got {value}; lower it")


def require_number(name: str, value: object, *, at_least: float, at_most: float = math.inf) -> None:
    """Raise ConfigError unless `value` is a finite number within the bounds."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
        raise ConfigError(f"{name} must be a finite number, got {value!r}; pass a plain number")
    if not at_least <= value <= at_most:
        allowed = f"at least {at_least:g}" if at_most == math.inf else f"from {at_least:g} to {at_most:g}"
        raise ConfigError(f"{name} must be {allowed}, got {value}; choose a value in that range")
