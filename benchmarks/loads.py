"""The picture of the README: load per worker under four groupings.

    .venv/bin/python benchmarks/loads.py

Zipf z=1.4, 10⁵ keys, 2 M tuples, 16 workers, 5 sources. Writes docs/loads.png.
"""

from __future__ import annotations

from pathlib import Path

from anabranch.groupings import Fish, KeyGrouping, PartialKeyGrouping, Spillway
from anabranch.report import plot_loads
from anabranch.simulate import Settings, simulate
from anabranch.streams import Zipf


def main() -> None:
    stream = Zipf(n_tuples=2_000_000, n_keys=100_000, z=1.4)
    groupings = (KeyGrouping(), PartialKeyGrouping(), Fish(), Spillway())
    results = [simulate(stream, grouping, Settings(n_workers=16)) for grouping in groupings]
    path = Path(__file__).parent.parent / "docs" / "loads.png"
    plot_loads(results, path, "Zipf z = 1.4, 100 k keys, 2 M tuples, 16 workers")
    print(path)


if __name__ == "__main__":
    main()
