"""The built-in source: the synthetic streams as a Spark data source."""
