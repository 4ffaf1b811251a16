"""Sweeps: every grouping on every combination of parameters, repeated over seeds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from anabranch.errors import ConfigError
from anabranch.groupings import Grouping
from anabranch.simulate.result import METRICS, Result
from anabranch.simulate.run import simulate
from anabranch.simulate.settings import Settings
from anabranch.streams import Stream


@dataclass(frozen=True, eq=False)
class Cell:
    """One grouping with one combination of parameters: the results of all its repeats.

    `swept` holds this cell's values of the parameters that vary over the sweep: ``{"workers": 16, "z": 1.2}``.
    """

    swept: dict[str, Any]
    results: tuple[Result, ...]

    @property
    def grouping(self) -> str:
        """The grouping as it was given."""
        return self.results[0].grouping

    def mean(self, metric: str) -> float:
        """Mean of a metric over the repeats."""
        return float(np.mean([getattr(result, metric) for result in self.results]))

    def spread(self, metric: str) -> float:
        """Population standard deviation of a metric over the repeats."""
        return float(np.std([getattr(result, metric) for result in self.results]))

    def record(self) -> dict[str, Any]:
        """One JSON record: the mean of each metric, with `repeat` and `spread` beside them."""
        record = self.results[0].record()
        record["repeat"] = len(self.results)
        record["spread"] = {metric: _plain(self.spread(metric)) for metric in METRICS}
        record["swept"] = self.swept
        if len(self.results) > 1:
            record |= {metric: _plain(self.mean(metric)) for metric in METRICS}
            del record["windows"], record["loads"]
        return record


def sweep(
    make_stream: Callable[..., Stream],
    groupings: Mapping[str, Grouping],
    settings: Settings,
    *,
    vary: Mapping[str, Sequence[Any]] | None = None,
    repeat: int = 1,
    progress: Callable[[int], None] | None = None,
) -> Iterator[Cell]:
    """Every grouping on every combination of parameters.

    Parameters
    ----------
    make_stream
        Called with the swept stream parameters, such as ``z``.
    groupings
        By the label that results carry.
    settings
        What all cells have in common.
    vary
        Values by parameter: ``n_workers``, ``n_sources`` or any parameter of `make_stream`.
    repeat
        Runs a cell, with seeds seed, seed + 1, …
    progress
        As in `simulate`.
    """
    if repeat < 1:
        raise ConfigError(f"repeat must be at least 1, got {repeat}")
    vary = vary or {}
    for values in product(*vary.values()):
        chosen = dict(zip(vary, values, strict=True))
        size = {name: chosen[name] for name in ("n_workers", "n_sources") if name in chosen}
        stream = make_stream(**{name: value for name, value in chosen.items() if name not in size})
        swept = {name.removeprefix("n_"): chosen[name] for name, listed in vary.items() if len(listed) > 1}
        for label, grouping in groupings.items():
            results = [
                simulate(
                    stream,
                    grouping,
                    replace(settings, seed=settings.seed + i, **size),
                    label=label,
                    progress=progress,
                )
                for i in range(repeat)
            ]
            yield Cell(swept, tuple(results))


def _plain(value: float) -> float | None:
    return value if np.isfinite(value) else None
