"""Spillway, our own scheme: the router, its plan for a chunk of tuples, and the steps of that plan."""
