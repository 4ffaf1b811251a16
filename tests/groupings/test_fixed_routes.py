"""Routes and plans stay what they are until somebody means to change them."""

from __future__ import annotations

import json
from pathlib import Path

from .fixed_routes import digests

STORED = Path(__file__).parents[1] / "data" / "routes.json"


def test_every_grouping_routes_as_it_did() -> None:
    """Made by tests/data/make_routes.py, which is run again when a route is meant to change."""
    stored = json.loads(STORED.read_text(encoding="utf-8"))
    now = digests()
    assert {name: now.get(name) for name in stored} == stored
    assert set(now) == set(stored)
