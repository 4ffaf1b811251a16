"""Work space of Spillway for one chunk of tuples."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Chunk(NamedTuple):
    """Work space for one chunk: its distinct keys, and lists over them and over flows.

    `index_of` has the distinct key of each tuple; `slots` the slot of each distinct key, −1 for one that is not split.
    `order` lists the split ones, `links` and `heads` the keys and flows at overloaded workers, `owners` the distinct
    key of a flow. `dealt`, `starts`, `lengths` list the flows of each split key while loads are levelled, with the
    workers `towards` which they lead, the targets of those (`widths`) and the `volumes` they carry; afterwards those
    flows that have tuples to be dealt out, in `turns`. `rare` has the tuples of rare keys at each worker, `usual` what
    they were before, and `variance` that of the other whole keys.
    """

    table: NDArray[np.int32]
    keys: NDArray[np.uint64]
    counts: NDArray[np.int64]
    homes: NDArray[np.int32]
    steps: NDArray[np.int32]
    slots: NDArray[np.int32]
    index_of: NDArray[np.int32]
    order: NDArray[np.int32]
    sorted: NDArray[np.int32]
    links: NDArray[np.int32]
    owners: NDArray[np.int32]
    volumes: NDArray[np.float64]
    towards: NDArray[np.uint32]
    widths: NDArray[np.float64]
    dealt: NDArray[np.int32]
    starts: NDArray[np.int32]
    lengths: NDArray[np.int32]
    turns: NDArray[np.int32]
    heads: NDArray[np.int32]
    loads: NDArray[np.float64]
    noise: NDArray[np.float64]
    variance: NDArray[np.float64]
    targets: NDArray[np.float64]
    limits: NDArray[np.float64]
    rare: NDArray[np.float64]
    usual: NDArray[np.float64]


def work_space(n_keys: int, n_flows: int, n_workers: int) -> Chunk:
    """Room for so many distinct keys, flows and workers."""
    size = 4
    while size < 2 * n_keys:
        size *= 2

    def of_keys() -> NDArray[np.int32]:
        return np.zeros(n_keys, np.int32)

    def of_flows() -> NDArray[np.int32]:
        return np.zeros(n_flows, np.int32)

    return Chunk(
        table=np.zeros(size, np.int32),
        keys=np.zeros(n_keys, np.uint64),
        counts=np.zeros(n_keys, np.int64),
        homes=of_keys(),
        steps=of_keys(),
        slots=of_keys(),
        index_of=of_keys(),
        order=of_keys(),
        sorted=of_keys(),
        links=np.zeros(n_keys + n_flows, np.int32),
        owners=of_flows(),
        volumes=np.zeros(n_flows),
        towards=np.zeros(n_flows, np.uint32),
        widths=np.zeros(n_flows),
        dealt=of_flows(),
        starts=of_keys(),
        lengths=of_keys(),
        turns=of_keys(),
        heads=np.zeros(n_workers, np.int32),
        loads=np.zeros(n_workers),
        noise=np.zeros(n_workers),
        variance=np.zeros(n_workers),
        targets=np.zeros(n_workers),
        limits=np.zeros(n_workers),
        rare=np.zeros(n_workers),
        usual=np.zeros(n_workers),
    )
