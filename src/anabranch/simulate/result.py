"""What a simulation found."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields
from typing import Any

from anabranch.arrays import F64, I64

METRICS = (
    "imbalance",
    "imbalance_mean",
    "imbalance_mean_running",
    "makespan",
    "replication",
    "replication_window",
    "partials",
    "load_stddev",
    "latency_mean",
    "latency_p50",
    "latency_p95",
    "latency_p99",
    "saturation_rate",
    "elapsed",
    "tuples_per_second",
    "router_bytes",
)


@dataclass(frozen=True, eq=False)
class Windows:
    """Metrics, one value per window; a partial last window is included here.

    `tuples` is the stream position at the window's end, `imbalance` is I(t) there divided by t; `latency_*` are in
    seconds.
    """

    tuples: I64
    imbalance: F64
    makespan: F64
    replication: F64
    latency_mean: F64
    latency_p50: F64
    latency_p99: F64


@dataclass(frozen=True, eq=False)
class Result:
    """Metrics of one grouping on one stream; the definitions are those of the documentation's metrics table.

    Besides the metrics: `settings` is what the run was made with beyond the fields above, `loads` is the work per
    worker over the whole stream (in tuples of a worker of speed 1), `latency_histogram` counts tuples per bin of
    `metrics.latency_edges()`. Latencies and `elapsed` are in seconds, rates in tuples per second.
    """

    grouping: str
    parameters: dict[str, Any]
    stream: str
    stream_parameters: dict[str, Any]
    workers: int
    sources: int
    tuples: int
    keys: int
    window: int
    seed: int
    version: str
    settings: dict[str, Any]
    rate: float
    imbalance: float
    imbalance_mean: float
    imbalance_mean_running: float
    makespan: float
    replication: float
    replication_window: float
    partials: int
    load_stddev: float
    latency_mean: float
    latency_p50: float
    latency_p95: float
    latency_p99: float
    saturation_rate: float
    elapsed: float
    tuples_per_second: float
    router_bytes: int
    loads: F64
    latency_histogram: I64
    windows: Windows

    def record(self) -> dict[str, Any]:
        """The result as JSON values; per-window metrics under `windows`, per-worker loads under `loads`."""
        plain = {f.name: getattr(self, f.name) for f in fields(self)}
        plain["loads"] = self.loads.tolist()
        plain["windows"] = {name: values.tolist() for name, values in asdict(self.windows).items()}
        del plain["latency_histogram"]
        return {name: None if isinstance(v, float) and not math.isfinite(v) else v for name, v in plain.items()}
