"""Skewed keyed DataFrames, balanced: `balance(df, key, grouping)`, and `chain(df)` for operators in a row."""

from anabranch.errors import MissingExtraError

try:
    import pyspark  # noqa: F401
except ImportError as error:
    raise MissingExtraError("anabranch.spark needs PySpark; install it with: pip install 'anabranch[spark]'") from error

from anabranch.spark.balance import Balanced, balance
from anabranch.spark.chain import Chain, answers_of, chain
from anabranch.spark.chain_settings import Reconfiguration
from anabranch.spark.plans.ledger import Ledger
from anabranch.spark.session import session

__all__ = ["Balanced", "Chain", "Ledger", "Reconfiguration", "answers_of", "balance", "chain", "session"]


def __dir__() -> list[str]:
    return sorted(__all__)
