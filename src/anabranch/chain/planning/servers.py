"""Servers: what a tuple costs where it is processed, and where it crosses the network."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

import numpy as np

from anabranch.arrays import F64, I32, I64
from anabranch.errors import ConfigError


@dataclass(frozen=True)
class Servers:
    """How fast a chain of operators runs on servers that share nothing but a network.

    A server is busy with the tuples of all its operators, and with sending and receiving those that cross the network;
    its link carries a byte a direction at a time. The stream is as fast as the busiest server or link lets it be.

    Guarantees
    ----------
    - Throughput does not depend on the size of tuples where no tuple crosses the network.
    - More remote tuples, larger tuples or a slower network never raise it.

    Parameters
    ----------
    cpu_s
        Seconds of a server that an operator needs for a tuple.
    remote_s
        Seconds that a tuple which crosses the network costs besides, of the server that sends and of the one that
        receives it.
    bandwidth
        Bytes a second of a server's link, each direction.
    tuple_bytes
        Bytes of a tuple besides its padding.

    Examples
    --------
    >>> import numpy as np
    >>> servers = Servers(cpu_s=1e-6, remote_s=0.0, bandwidth=1e9, tuple_bytes=0)
    >>> local, remote = np.diag([50.0, 50.0]), np.array([[0.0, 50.0], [50.0, 0.0]])
    >>> round(servers.throughput([local])), round(servers.throughput([local], padding=8_000))
    (1000000, 1000000)
    >>> round(servers.throughput([remote], padding=8_000))
    250000

    References
    ----------
    Caneill et al. 2016, §4: the paper measures; this is a model with its parameters. Two sentences of §4.2 set the
    defaults: with tuples without padding the network "lowers the performance by 22%" (taken as hashing on 6 servers,
    against full locality), and tuples of 12 kB on 10 Gb/s have "a plateau above 90% of locality".
    """

    cpu_s: float = 0.467e-6
    remote_s: float = 0.158e-6
    bandwidth: float = 1.25e9
    tuple_bytes: int = 64

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            least = "above 0" if each.name in ("cpu_s", "bandwidth") else "0 or more"
            if not math.isfinite(value) or value < 0 or (value == 0 and least == "above 0"):
                raise ConfigError(f"{each.name} must be {least}, got {value}")

    def seconds(self, traffic: list[F64], padding: float = 0) -> float:
        """Seconds that the busiest server or link needs for some tuples.

        Parameters
        ----------
        traffic
            For each hop, tuples from server to server: `traffic[h][i, j]` go from i to j.
        padding
            Bytes that a tuple carries besides its own.
        """
        processed = traffic[0].sum(axis=1) + sum(hop.sum(axis=0) for hop in traffic)
        out = sum(hop.sum(axis=1) - np.diagonal(hop) for hop in traffic)
        in_ = sum(hop.sum(axis=0) - np.diagonal(hop) for hop in traffic)
        busy = processed * self.cpu_s + (out + in_) * self.remote_s
        link = np.maximum(out, in_) * (self.tuple_bytes + padding) / self.bandwidth
        return float(np.maximum(busy, link).max())

    def throughput(self, traffic: list[F64], padding: float = 0) -> float:
        """Tuples a second that the chain takes in."""
        seconds = self.seconds(traffic, padding)
        return float(traffic[0].sum()) / seconds if seconds else math.inf


def traffic_of(sent: I32, received: I32, n_servers: int, counts: I64 | F64 | None = None) -> F64:
    """Tuples from server to server."""
    codes = sent.astype(np.int64) * n_servers + received
    return np.bincount(codes, counts, n_servers**2).reshape(n_servers, n_servers).astype(np.float64)
