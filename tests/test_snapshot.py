"""The snapshot format: arrays in, the same arrays out, and nothing else accepted."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from tests.hashing.murmur3_family import Murmur3

from anabranch.errors import SnapshotError
from anabranch.hashing import MultiplyShift
from anabranch.snapshot import fingerprint, pack, unpack

some_arrays = npst.arrays(
    st.sampled_from([np.uint64, np.int64, np.int32, np.float64, np.bool_, np.uint8]),
    npst.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=4),
)
headers = st.dictionaries(
    st.text(max_size=5), st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.lists(st.integers())
)


@settings(max_examples=50)
@given(header=headers, arrays=st.dictionaries(st.text(max_size=8), some_arrays, max_size=4))
def test_what_is_packed_comes_out(header, arrays):
    header_out, arrays_out = unpack(pack(header, arrays))
    assert header_out == header
    assert list(arrays_out) == list(arrays)
    for name, array in arrays.items():
        assert arrays_out[name].dtype == array.dtype
        assert arrays_out[name].shape == array.shape
        assert arrays_out[name].tobytes() == array.tobytes()
        assert arrays_out[name].flags.writeable
        assert arrays_out[name].flags.owndata


def test_strided_arrays_are_packed_as_they_read():
    grid = np.arange(12).reshape(3, 4)
    _, arrays = unpack(pack({}, {"column": grid[:, 1], "turned": grid.T, "every other": grid.ravel()[::2]}))
    assert arrays["column"].tolist() == [1, 5, 9]
    assert arrays["turned"].tolist() == grid.T.tolist()
    assert arrays["every other"].tolist() == [0, 2, 4, 6, 8, 10]


def test_equal_content_gives_equal_bytes():
    assert pack({"a": 1}, {"x": np.arange(3)}) == pack({"a": 1}, {"x": np.arange(3)})
    assert pack({"a": 1}, {"x": np.arange(3)}) != pack({"a": 2}, {"x": np.arange(3)})


@settings(max_examples=100)
@given(st.binary(max_size=80))
def test_random_bytes_are_refused(data):
    for junk in (data, b"ANBR\x01" + data):
        with pytest.raises(SnapshotError):
            unpack(junk)


@settings(max_examples=50)
@given(at=st.integers(0, 10_000), bit=st.integers(0, 7))
def test_every_bit_is_covered(at, bit):
    data = bytearray(pack({"a": 1}, {"x": np.arange(20), "y": np.zeros((2, 3))}))
    data[at % len(data)] ^= 1 << bit
    with pytest.raises(SnapshotError):
        unpack(bytes(data))


def test_another_format_is_named_before_the_checksum_is_looked_at():
    data = pack({}, {})
    with pytest.raises(SnapshotError, match="format 2, this version reads 1"):
        unpack(data[:4] + b"\x02" + hashlib.blake2b(data[21:], digest_size=16).digest() + data[21:])


def test_fingerprints_tell_parameters_apart():
    values = [
        MultiplyShift(),
        Murmur3(),
        Murmur3(bits=64),
        np.arange(3),
        np.arange(3)[::-1],
        np.arange(3, dtype=np.uint64),
        np.zeros((2, 2)),
        np.zeros(4),
    ]
    assert len({fingerprint(value) for value in values}) == len(values)
    assert fingerprint(np.arange(6)[::2]) == fingerprint(np.array([0, 2, 4]))
    assert fingerprint(Murmur3()) == fingerprint(Murmur3())
