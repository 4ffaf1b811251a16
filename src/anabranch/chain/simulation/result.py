"""What a simulated chain of operators found."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

CHAIN_METRICS = ("locality", "predicted", "makespan", "throughput", "moved", "split")


@dataclass(frozen=True)
class Period:
    """One period of the stream.

    Parameters
    ----------
    tuples
        Tuples of the period.
    locality
        Share of the tuples that went from one operator to the next on their server, over all hops.
    predicted
        The locality that the plan of the tables in force had promised; NaN before the first plan.
    makespans
        Of each operator, the largest load over the mean: the paper's load balance; 1.0 is perfect.
    throughput
        Tuples a second of the model.
    moved
        Keys whose server changed before the period.
    split
        Keys that are on several servers, with a partial state on each.
    """

    tuples: int
    locality: float
    predicted: float
    makespans: tuple[float, ...]
    throughput: float
    moved: int
    split: int


@dataclass(frozen=True, eq=False)
class ChainResult:
    """Metrics of a chain: those of its periods, and over all periods after the first, which goes by hash.

    Where the stream has one period only, they are those of this one. `throughput` is tuples over seconds, `locality` a
    share of the tuples, `makespan` the mean over periods of the worst operator's, `moved` and `split` keys a period.
    """

    stream: str
    stream_parameters: dict[str, Any]
    settings: dict[str, Any]
    version: str
    periods: tuple[Period, ...]

    @property
    def _counted(self) -> tuple[Period, ...]:
        return self.periods[1:] or self.periods

    @property
    def tuples(self) -> int:
        """Tuples of all periods."""
        return sum(period.tuples for period in self.periods)

    @property
    def locality(self) -> float:
        """Share of the tuples that stayed on their server."""
        tuples = [period.tuples for period in self._counted]
        return float(np.average([period.locality for period in self._counted], weights=tuples))

    @property
    def predicted(self) -> float:
        """Mean of the localities that plans promised; NaN without a plan."""
        return float(np.mean([period.predicted for period in self._counted]))

    @property
    def makespan(self) -> float:
        """Mean over periods of the worst operator's makespan."""
        return float(np.mean([max(period.makespans) for period in self._counted]))

    @property
    def throughput(self) -> float:
        """Tuples a second."""
        seconds = sum(period.tuples / period.throughput for period in self._counted)
        return sum(period.tuples for period in self._counted) / seconds

    @property
    def moved(self) -> float:
        """Keys that changed their server, a period."""
        return float(np.mean([period.moved for period in self._counted]))

    @property
    def split(self) -> float:
        """Keys on several servers, a period."""
        return float(np.mean([period.split for period in self._counted]))

    def record(self) -> dict[str, Any]:
        """The result as JSON values, with one record a period."""
        plain = {name: getattr(self, name) for name in ("stream", "stream_parameters", "settings", "version", "tuples")}
        figures = {name: _plain(getattr(self, name)) for name in CHAIN_METRICS}
        periods = [{name: _plain(value) for name, value in asdict(period).items()} for period in self.periods]
        return {**plain, **figures, "periods": periods}


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return list(value)
    return None if isinstance(value, float) and not np.isfinite(value) else value
