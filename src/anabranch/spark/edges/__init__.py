"""The edges: which worker gets a row, and how the row gets there."""
