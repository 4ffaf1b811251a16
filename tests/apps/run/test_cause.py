from __future__ import annotations

import pytest

pytest.importorskip("pyspark")

from anabranch.apps.run.cause import is_indeterminate, root_cause

FAILED = """[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: Job aborted. SQLSTATE: XXKST
=== Streaming Query ===
Current State: ACTIVE

JVM stacktrace:
org.apache.spark.sql.streaming.StreamingQueryException: Job aborted due to stage failure
	at org.apache.spark.sql.execution.streaming.StreamExecution.runStream(StreamExecution.scala:1)
Caused by: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 failed
	at org.apache.spark.scheduler.DAGScheduler.failJob(DAGScheduler.scala:1)
Caused by: java.io.FileNotFoundException: File words.txt does not exist
	at java.base/java.io.FileInputStream.open(FileInputStream.java:1)
	... 8 more
"""

PYTHON = """Job aborted: org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "worker.py", line 1, in main
    process()
anabranch.errors.InputError: sum of price must fit into 64 bits, got more; cast it to double

	at org.apache.spark.api.python.BasePythonRunner.handle(PythonRunner.scala:1)
Caused by: java.io.IOException: Broken pipe
"""


def test_the_innermost_java_exception_is_the_cause():
    assert root_cause(RuntimeError(FAILED)) == "File words.txt does not exist (FileNotFoundException)"


def test_an_error_of_python_code_comes_before_what_java_made_of_it():
    assert root_cause(RuntimeError(PYTHON)) == "sum of price must fit into 64 bits, got more; cast it to double"


def test_the_java_behind_a_call_from_python_is_the_cause():
    text = """Job aborted. Traceback (most recent call last):
  File "sink.py", line 1, in write
    records.save()
py4j.protocol.Py4JJavaError: An error occurred while calling o712.save.
: org.apache.spark.SparkException: the disk is full
\tat org.apache.spark.scheduler.DAGScheduler.failJob(DAGScheduler.scala:1)
"""
    assert root_cause(RuntimeError(text)) == "the disk is full (SparkException)"


def test_a_checkpoint_of_other_states_is_told_in_words():
    marks = "".join(f",StructField(max,DecimalType(7,{scale}),true)" for scale in range(3))
    text = (
        "[STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE] Provided value schema does not match.\nExisting value_schema="
        f"StructType(StructField(sum,LongType,true)) and new value_schema=StructType(StructField(sum,LongType,true)"
        f"{marks})"
    )
    assert root_cause(RuntimeError(text)).startswith("the checkpoint holds states of other keys or aggregates")


def test_a_text_without_exceptions_is_its_first_line_and_never_endless():
    assert root_cause(RuntimeError("no luck\nat all")) == "no luck"
    assert root_cause(RuntimeError()) == "RuntimeError"
    assert len(root_cause(RuntimeError("x" * 10_000))) == 400


@pytest.mark.parametrize(
    ("text", "is_it"),
    [
        ("A shuffle map stage with indeterminate output was failed; Spark cannot rollback the ResultStage 7", True),
        ("[STREAM_FAILED] … cannot rollback the ResultStage …", True),
        ("Job aborted due to stage failure: Task 0 failed 1 times", False),
    ],
)
def test_only_a_batch_that_spark_could_not_repeat_is_indeterminate(text, is_it):
    assert is_indeterminate(RuntimeError(text)) is is_it
