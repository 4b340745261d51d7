"""Spark's failures in one sentence."""

import pytest
from pyspark.errors import PySparkException

from spark.errors import SparkFailedError, failures_told

STACK = """An error occurred while calling o339.localCheckpoint.
: org.apache.spark.SparkException: [FAILED_READ_FILE.NO_HINT] Cannot read x.gz.  SQLSTATE: KD001
\tat org.apache.spark.sql.errors.QueryExecutionErrors$.cannotRead(QueryExecutionErrors.scala:920)
Caused by: java.io.EOFException: Unexpected end of input stream
"""
SAID = {
    "a Java stack": (STACK, "Cannot read x.gz"),
    "no exception named": ("Java left.\nWhy?", "Java left"),
}


@pytest.mark.parametrize(("text", "words"), SAID.values(), ids=SAID.keys())
def test_a_failure_is_reported_without_stack_and_codes(text, words):
    with pytest.raises(SparkFailedError) as caught, failures_told("Spark gave up"):
        raise PySparkException(text)
    assert str(caught.value) == f"Spark gave up: {words}"
