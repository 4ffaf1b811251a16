"""What every predictor promises."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from anabranch import predictors
from anabranch.hashing import hash_keys
from anabranch.predictors import Predictor

N_WORKERS, WINDOW = 10, 20_000
NONE = np.zeros(0, dtype=np.uint64)
every_predictor = pytest.mark.parametrize("cls", predictors.ALL, ids=lambda cls: cls.name)


def stream(share: float, hot: int, n: int = WINDOW, seed: int = 0) -> np.ndarray:
    """Key `hot` with this share of the tuples, all others with keys of their own."""
    rng = np.random.default_rng(seed)
    others = np.arange(10_000, 10_000 + n) + 10**6 * seed
    return hash_keys(np.where(rng.random(n) < share, hot, others))


def test_all_of_them_are_here():
    exported = {getattr(predictors, name) for name in predictors.__all__}
    kinds = {cls for cls in exported if isinstance(cls, type) and issubclass(cls, Predictor) and cls is not Predictor}
    assert kinds == set(predictors.ALL)
    assert len({cls.name for cls in kinds}) == len(kinds)


@every_predictor
def test_it_is_documented(cls):
    assert cls.__doc__.splitlines()[0].endswith(".")
    assert "References" in cls.__doc__
    assert cls.paper


@every_predictor
def test_it_finds_a_key_with_a_large_share(cls):
    predictor = cls.for_stream(N_WORKERS, WINDOW)
    for seed in range(2):
        predictor.update(stream(0.3, 1, seed=seed))
        assert int(hash_keys([1])[0]) in predictor.hot_keys().tolist()
    assert len(predictor.hot_keys()) < 40


@every_predictor
def test_it_notices_that_another_key_is_hot_now(cls):
    predictor = cls.for_stream(N_WORKERS, WINDOW)
    for seed, hot in enumerate([1, 2, 2]):
        predictor.update(stream(0.3, hot, seed=seed))
    assert int(hash_keys([2])[0]) in predictor.hot_keys().tolist()


@every_predictor
def test_hot_keys_are_distinct_hashes(cls):
    predictor = cls.for_stream(N_WORKERS, WINDOW)
    for n in (0, 1, 30, 5_000, 30_000):
        predictor.update(stream(0.4, 3, n))
        hot = predictor.hot_keys()
        assert hot.dtype == np.uint64
        assert hot.ndim == 1
        assert len(set(hot.tolist())) == len(hot)


@every_predictor
def test_an_empty_update_changes_nothing(cls):
    predictor, twin = (cls.for_stream(N_WORKERS, WINDOW) for _ in range(2))
    predictor.update(NONE)
    assert len(predictor.hot_keys()) == 0
    for each in (predictor, twin):
        each.update(stream(0.3, 1))
    predictor.update(NONE)
    assert sorted(predictor.hot_keys().tolist()) == sorted(twin.hot_keys().tolist())


@every_predictor
def test_it_does_not_matter_how_the_stream_is_cut(cls):
    keys = stream(0.3, 1, 50_000)
    whole, cut = (cls.for_stream(N_WORKERS, WINDOW, seed=5) for _ in range(2))
    whole.update(keys)
    for start in range(0, len(keys), 777):
        cut.update(keys[start : start + 777])
    assert sorted(whole.hot_keys().tolist()) == sorted(cut.hot_keys().tolist())
    assert whole.entries == cut.entries


@every_predictor
def test_it_has_a_size(cls):
    predictor = cls.for_stream(N_WORKERS, WINDOW)
    predictor.update(stream(0.3, 1))
    assert predictor.entries > 0
    assert predictor.nbytes > 0
    larger = cls.for_stream(10 * N_WORKERS, WINDOW)
    assert larger.nbytes > predictor.nbytes


@every_predictor
@pytest.mark.parametrize(("n_workers", "window"), [(1, 1), (1, 10**7), (300, 100)])
def test_any_stream_has_parameters(cls, n_workers, window):
    predictor = cls.for_stream(n_workers, window)
    predictor.update(np.full(3_000, 7, dtype=np.uint64))
    assert set(predictor.hot_keys().tolist()) <= {7}


@every_predictor
def test_a_pickled_predictor_goes_on_alike(cls):
    predictor = cls.for_stream(N_WORKERS, WINDOW)
    predictor.update(stream(0.3, 1))
    twin = pickle.loads(pickle.dumps(predictor))
    for each in (predictor, twin):
        each.update(stream(0.3, 2, seed=1))
    assert sorted(predictor.hot_keys().tolist()) == sorted(twin.hot_keys().tolist())
