"""Columns of a DataFrame: keys, names and types."""
