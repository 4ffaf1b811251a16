"""Short names of array types, so that a signature fits on a line."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["F32", "F64", "I8", "I32", "I64", "U8", "U16", "U32", "U64", "Bools"]

Bools = NDArray[np.bool_]
I8 = NDArray[np.int8]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
U8 = NDArray[np.uint8]
U16 = NDArray[np.uint16]
U32 = NDArray[np.uint32]
U64 = NDArray[np.uint64]
F32 = NDArray[np.float32]
F64 = NDArray[np.float64]
