"""Skewed keyed DataFrames, balanced: `balance(df, key, grouping)`."""

from anabranch.errors import MissingExtraError

try:
    import pyspark  # noqa: F401
except ImportError as error:
    raise MissingExtraError("anabranch.spark needs PySpark; install it with: pip install 'anabranch[spark]'") from error

from anabranch.spark.balanced import Balanced, balance
from anabranch.spark.plans.ledger import Ledger
from anabranch.spark.spark_session import session

__all__ = ["Balanced", "Ledger", "balance", "session"]


def __dir__() -> list[str]:
    return sorted(__all__)
