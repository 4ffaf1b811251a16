"""Routers that learn how fast each worker is from what the workers report."""

from __future__ import annotations

import numpy as np

from anabranch.arrays import I64
from anabranch.groupings.grouping import Grouping, Router, of_workers
from anabranch.groupings.plan import PLANS_AVERAGED, Plan, Report

# A worker's measured speed is an average over about so many reports.
_REPORTS = PLANS_AVERAGED
# Relative fluctuation of one report: FISH's authors measured 4.37 % (their Observation 2).
_FLUCTUATION = 0.05
# Arrays of a router's state that are its speeds.
SPEEDS = ("measured", "seconds", "reports")


class MeasuringRouter(Router):
    """A router that knows `seconds` a tuple of each worker, estimated from `measured` over so many `reports`.

    Parameters
    ----------
    grouping, n_workers, source, n_sources, seed
        As for every router.
    """

    def __init__(self, grouping: Grouping, n_workers: int, source: int, n_sources: int, seed: int) -> None:
        super().__init__(grouping, n_workers, source, n_sources, seed)
        self.measured = np.ones(n_workers)
        self.seconds = np.ones(n_workers)
        self.reports = np.zeros(n_workers)

    def observe(self, report: Report) -> None:
        """Take the measured seconds per tuple into the average."""
        if not len(report.worker_seconds):
            return
        tuples = of_workers(report.worker_tuples, self.workers)
        seconds = of_workers(report.worker_seconds, self.workers)
        seen = (tuples > 0) & (seconds > 0)
        if not seen.any():
            return
        seconds = seconds[seen] / tuples[seen]
        if not self.reports.any():
            self.measured[:] = seconds.mean()
        self.reports[seen] += 1
        self.measured[seen] += (seconds - self.measured[seen]) / np.minimum(self.reports[seen], _REPORTS)
        self._estimate_speeds()

    def _estimate_speeds(self) -> None:
        """Shrink the measured seconds towards their mean, as far as they differ no more than by noise.

        Routing by noise would unbalance workers that are alike (empirical Bayes).
        """
        mean = self.measured.mean()
        noise = (_FLUCTUATION * mean) ** 2 / np.clip(self.reports, 1, 2 * _REPORTS - 1)
        real = max(0.0, self.measured.var() - noise.mean())
        self.seconds[:] = mean + real / (real + noise) * (self.measured - mean)

    def _follow_speeds(self, plan: Plan) -> None:
        known = plan.seconds_per_tuple[self.workers[self.workers < len(plan.seconds_per_tuple)]]
        if len(known) == self.n_workers and np.isfinite(known).any():
            self.measured[:] = np.where(np.isfinite(known), known, np.nanmean(known))
            self.reports[:] = plan.version + 1
            self._estimate_speeds()

    def _resize_speeds(self, previous: I64) -> None:
        """Newcomers are taken for average ones."""
        stayed = previous >= 0
        reports = np.zeros(self.n_workers)
        reports[stayed] = self.reports[previous[stayed]]
        self.reports = reports
        for name in ("measured", "seconds"):
            values = getattr(self, name)[previous[stayed]]
            resized = np.full(self.n_workers, values.mean() if len(values) else 1.0)
            resized[stayed] = values
            setattr(self, name, resized)
