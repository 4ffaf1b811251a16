"""Work space of Spillway for one chunk of tuples."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from anabranch.arrays import F64, I32, I64, U32, U64


class Chunk(NamedTuple):
    """Work space for one chunk: its distinct keys, and lists over them and over flows.

    `index_of` has the distinct key of each tuple; `slots` the slot of each distinct key, −1 for one that is not split.
    `order` lists the split ones, `links` and `heads` the keys and flows at overloaded workers, `owners` the distinct
    key of a flow. `dealt`, `starts`, `lengths` list the flows of each split key while loads are levelled, with the
    workers `towards` which they lead, the targets of those (`widths`) and the `volumes` they carry; afterwards those
    flows that have tuples to be dealt out, in `turns`. `rare` has the tuples of rare keys at each worker, `usual` what
    they were before, and `variance` that of the other whole keys.
    """

    table: I32
    keys: U64
    counts: I64
    homes: I32
    steps: I32
    slots: I32
    index_of: I32
    order: I32
    sorted: I32
    links: I32
    owners: I32
    volumes: F64
    towards: U32
    widths: F64
    dealt: I32
    starts: I32
    lengths: I32
    turns: I32
    heads: I32
    loads: F64
    noise: F64
    variance: F64
    targets: F64
    limits: F64
    rare: F64
    usual: F64


def work_space(n_keys: int, n_flows: int, n_workers: int) -> Chunk:
    """Room for so many distinct keys, flows and workers."""
    size = 4
    while size < 2 * n_keys:
        size *= 2

    def of_keys() -> I32:
        return np.zeros(n_keys, np.int32)

    def of_flows() -> I32:
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
