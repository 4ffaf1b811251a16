"""A grouping whose routers write down all that they are told, in one log."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from anabranch.groupings import Grouping, Plan, Router


class Call(NamedTuple):
    """What was called, on the router of which source, with what."""

    what: str
    source: int
    value: Any


class Routed(NamedTuple):
    """Arguments of a call of `route`, and what it gave."""

    keys: list[int]
    now: float
    step_s: float
    workers: list[int]


@dataclass(frozen=True, eq=False)
class Recorded(Grouping):
    """Round robin. The log has the calls on the routers of `build_all` and on `fold`."""

    name = "recorded"
    paper = "none"

    shared: bool = False
    log: list[Call] = field(default_factory=list)
    logging: bool = False

    def _router(self, n_workers: int, source: int, n_sources: int, seed: int) -> Router:
        return _RecordedRouter(self, n_workers, source, n_sources, seed)

    def build_all(self, n_sources: int, n_workers: int, seed: int = 0) -> list[Router]:
        logged = replace(self, logging=True)
        if self.shared:
            return logged._build_shared(n_sources, n_workers, seed)
        return [logged.build(n_workers, source, n_sources, seed) for source in range(n_sources)]

    def fold(self, previous, reports) -> Plan:
        self.log.append(Call("fold", -1, (previous, list(reports))))
        return super().fold(previous, reports)

    def calls(self, what: str, source: int | None = None) -> list[Any]:
        """Values of the calls of a kind, in order."""
        return [call.value for call in self.log if call.what == what and source in (None, call.source)]


class _RecordedRouter(Router):
    grouping: Recorded

    def _log(self, what: str, value: Any = None) -> None:
        if self.grouping.logging:
            self.grouping.log.append(Call(what, self.source, value))

    def route(self, keys, now=0.0, step_s=0.0):
        workers = super().route(keys, now, step_s)
        self._log("route", Routed(keys.tolist(), now, step_s, workers.tolist()))
        return workers

    def _route(self, keys, now, out) -> None:
        out[:] = np.arange(len(out)) % self.n_workers

    def begin_window(self) -> None:
        self._log("begin_window")

    def observe(self, report) -> None:
        self._log("observe", report)

    def follow(self, plan) -> None:
        self._log("follow", plan)

    def report(self):
        report = super().report()
        self._log("report", report)
        return report

    def _resize(self, previous) -> None:
        self._log("set_workers", self.workers.tolist())

    def _arrays(self):
        return {}

    def _adopt(self, arrays) -> None:
        pass
