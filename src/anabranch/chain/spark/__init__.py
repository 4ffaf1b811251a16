"""A chain of operators on Spark: edge, operators, tables, manager, answers."""

# Says which extra is missing where PySpark is.
import anabranch.spark  # noqa: F401
