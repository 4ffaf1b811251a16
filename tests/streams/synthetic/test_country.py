from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from anabranch.errors import ConfigError
from anabranch.streams import Country
from anabranch.streams.synthetic.country_names import COUNTRY_NAMES


def counts_of(sample):
    indices = {name: i for i, name in enumerate(COUNTRY_NAMES)}
    return np.bincount([indices[name] for name in sample], minlength=len(COUNTRY_NAMES))


def test_there_are_204_names():
    assert len(COUNTRY_NAMES) == len(set(COUNTRY_NAMES)) == 204


def test_keys_are_dictionary_encoded():
    batch = next(Country(10, 10).batches())
    assert batch.schema.field("key").type == pa.dictionary(pa.int32(), pa.string())


@pytest.mark.parametrize("percent", [10, 37.5, 80])
def test_hot_name_has_its_share_and_the_others_are_alike(percent, keys):
    n = 200_000
    counts = counts_of(keys(Country(n, percent), seed=1))
    share = percent / 100
    assert abs(counts[0] / n - share) < 5 * np.sqrt(share * (1 - share) / n)
    assert stats.chisquare(counts[1:]).pvalue > 1e-4


def test_without_skew_all_names_are_alike(keys):
    assert stats.chisquare(counts_of(keys(Country(200_000, 0), seed=1))).pvalue > 1e-4


def test_full_skew_is_a_single_name(keys):
    assert set(keys(Country(10_000, 100))) == {COUNTRY_NAMES[0]}


def test_half_skew_is_skewed_first_and_even_later(keys):
    n = 200_000
    sample = keys(Country(n, 80, half_skew=True), seed=2)
    skewed = counts_of(sample[: n // 2])
    assert abs(skewed[0] / (n // 2) - 0.8) < 5 * np.sqrt(0.16 / (n // 2))
    assert stats.chisquare(counts_of(sample[n // 2 :])).pvalue > 1e-4
    assert (sample == COUNTRY_NAMES[0]).mean() == pytest.approx(0.4, abs=0.01)


@pytest.mark.parametrize("percent", [-1, 101, float("nan")])
def test_skew_is_a_percentage(percent):
    with pytest.raises(ConfigError, match="skew_percent must be"):
        Country(10, percent)
