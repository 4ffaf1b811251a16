"""Murmur3 as Guava computes it, and the candidates that the public partial key grouping codes derive from it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.hashing.murmur3_family import Murmur3, murmur3_64

from anabranch.errors import ConfigError

# Text, seed, Guava's asLong: no byte, a tail in one half or both, a block, a block and a tail.
AS_LONG = [
    ("", 0, 0),
    ("", 13, -6841345300810786470),
    ("1", 13, 652026498576716822),
    ("1", 47, 8721147692645312319),
    ("10", 43, -7376660596597733719),
    ("a", 0, -8839064797231613815),
    ("#storm", 53, 6388766476731676734),
    ("Barcelona", 13, -4371409763777414003),
    ("Barcelona", 47, 5716498993494677977),
    ("abcdefghijklmnop", 13, 8883699218633937329),
    ("abcdefghijklmnop", 47, -1126017752967322022),
    ("abcdefghijklmnopq", 17, 6793585645498185431),
]

# Key, seed, abs(asLong) % 10 and abs(asInt % 10).
MODULO_10 = [
    (1, 13, 2, 8),
    (1, 17, 8, 0),
    (1, 43, 0, 8),
    (1, 47, 9, 7),
    (2, 13, 7, 7),
    (2, 17, 5, 3),
    (2, 43, 5, 7),
    (2, 47, 4, 8),
    (10, 13, 8, 2),
    (10, 43, 9, 1),
]


@pytest.mark.parametrize(("text", "seed", "expected"), AS_LONG)
def test_hash_equals_guavas(text, seed, expected):
    assert murmur3_64(text.encode(), seed) == expected


@pytest.mark.parametrize(("key", "seed", "by_long", "by_int"), MODULO_10)
def test_candidates_equal_those_of_the_public_codes(key, seed, by_long, by_int):
    keys = np.array([key], dtype=np.uint64)
    assert Murmur3(seeds=(seed, 0), bits=64).first(keys, 10, 0).tolist() == [by_long]
    assert Murmur3(seeds=(seed, 0), bits=32).first(keys, 10, 0).tolist() == [by_int]
    assert Murmur3(seeds=(0, seed), bits=32).pairs(keys, 10, 0)[1].tolist() == [by_int]


@settings(max_examples=50)
@given(
    key=st.integers(0, 2**64 - 1),
    n_workers=st.integers(1, 1000),
    seed=st.integers(-(2**31), 2**31),
    bits=st.sampled_from([32, 64]),
)
def test_a_key_is_hashed_as_its_decimal_text(key, n_workers, seed, bits):
    first, second = Murmur3(bits=bits).pairs(np.array([key], dtype=np.uint64), n_workers, seed)
    for own, candidates in ((43, first), (47, second)):
        as_long = murmur3_64(str(key).encode(), (own + seed) % 2**64)
        as_int = (as_long + 2**31) % 2**32 - 2**31
        assert candidates.tolist() == [abs(as_int if bits == 32 else as_long) % n_workers]


def test_the_candidates_may_coincide_as_they_do_there():
    first, second = Murmur3().pairs(np.arange(1000, dtype=np.uint64), 10, 0)
    assert 50 < (first == second).sum() < 150


def test_bad_parameters_are_refused():
    with pytest.raises(ConfigError, match="bits must be 32 or 64, got 16"):
        Murmur3(bits=16)
    with pytest.raises(ConfigError, match="seeds must be two numbers"):
        Murmur3(seeds=(1, 2, 3))
