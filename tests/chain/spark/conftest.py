"""What tests on Spark may use."""

from __future__ import annotations

from importlib.util import find_spec

# Every test of this folder imports PySpark, with or without a session.
collect_ignore_glob = [] if find_spec("pyspark") else ["*.py"]
