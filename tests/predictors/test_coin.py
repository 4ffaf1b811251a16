"""DStream's predictor is its synopsis, with the parameters that DStream chooses."""

from __future__ import annotations

import numpy as np
import pytest

from anabranch.groupings import DStream
from anabranch.hashing import hash_keys
from anabranch.predictors import Coin
from anabranch.sketches import CoinSynopsis


@pytest.mark.parametrize(("n_workers", "window"), [(1, 10), (10, 50_000), (128, 10**7)])
def test_the_parameters_are_those_of_dstream(n_workers, window):
    chosen, synopsis = DStream.for_stream(n_workers, window), Coin.for_stream(n_workers, window, seed=4).synopsis
    assert (synopsis.r, synopsis.l, synopsis.p, synopsis.zeta, synopsis.seed) == (
        chosen.r,
        chosen.l,
        chosen.p,
        chosen.zeta,
        4,
    )


def test_it_says_what_the_synopsis_says():
    keys = hash_keys(np.random.default_rng(1).zipf(1.4, 20_000))
    coin, synopsis = Coin(CoinSynopsis(r=3, seed=2)), CoinSynopsis(r=3, seed=2)
    coin.update(keys)
    synopsis.update(keys)
    assert coin.hot_keys().tolist() == synopsis.hot_keys().tolist()
    assert coin.entries == len(synopsis) > len(coin.hot_keys()) > 0
    assert coin.nbytes == synopsis.nbytes
