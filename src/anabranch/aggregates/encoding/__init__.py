"""How states are held: exact sums, Spark's order of values, and the bytes of HyperLogLog and KLL sketches."""
