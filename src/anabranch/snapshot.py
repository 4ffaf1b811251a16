"""A router's state as bytes: named arrays with a checksum, parsed without pickle."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anabranch.errors import SnapshotError

_MAGIC = b"ANBR\x01"
_DIGEST_SIZE = 16


def pack(header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Bytes that hold `header` (JSON values) and `arrays`."""
    layout = [[name, array.dtype.str, list(array.shape)] for name, array in arrays.items()]
    head = json.dumps({"header": dict(header), "arrays": layout}).encode()
    body = b"".join(np.ascontiguousarray(array).tobytes() for array in arrays.values())
    content = len(head).to_bytes(4, "little") + head + body
    return _MAGIC + hashlib.blake2b(content, digest_size=_DIGEST_SIZE).digest() + content


def fingerprint(value: object) -> str:
    """Text that differs where a parameter that JSON cannot hold differs: a hash family, an array."""
    if isinstance(value, np.ndarray):
        content = np.ascontiguousarray(value).tobytes()
        return f"{value.dtype.str}{value.shape} {hashlib.blake2b(content, digest_size=_DIGEST_SIZE).hexdigest()}"
    return repr(value)


def unpack(data: bytes) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Header and arrays of `pack`; SnapshotError when the bytes are anything else."""
    start = len(_MAGIC) + _DIGEST_SIZE
    if len(data) < start + 4 or not data.startswith(_MAGIC[:4]):
        raise SnapshotError("not a router snapshot: its first bytes are wrong; pass what Router.snapshot() returned")
    if data[: len(_MAGIC)] != _MAGIC:
        raise SnapshotError(f"snapshot has format {data[4]}, this version reads {_MAGIC[4]}; start with a new router")
    content = data[start:]
    if hashlib.blake2b(content, digest_size=_DIGEST_SIZE).digest() != data[len(_MAGIC) : start]:
        raise SnapshotError("snapshot is damaged: its checksum does not match; use an older one or a new router")
    size = int.from_bytes(content[:4], "little")
    described = json.loads(content[4 : 4 + size])
    arrays: dict[str, NDArray[Any]] = {}
    at = 4 + size
    for name, dtype, shape in described["arrays"]:
        count = int(np.prod(shape, dtype=np.int64))
        arrays[name] = np.frombuffer(content, dtype=dtype, count=count, offset=at).reshape(shape).copy()
        at += arrays[name].nbytes
    return described["header"], arrays
