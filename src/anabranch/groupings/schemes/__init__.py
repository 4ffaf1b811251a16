"""The published schemes and the baselines, one per file; `head` and `candidates` are what several of them share."""
