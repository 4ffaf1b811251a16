"""Keys that are hard on hash tables."""

from __future__ import annotations

import numpy as np

# Values that collide in their low bits, the empty mark and its stand-in.
SPECIAL = [*range(41), *(i << 44 for i in range(201)), 2**63, 2**64 - 1]
ANY = np.random.default_rng(0).integers(0, 2**64, 400, dtype=np.uint64)
COLLIDING = np.random.default_rng(1).permutation(np.concatenate([np.array(SPECIAL, dtype=np.uint64), ANY]))
