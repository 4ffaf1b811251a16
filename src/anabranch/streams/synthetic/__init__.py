"""Synthetic streams, one generator per file."""
