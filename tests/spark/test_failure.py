"""Spark's failures in one sentence."""

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import PySparkException

from spark import session
from spark.errors import SparkFailedError, report_failures

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
    with pytest.raises(SparkFailedError) as caught, report_failures("Spark gave up"):
        raise PySparkException(text)
    assert str(caught.value) == f"Spark gave up: {words}"


class UntoldError(Py4JError):
    """An error of Java, whose words Java itself would have to tell."""

    def __str__(self):
        raise ConnectionRefusedError


@pytest.mark.parametrize(
    "error",
    [ConnectionRefusedError(), Py4JNetworkError("Answer from Java side is empty"), UntoldError()],
)
def test_the_end_of_java_is_told_with_what_helps(error):
    with pytest.raises(SparkFailedError) as caught, report_failures("Spark gave up"):
        raise error
    assert "--driver-memory" in str(caught.value)


@pytest.mark.parametrize(
    ("limit", "heap"), [("max\n", "6000m"), ("8388608000\n", "2000m"), ("104857600\n", "1024m")]
)
def test_a_local_spark_has_a_part_of_the_memory(tmp_path, monkeypatch, limit, heap):
    of_container = tmp_path / "memory.max"
    of_container.write_text(limit)
    monkeypatch.setattr(session.os, "sysconf", {"SC_PAGE_SIZE": 2**20, "SC_PHYS_PAGES": 24_000}.get)
    assert session._heap(of_container) == heap


def test_a_machine_without_control_groups_has_its_whole_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(session.os, "sysconf", {"SC_PAGE_SIZE": 2**20, "SC_PHYS_PAGES": 24_000}.get)
    assert session._heap(tmp_path / "memory.max") == "6000m"
