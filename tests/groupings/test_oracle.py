"""Routes and figures of public reference code, tuple for tuple.

The folder is not part of the repository; the environment variable ANABRANCH_ORACLE names it.
"""

from __future__ import annotations

import csv
import gzip
import os
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.hashing.murmur3_family import Murmur3

from anabranch.groupings import DChoices, Grouping, KeyGrouping, PartialKeyGrouping, WChoices

ORACLE = Path(os.environ.get("ANABRANCH_ORACLE") or "ANABRANCH_ORACLE is not set")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not ORACLE.is_dir(),
        reason=f"NOTHING IS COMPARED WITH THE REFERENCE CODE: set ANABRANCH_ORACLE to its folder (now: {ORACLE})",
    ),
]

EXACT = {
    "KG": KeyGrouping(family=Murmur3(seeds=(13, 17), bits=32)),
    "PKG": PartialKeyGrouping(family=Murmur3(seeds=(43, 47), bits=32)),
    "PKG_GDFM": PartialKeyGrouping(family=Murmur3(seeds=(13, 17), bits=64)),
}
SIMILAR = {
    "DC": DChoices(capacity=1000, family=Murmur3()),
    "WC": WChoices(capacity=1000, family=Murmur3()),
}


@pytest.fixture(scope="module")
def streams() -> dict[str, NDArray[np.uint64]]:
    found = {}
    for path in sorted((ORACLE / "streams").glob("*.csv.gz")):
        with gzip.open(path, "rt") as lines:
            assert next(lines).strip() == "key"
            found[path.name.removesuffix(".csv.gz")] = np.array([int(line) for line in lines], dtype=np.uint64)
    assert len(found) >= 2
    return found


def read(name: str) -> list[dict[str, str]]:
    with (ORACLE / name).open(newline="") as lines:
        return list(csv.DictReader(lines))


def routes_of(grouping: Grouping, keys: NDArray[np.uint64], n_workers: int, n_sources: int) -> NDArray[np.int32]:
    """Tuple i goes to source i mod S."""
    out = np.empty(len(keys), dtype=np.int32)
    for source, router in enumerate(grouping.build_all(n_sources, n_workers)):
        out[source::n_sources] = router.route(keys[source::n_sources])
    return out


def figures(grouping: Grouping, row: dict[str, str], streams: dict[str, NDArray[np.uint64]]) -> tuple[float, int]:
    """Final imbalance in tuples, and distinct (key, worker) pairs."""
    keys, n_workers = streams[row["stream"]], int(row["W"])
    routes = routes_of(grouping, keys, n_workers, int(row["S"]))
    loads = np.bincount(routes, minlength=n_workers)
    pairs = len(np.unique(keys * np.uint64(n_workers) + routes.astype(np.uint64)))
    return float(loads.max() - loads.mean()), pairs


@pytest.mark.parametrize("scheme", EXACT)
def test_every_route_of_the_first_tuples(scheme, streams):
    (path,) = ORACLE.glob("assignments_*_W10_S5.csv")
    rows = read(path.name)
    expected = np.array([int(row[scheme]) for row in rows], dtype=np.int32)
    keys = np.array([int(row["key"]) for row in rows], dtype=np.uint64)
    assert (keys == streams["zipf_z1.4_K10000_1M"][: len(keys)]).all()
    assert (routes_of(EXACT[scheme], keys, 10, 5) == expected).all()
    assert len(expected) == 50_000


@pytest.mark.parametrize("scheme", EXACT)
def test_final_imbalance_and_memory_are_equal(scheme, streams):
    rows = [row for row in read("slb_cap100.csv") if row["scheme"] == scheme]
    assert {row["S"] for row in rows} == ({"1", "5"} if scheme == "PKG" else {"5"})
    assert {row["stream"] for row in rows} == set(streams)
    for row in rows:
        expected = (float(row["imbalance_final"]), int(row["memory_pairs"]))
        assert figures(EXACT[scheme], row, streams) == expected, row


@pytest.mark.parametrize("scheme", SIMILAR)
def test_replication_and_imbalance_of_the_head_schemes(scheme, streams):
    """Within a tenth of the replication, and imbalance at most twice theirs or below 1e-5 of the tuples."""
    rows = [row for row in read("slb_cap1000.csv") if row["scheme"] == scheme]
    assert rows
    for row in rows:
        imbalance, pairs = figures(SIMILAR[scheme], row, streams)
        assert pairs == pytest.approx(int(row["memory_pairs"]), rel=0.1), row
        assert imbalance / int(row["n"]) <= max(2 * float(row["imbalance_final_frac"]), 1e-5), row
