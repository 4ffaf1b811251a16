from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from anabranch.streams import Stream


@pytest.fixture(scope="session")
def read() -> Callable[..., pa.Table]:
    def read_table(stream: Stream, *args: Any, **kwargs: Any) -> pa.Table:
        return pa.Table.from_batches(stream.batches(*args, **kwargs)).combine_chunks()

    return read_table


@pytest.fixture(scope="session")
def keys(read: Callable[..., pa.Table]) -> Callable[..., NDArray[Any]]:
    def read_keys(stream: Stream, *args: Any, **kwargs: Any) -> NDArray[Any]:
        return np.asarray(read(stream, *args, **kwargs)["key"])

    return read_keys
