"""A Spark that one test breaks is not that of the next: its JVM dies, hangs, or is busy."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.timeout(280)]

CONFTEST = """
from tests.spark import conftest
from tests.spark.conftest import *

conftest.PROBE = 20.0
"""

TESTS = """
import os
import signal

import pytest
from pyspark import SparkContext


@pytest.fixture(scope="module")
def numbers(spark_session):
    return spark_session.range(3)


def test_java_is_killed(spark_session, numbers):
    assert numbers.count() == 3
    os.kill(SparkContext._gateway.proc.pid, signal.SIGKILL)
    numbers.count()


def test_after_it_was_killed(spark_session, numbers):
    assert spark_session.range(2).count() == 2
    assert numbers.count() == 3


@pytest.mark.timeout(5)
def test_java_hangs(spark_session):
    os.kill(SparkContext._gateway.proc.pid, signal.SIGSTOP)
    spark_session.range(2).count()


def test_after_it_hung(spark_session, numbers):
    assert spark_session.range(2).count() == 2
    assert numbers.count() == 3


def test_that_fails_of_itself(spark_session):
    spark_session.mark = "the same"
    raise AssertionError


def test_after_that(spark_session):
    assert spark_session.mark == "the same"
"""


def test_the_tests_behind_one_that_breaks_the_jvm_get_another(tmp_path):
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_in_order.py").write_text(TESTS)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-s",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
    ]
    places = [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(  # noqa: S603 - our own command
        [*command, "--rootdir", tmp_path, "-c", os.devnull, "-rA", tmp_path],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, places))},
    )
    outcome = {
        line.split("::")[1].split()[0]: line.split()[0]
        for line in done.stdout.splitlines()
        if line.startswith(("PASSED ", "FAILED "))
    }
    assert outcome == {
        "test_java_is_killed": "FAILED",
        "test_after_it_was_killed": "PASSED",
        "test_java_hangs": "FAILED",
        "test_after_it_hung": "PASSED",
        "test_that_fails_of_itself": "FAILED",
        "test_after_that": "PASSED",
    }, done.stdout + done.stderr
    assert done.stderr.count("it is started anew") == 2
