"""What every stream offers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import fields
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa

from anabranch.errors import ConfigError


class Stream(ABC):
    """A stream of tuples, read in Arrow batches.

    Concrete streams are frozen dataclasses: they hold parameters, no tuples, and can be pickled and read many times.

    Guarantees
    ----------
    The same seed gives the same tuples; their concatenation does not depend on `size`; ``start`` and ``stop`` give that
    slice of the whole. Memory does not grow with the number of tuples.
    """

    name: ClassVar[str]

    # Only for the type checker: at run time a property here would be taken for the default of a subclass's field.
    if TYPE_CHECKING:

        @property
        def n_tuples(self) -> int | None:
            """Tuples in the stream; None when that is not known in advance."""

    def batches(
        self, seed: int = 0, size: int = 65_536, *, start: int = 0, stop: int | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Read the tuples ``start`` to ``stop`` (exclusive), in order.

        Parameters
        ----------
        seed
            Selects the random numbers; ignored by streams that have none.
        size
            Tuples per batch; the last batch may be shorter.
        start, stop
            A slice as in Python: a bound beyond the end of the stream is taken as its end.

        Returns
        -------
        Iterator of RecordBatch
            Each has a column ``key`` and whatever else the stream carries.
        """
        if size < 1:
            raise ConfigError(f"size must be at least 1, got {size}; 65536 is a good batch")
        if start < 0:
            raise ConfigError(f"start must be at least 0, got {start}; count tuples from the beginning")
        if stop is not None and stop < 0:
            raise ConfigError(f"stop must be at least 0, got {stop}; count tuples from the beginning")
        return self._read(seed, size, start, stop)

    @abstractmethod
    def _read(self, seed: int, size: int, start: int, stop: int | None) -> Iterator[pa.RecordBatch]:
        """Read a slice whose bounds have been checked."""

    def describe(self) -> dict[str, object]:
        """The stream's name and parameters, ready for JSON."""
        described: dict[str, object] = {"name": self.name}
        for field in fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            described[field.name] = list(value) if isinstance(value, tuple) else value
        return described
