"""Of what Java prints, only what Spark tells of each stateful operator is left out."""

from __future__ import annotations

import os
import subprocess
import sys

from anabranch.apps.run import java_lines
from anabranch.apps.run.java_lines import filtered_stderr, without_noise

WORKER = b"Streaming TransformWithStateInPandas Python worker"
NOISE = [
    b"Starting " + WORKER + b".\n",
    WORKER + b" finish init stage of Python runner. Received UDF from JVM: <bound method>.\n",
    WORKER + b" received parameters for UDF. State server port/path: 1, key schema: StructType([]).\n",
    WORKER + b" Starting execution of UDF: <bound method>.\n",
    WORKER + b" Completed execution of UDF: <bound method>.\n",
]
ERRORS = [
    b"Traceback (most recent call last):\n",
    b"\n",
    WORKER + b" crashed\n",
    b"OutOfMemoryError: " + WORKER + b"\n",
]


def test_the_five_lines_go_each_with_the_empty_one_behind_it_and_errors_stay():
    printed = [ERRORS[0], *(line for noise in NOISE for line in (noise, b"\n")), *ERRORS[1:]]
    assert [*without_noise(printed)] == ERRORS


def test_what_a_process_prints_reaches_stderr(monkeypatch):
    read, stderr = os.pipe()
    monkeypatch.setattr(java_lines, "_STDERR", stderr)
    write = filtered_stderr()
    program = f"import os; os.write(2, {NOISE[0]!r}); os.write(2, {ERRORS[0]!r})"
    subprocess.run([sys.executable, "-c", program], stderr=write, check=True)
    assert os.read(read, 100) == ERRORS[0]
    os.close(write)
