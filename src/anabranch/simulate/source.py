"""Sources: the stream as key hashes with arrival times, and which source reads each tuple."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from anabranch.arrays import F64, I32, I64, U64
from anabranch.containers.key_counts import KeyCounts
from anabranch.errors import InputError
from anabranch.hashing import MultiplyShift, hash_keys
from anabranch.simulate.settings import Settings
from anabranch.streams import Stream

# Hashing the source column under a seed of its own keeps sources independent of a key's candidate workers.
_SOURCE_SEED = 0x50C3
_NO_TUPLES = "the stream has no tuples; check the input file and its filter"


@dataclass(frozen=True, eq=False)
class Tuples:
    """Consecutive tuples of the stream, from position `start` on.

    `arrivals` are seconds since the first tuple; `sources` is None where tuple i goes to source i mod n_sources.
    """

    start: int
    keys: U64
    arrivals: F64
    sources: I32 | None

    def __len__(self) -> int:
        return len(self.keys)

    def slice(self, begin: int, end: int) -> Tuples:
        """Tuples `begin` to `end` of these."""
        sources = None if self.sources is None else self.sources[begin:end]
        return Tuples(self.start + begin, self.keys[begin:end], self.arrivals[begin:end], sources)

    @classmethod
    def joined(cls, parts: Sequence[Tuples]) -> Tuples:
        """Consecutive tuples as one."""
        if len(parts) == 1:
            return parts[0]
        keys = np.concatenate([part.keys for part in parts])
        arrivals = np.concatenate([part.arrivals for part in parts])
        sources = [part.sources for part in parts if part.sources is not None]
        return cls(parts[0].start, keys, arrivals, np.concatenate(sources) if sources else None)


def read(stream: Stream, settings: Settings) -> Iterator[Tuples]:
    """The stream in batches.

    Arrival times are the stream's own column ``ts`` where it has one and no rate was asked for; else tuple i arrives
    after i / rate seconds.
    """
    position = 0
    latest = -np.inf
    for batch in stream.batches(seed=settings.seed, stop=settings.limit):
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        n = batch.num_rows
        if "ts" in columns and settings.rate is None:
            arrivals = np.asarray(columns["ts"], dtype=np.float64)
            latest = _check_arrivals(arrivals, latest)
        else:
            arrivals = np.arange(position, position + n) / settings.arrival_rate
        sources = None
        if settings.source_key is not None:
            if settings.source_key not in columns:
                raise InputError(
                    f"the stream has no column {settings.source_key!r} to decide sources; it has {', '.join(columns)}"
                )
            hashes = hash_keys(columns[settings.source_key])
            sources = MultiplyShift().first(hashes, settings.n_sources, _SOURCE_SEED)
        yield Tuples(position, hash_keys(columns["key"]), arrivals, sources)
        position += n
    if position == 0:
        raise InputError(_NO_TUPLES)


def in_chunks(batches: Iterator[Tuples], size: int) -> Iterator[Tuples]:
    """The same tuples in pieces of a multiple of `size`, for routers that look ahead; the last may be shorter."""
    held: list[Tuples] = []
    n = 0
    for tuples in batches:
        held.append(tuples)
        n += len(tuples)
        whole = n - n % size
        if whole:
            joined = Tuples.joined(held)
            yield joined.slice(0, whole)
            held, n = [joined.slice(whole, n)] if whole < n else [], n - whole
    if held:
        yield Tuples.joined(held)


def _check_arrivals(arrivals: F64, latest: float) -> float:
    """Raise InputError unless there is a time for every tuple and none is before the one ahead; the last time."""
    if not np.isfinite(arrivals).all():
        raise InputError("every tuple needs a timestamp, got one without; remove such rows or give a rate instead")
    times = np.concatenate(([latest], arrivals))
    back = np.flatnonzero(times[1:] < times[:-1])
    if len(back):
        earlier, later = times[back[0]], times[back[0] + 1]
        raise InputError(
            f"timestamps must not go back, got {later:g} s after {earlier:g} s; sort the rows or give a rate instead"
        )
    return float(times[-1])


def count_keys(stream: Stream, settings: Settings) -> tuple[U64, I64]:
    """Distinct key hashes and their exact counts: a pass over the stream of its own."""
    counts = KeyCounts()
    for batch in stream.batches(seed=settings.seed, stop=settings.limit):
        counts.update(hash_keys(batch.column("key")))
    keys, times = counts.result()
    if not len(keys):
        raise InputError(_NO_TUPLES)
    return keys, times
