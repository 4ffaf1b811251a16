"""The Python that workers run, as far as it can be known before a query starts."""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import lru_cache

from pyspark import SparkContext, SparkFiles
from pyspark.sql import SparkSession

from anabranch.errors import ConfigError

# What our tasks import; Spark brings pyspark itself.
_NEEDED = ("anabranch", "numba", "numpy", "pyarrow")
# What Spark starts where PYSPARK_PYTHON is not set.
_DEFAULT = "python3"
_SETTING = "spark.sql.execution.pyspark.python"
_ASK = "import sys; from importlib.util import find_spec; print(*(n for n in sys.argv[1:] if find_spec(n) is None))"


def check_interpreter(spark: SparkSession) -> None:
    """Refuse a local session without PYSPARK_PYTHON, if the Python that Spark starts then cannot run our tasks.

    Only the python3 of this machine can be asked. An interpreter that was chosen, executors elsewhere, and those that
    get archives are taken to be right.
    """
    try:
        context = spark.sparkContext
    except Exception:  # Spark Connect has no context, and says so by one of several errors
        return
    is_local = str(context.master).partition("[")[0] == "local"
    if not is_local or context.pythonExec != _DEFAULT or spark.conf.get(_SETTING, None):
        return
    if context.getConf().contains("spark.archives"):
        return
    environment = _environment(context)
    python = shutil.which(_DEFAULT, path=environment.get("PATH"))
    folder = str(context._jvm.System.getProperty("user.dir"))  # type: ignore[union-attr]
    missing = "" if python is None else missing_from(python, folder, tuple(environment.items()))
    if missing:
        raise ConfigError(
            f"workers run {python} where PYSPARK_PYTHON is not set, and it has no {missing}; before the session is "
            'made set os.environ["PYSPARK_PYTHON"] = sys.executable, or let anabranch.spark.session() make it'
        )


@lru_cache
def missing_from(python: str, folder: str, environment: tuple[tuple[str, str], ...]) -> str:
    """Names of what our tasks import and this interpreter, started in this folder, does not find."""
    asked = [python, "-c", _ASK, *_NEEDED]
    done = subprocess.run(asked, cwd=folder, env=dict(environment), capture_output=True, text=True, check=False)
    # An interpreter that cannot answer is Spark's to complain about.
    return ", ".join(done.stdout.split()) if done.returncode == 0 else ""


def _environment(context: SparkContext) -> dict[str, str]:
    """What Spark gives to the Python that it starts: Java's own variables, and where modules were sent."""
    of_java: dict[str, str] = dict(context._jvm.System.getenv())  # type: ignore[union-attr]
    sent = SparkFiles.getRootDirectory()
    files = [os.path.join(sent, name) for name in context._python_includes or ()]
    paths = [sent, *files, context.environment.get("PYTHONPATH"), of_java.get("PYTHONPATH")]
    return {**of_java, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
