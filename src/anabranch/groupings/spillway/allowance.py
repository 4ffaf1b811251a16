"""How far above its target a worker may be: little while replicas are cheap, more as they use up the budget."""

from __future__ import annotations

import math
from typing import NamedTuple

from anabranch.arrays import F64

# Counters of the long-run frequency. With more, fewer keys share one, and a source has more state.
CELLS = 1 << 16
# Cells of a router's `meta` array: replicas made, counters in use, whether plans come, tuples so far, the part of the
# last ones that were the first of a counter, and the chunks from which the usual load of rare keys was learnt.
REPLICAS, IN_USE, POOLED, TUPLES, FRESH, LEARNT = 0, 1, 2, 3, 4, 5
META = 6

# The tolerance, as a multiple of what the user gave: with no replicas, and what each budget of them adds. Less balances
# better and makes more replicas.
_TOLERANCE, _TOLERANCE_PER_BUDGET = 0.5, 0.5
# What one of several sources lets pass, because theirs even out: standard deviations of its own, with no replicas and
# per budget of them. Less makes replicas out of noise; more leaves imbalance that all sources see.
_SLACK, _SLACK_PER_BUDGET = 0.15, 0.35
# Budgets that count. With more, streams that change lose balance, because the budget counts the replicas of all
# sources and is overdrawn sooner than that of one.
_MOST_BUDGETS = 4.0
# Sources that do not talk choose partly the same replicas: together n of them have n to this power as many as one.
# With 20 sources and 2.6 M tuples: 0.1 (Zipf z=2.0: hot keys), 0.3 (z=1.4), 0.4 (LN1), 0.55 and 0.6 (real streams), 0.9
# (z=0.5: rare keys). What is too low is paid for in replicas, what is too high in balance.
_APART = 0.65
# Sources that count. A task on Spark does not know how many there are, and says many.
_MOST_SOURCES = 32
# Chunks over which new keys are averaged. Over many, a source would take the keys of others for few in the beginning,
# when the mean still rises from 0, and for too many later, when it lags behind.
_LATELY = 2.0


class Allowance(NamedTuple):
    """What a worker may have above its target.

    `tolerance` is a part of the target, `slack` counts standard deviations of what keys bring by chance, `chance` is a
    part of what rare keys bring above the usual.
    """

    tolerance: float
    slack: float
    chance: float


def learn_keys(meta: F64, fresh: int, tuples: int) -> None:
    """Take a chunk in: so many of its tuples were the first of a counter."""
    meta[IN_USE] += fresh
    meta[TUPLES] += tuples
    meta[FRESH] += (fresh / tuples - meta[FRESH]) / _LATELY


def learn_number_of_keys(meta: F64, n_keys: int) -> None:
    """Take over how many distinct keys there are: as many as are expected to use these counters."""
    meta[IN_USE] = max(meta[IN_USE], CELLS * (1 - math.exp(-n_keys / CELLS)))


def all_keys(meta: F64, n_sources: int) -> float:
    """Distinct keys of all sources, from one of them.

    It has seen those that would use as many counters. By Heaps' law they grow as a power of the tuples, and as they
    grow here lately they grow with the sources.
    """
    cells = float(CELLS)
    seen = max(1.0, cells * math.log(cells / max(1.0, cells - meta[IN_USE])))
    power = min(1.0, float(meta[TUPLES] * meta[FRESH]) / seen)
    return float(seen * min(n_sources, _MOST_SOURCES) ** power)


def allowance(meta: F64, n_workers: int, n_sources: int, tolerance: float, budget: float) -> Allowance:
    """The more replicas all sources have, counted in budgets, the more a worker may have."""
    replicas = float(meta[REPLICAS])
    if not meta[POOLED]:
        replicas *= min(n_sources, _MOST_SOURCES) ** _APART
    replicas = max(0.0, replicas - n_workers)
    budgets = min(replicas / max(1.0, budget * all_keys(meta, n_sources)), _MOST_BUDGETS)
    tolerance *= _TOLERANCE + _TOLERANCE_PER_BUDGET * budgets
    if n_sources == 1:
        return Allowance(tolerance, 0.0, 0.0)
    return Allowance(tolerance, _SLACK + _SLACK_PER_BUDGET * budgets, min(1.0, budgets))
