"""Streams for property tests.

A list of hypothesis has six entries or so on average, however long it may be: capacities, epochs and growth are hardly
reached. So a length, a skew and a seed are drawn instead.
"""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray


def skewed(universe: NDArray[np.generic], most: int, least: int = 0) -> st.SearchStrategy[NDArray[np.generic]]:
    """Entries of `universe`, from `least` to `most` of them, the first ones more often than the others."""

    def made(z: float, n: int, seed: int) -> NDArray[np.generic]:
        ranks = np.random.default_rng(seed).zipf(z, n) - 1
        return universe[ranks % len(universe)]

    return st.builds(made, st.floats(1.1, 3.0), st.integers(least, most), st.integers(0, 10_000))
