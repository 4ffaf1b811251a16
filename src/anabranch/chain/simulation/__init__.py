"""A chain of operators on virtual time: what locality is worth."""
