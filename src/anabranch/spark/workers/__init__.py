"""What a worker does with its rows: partial states, or a user's own function."""
