"""Memory does not grow with the length of the stream."""

from __future__ import annotations

import subprocess
import sys

import pytest

PEAKS = """
import resource, sys
from anabranch.groupings import parse
from anabranch.simulate import simulate
from anabranch.streams import Zipf

def peak_mb(n_tuples):
    simulate(Zipf(n_tuples=n_tuples, n_keys=10_000, z=float(sys.argv[2])), parse(sys.argv[1]))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1 << 20 if sys.platform == "darwin" else 1 << 10)

# The peak of a process never falls, so the longer run can only add to it.
print(peak_mb(3_000_000), peak_mb(12_000_000))
"""


@pytest.mark.parametrize(("grouping", "z"), [("key", 0.0), ("partial-key", 1.4)])
def test_four_times_the_tuples_take_the_same_memory(grouping, z):
    done = subprocess.run(
        [sys.executable, "-c", PEAKS, grouping, str(z)], capture_output=True, text=True, check=True, timeout=300
    )
    short, long = map(float, done.stdout.split())
    # Eight bytes a tuple would be 72 MB more.
    assert long - short < 40
