"""Write tests/data/routes.json: `python -m tests.data.make_routes`, when routes are meant to change."""

from __future__ import annotations

import json
from pathlib import Path

from tests.groupings.fixed_routes import digests

OUTPUT = Path(__file__).with_name("routes.json")

if __name__ == "__main__":
    OUTPUT.write_text(json.dumps(digests(), indent=1, sort_keys=True) + "\n", encoding="utf-8")
