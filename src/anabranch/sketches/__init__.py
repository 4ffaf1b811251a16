"""Sketches: bounded summaries of a stream of key hashes."""

from anabranch.sketches.count_min import CountMin
from anabranch.sketches.space_saving import SpaceSaving

__all__ = ["CountMin", "SpaceSaving"]
