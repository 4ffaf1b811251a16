from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from anabranch.hashing import hash_keys


@pytest.fixture(scope="session")
def zipf() -> NDArray[np.uint64]:
    """50 000 hashes of 2 000 keys, the hottest with about a third of the tuples."""
    return hash_keys(np.random.default_rng(11).zipf(1.4, 50_000) % 2_000)
