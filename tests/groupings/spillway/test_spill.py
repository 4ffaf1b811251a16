"""Spillway's plan for single chunks that are made by hand: limits, and which workers get new flows."""

from __future__ import annotations

import numpy as np
import pytest

from anabranch.groupings.spillway import flows, spill
from anabranch.groupings.spillway.allowance import Allowance
from anabranch.groupings.spillway.chunk import Chunk, work_space
from anabranch.groupings.spillway.flows import Flows


def chunk_of(counts: list[int], homes: list[int], fixed: list[float], target: float) -> Chunk:
    """Key j has `counts[j]` tuples and prefers `homes[j]`, then the workers after it."""
    chunk = work_space(len(counts), 256, len(fixed))
    chunk.keys[:] = np.arange(len(counts), dtype=np.uint64) << np.uint64(40)
    chunk.counts[:], chunk.homes[:], chunk.steps[:] = counts, homes, 1
    chunk.loads[:], chunk.targets[:] = fixed, target
    return chunk


def planned(chunk: Chunk, *, tolerance: float, slack: float = 0.0, chance: float = 0.0) -> Flows:
    made, n, n_workers = flows.empty(64), len(chunk.keys), len(chunk.loads)
    n_split = spill.place(chunk, made, n)
    frequency, offsets = np.ones(64, np.float32), np.zeros(n_workers)
    spill.plan(chunk, made, n, n_split, frequency, offsets, Allowance(tolerance, slack, chance), n_workers, 0.5)
    return made


@pytest.mark.parametrize("chance", [0.0, 0.5, 1.0])
def test_a_worker_may_have_a_part_of_what_rare_keys_bring_it_above_what_is_usual(chance):
    homes = np.repeat([0, 1, 2, 3], [130, 90, 90, 90])
    chunk = chunk_of([1] * len(homes), homes.tolist(), [0.0] * 4, 100.0)
    chunk.usual[:] = 95.0
    made = planned(chunk, tolerance=0.1, slack=1.0, chance=chance)
    assert chunk.limits == pytest.approx([110 + chance * 35, 110, 110, 110])
    assert (made.counts[flows.SPLIT] == 0) == (chunk.limits[0] >= 130)


def test_a_new_flow_must_be_worth_it():
    """Worker 1 has room for two of the twelve tuples that are too many, worker 2 for all of them."""
    chunk = chunk_of([500], [0], [512.0, 998.0, 985.0], 1000.0)
    made = planned(chunk, tolerance=0.01)
    _, workers, parts = flows.listed(made)
    assert dict(zip(workers.tolist(), (500 * parts).tolist(), strict=True)) == pytest.approx({0: 488, 2: 12})
    assert chunk.loads.tolist() == [1000.0, 998.0, 997.0]


def test_what_has_to_go_goes_into_thin_flows_where_there_are_no_others():
    chunk = chunk_of([500], [0], [512.0, 998.0, 1009.0], 1000.0)
    made = planned(chunk, tolerance=0.01)
    assert set(flows.listed(made)[1].tolist()) == {0, 1}
    assert chunk.loads.tolist() == [1010.0, 1000.0, 1009.0]
