"""Exact tables for kernels: hash tables, sets and counters over flat arrays."""
