"""Makes a host of one without anabranch: Python finds it in what Spark was sent, or not at all.

Every Python that starts with this folder on its path imports this. The variable is set on the hosts only, not for the
driver; it names a folder in which a host leaves where it has found the package.
"""

import os
import sys
from importlib.machinery import PathFinder
from pathlib import Path

FOUND = os.environ.get("ANABRANCH_TEST_FOUND")


class Shipped(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name != "anabranch":
            return None
        spec = super().find_spec(name, [entry for entry in sys.path if "anabranch_package" in entry], target)
        if spec is None:
            raise ModuleNotFoundError(f"anabranch is not installed here, and was not sent either: {sys.path}")
        Path(FOUND, os.environ["SPARK_LOCAL_IP"]).write_text(str(spec.origin))
        return spec


if FOUND:
    sys.meta_path.insert(0, Shipped)
