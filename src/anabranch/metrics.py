"""The metrics, as functions of arrays: one definition for the simulator and for live queries."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anabranch.arrays import F64, I64

_BINS_PER_OCTAVE = 32
_LOWEST_OCTAVE = -40
_OCTAVES = 80
N_LATENCY_BINS = _BINS_PER_OCTAVE * _OCTAVES
# A float64's exponent and the five highest bits of its fraction number the bins of a histogram in 32 steps an octave.
LATENCY_SHIFT = 52 - 5
LATENCY_OFFSET = (1023 + _LOWEST_OCTAVE) << 5


def imbalance(loads: F64) -> float:
    """Largest load minus mean load."""
    return float(loads.max() - loads.mean())


def load_stddev(loads: F64) -> float:
    """Population standard deviation of the loads, in percent of their total."""
    total = float(loads.sum())
    return float(np.std(100 * loads / total)) if total else 0.0


def makespan(slowest: F64, ideal: F64) -> float:
    """Time until the slowest worker has finished, summed over windows, over the ideal; 1.0 is perfect."""
    total = float(ideal.sum())
    return float(slowest.sum()) / total if total else math.nan


def makespan_of(loads: NDArray[Any]) -> float:
    """Makespan of workers that are alike: `loads` has their loads in its last axis, and the ideal is their mean."""
    return makespan(loads.max(axis=-1), loads.mean(axis=-1))


def latency_edges() -> F64:
    """Lower edges of the latency histogram's bins in seconds, and the upper edge of the last."""
    bins = np.arange(N_LATENCY_BINS + 1)
    octave, step = np.divmod(bins, _BINS_PER_OCTAVE)
    edges: F64 = (1 + step / _BINS_PER_OCTAVE) * 2.0 ** (octave + _LOWEST_OCTAVE)
    return edges


def latency_quantile(histogram: I64, share: float) -> float:
    """Latency below which `share` of the tuples lie, interpolated within its bin."""
    total = int(histogram.sum())
    if total == 0:
        return math.nan
    edges = latency_edges()
    cumulative = np.cumsum(histogram)
    rank = share * total
    at = max(int(np.searchsorted(cumulative, rank)), int(np.flatnonzero(histogram)[0]))
    before = int(cumulative[at - 1]) if at else 0
    inside = (rank - before) / int(histogram[at])
    return float(edges[at] + inside * (edges[at + 1] - edges[at]))


def delayed(histogram: I64, delay_s: float) -> I64:
    """The histogram of the same latencies, each longer by `delay_s`."""
    if delay_s <= 0:
        return histogram
    edges = latency_edges()
    used = np.flatnonzero(histogram)
    middles = (edges[used] + edges[used + 1]) / 2 + delay_s
    bins = np.clip(np.searchsorted(edges, middles, side="right") - 1, 0, N_LATENCY_BINS - 1)
    out = np.zeros_like(histogram)
    np.add.at(out, bins, histogram[used])
    return out
