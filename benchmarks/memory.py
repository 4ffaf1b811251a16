"""Peak memory of a simulation as the stream grows, in a process of its own each.

    .venv/bin/python benchmarks/memory.py [--write]

Zipf z=1.2, 10⁵ keys, 16 workers, 5 sources; partial-key and w-choices; 10⁶, 10⁷ and 10⁸ tuples. --write stores the
table as benchmarks/results/memory.md. Exits 1 where 10⁸ tuples need a tenth more than 10⁷.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

LENGTHS = (1_000_000, 10_000_000, 100_000_000)
RUN = """
import resource, sys
from anabranch.groupings import parse
from anabranch.simulate import Settings, simulate
from anabranch.streams import Zipf
result = simulate(Zipf(int(sys.argv[2]), 100_000, 1.2), parse(sys.argv[1]), Settings())
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, result.router_bytes, result.makespan)
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="store the table under benchmarks/results")
    args = parser.parse_args()
    lines = [
        "# Memory of a simulation",
        "",
        "`.venv/bin/python benchmarks/memory.py --write`",
        "",
        "Peak resident memory of the whole process (Python, numba and Arrow included); Zipf z=1.2, 10⁵ keys, W=16, S=5.",
        "",
        "| grouping | tuples | peak MB | router bytes | makespan |",
        "|---|---|---|---|---|",
    ]
    failed = False
    for grouping in ("partial-key", "w-choices"):
        peaks = []
        for length in LENGTHS:
            run = subprocess.run(
                [sys.executable, "-c", RUN, grouping, str(length)], capture_output=True, text=True, check=True
            )
            peak, router_bytes, makespan = run.stdout.split()
            peaks.append(int(peak) / 1024)
            lines.append(
                f"| {grouping} | {length:,} | {peaks[-1]:.0f} | {int(router_bytes):,} | {float(makespan):.3f} |"
            )
        failed |= peaks[2] > 1.1 * peaks[1]
    text = "\n".join(lines) + f"\n\nConstant from 10⁷ to 10⁸ tuples: {'no' if failed else 'yes'}.\n"
    print(text)
    if args.write:
        (Path(__file__).parent / "results" / "memory.md").write_text(text)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
