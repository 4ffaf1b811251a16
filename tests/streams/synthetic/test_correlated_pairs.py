from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from anabranch.errors import ConfigError
from anabranch.streams import CorrelatedPairs


@pytest.mark.parametrize("locality", [0.0, 0.6, 0.8, 1.0])
def test_locality_is_the_share_of_equal_pairs(locality, read):
    n = 200_000
    table = read(CorrelatedPairs(n, 10, locality), seed=1)
    equal = np.asarray(table["key"]) == np.asarray(table["second"])
    assert abs(equal.mean() - locality) <= 5 * np.sqrt(locality * (1 - locality) / n)


def test_both_integers_and_their_unequal_pairs_are_uniform(read):
    table = read(CorrelatedPairs(200_000, 6, 0.5), seed=2)
    key, second = (np.asarray(table[column]) for column in ("key", "second"))
    assert stats.chisquare(np.bincount(key)[1:]).pvalue > 1e-4
    assert stats.chisquare(np.bincount(second)[1:]).pvalue > 1e-4
    distances = np.bincount((second - key) % 6, minlength=6)
    assert stats.chisquare(distances[1:]).pvalue > 1e-4
    assert key.min() == second.min() == 1
    assert key.max() == second.max() == 6


def test_padding_is_a_column_only_when_there_is_some(read):
    assert read(CorrelatedPairs(10, 5, 0.5)).column_names == ["key", "second"]
    table = read(CorrelatedPairs(10, 5, 0.5, padding=4))
    assert table["padding"].to_pylist() == [bytes(4)] * 10


def test_padding_is_stored_once_a_batch():
    batch = next(CorrelatedPairs(65_536, 5, 0.5, padding=20_000).batches())
    assert pa.types.is_dictionary(batch.schema.field("padding").type)
    assert batch["padding"].nbytes < 65_536 * 4 + 30_000


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_values": 0}, "n_values must be at least 1"),
        ({"n_values": 1}, "locality must be 1 when n_values is 1, got 0.5"),
        ({"locality": 1.5}, "locality must be from 0 to 1"),
        ({"padding": -1}, "padding must be at least 0"),
    ],
)
def test_bad_parameters(parameters, message):
    with pytest.raises(ConfigError, match=message):
        CorrelatedPairs(**{"n_tuples": 10, "n_values": 5, "locality": 0.5, **parameters})


def test_a_single_value_is_always_equal(read):
    assert read(CorrelatedPairs(3, 1, 1.0)).to_pydict() == {"key": [1, 1, 1], "second": [1, 1, 1]}
