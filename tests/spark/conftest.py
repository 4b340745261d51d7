"""One Spark for all tests, as it takes seconds to start. One that a test broke is started anew."""

import sys
from collections.abc import Iterator
from threading import Thread

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from spark.session import open_session

PROBE = 60.0
"""Seconds within which a Spark does the smallest work; one that takes longer is broken."""

FIXTURE = "spark_session"
FAILED = pytest.StashKey[bool]()


@pytest.fixture(scope="session")
def spark_session() -> Iterator[SparkSession]:
    with open_session({"spark.master": "local[2]"}, is_short=True) as session:
        yield session


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if report.failed:
        item.stash[FAILED] = True
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item, nextitem):
    """End a Spark that a test has broken: the tests behind it get a new one, and fixtures too."""
    torn_down = yield
    session = SparkSession._instantiatedSession
    is_doubtful = FIXTURE in item.fixturenames and FAILED in item.stash and session is not None
    if is_doubtful and not is_working(session):
        sys.stderr.write(f"\nSpark is broken after {item.nodeid}; it is started anew\n")
        end_java()
        (*_, fixture) = item.session._fixturemanager.getfixturedefs(FIXTURE, item)
        fixture.finish(item._request)
        forget_java()
    return torn_down


def is_working(session: SparkSession) -> bool:
    """Whether a Spark still does what it is asked to, within a time."""
    done = []
    probe = Thread(target=lambda: done.append(session.range(1).count()), daemon=True)
    probe.start()
    probe.join(PROBE)
    return bool(done)


def end_java() -> None:
    """Kill the JVM, which may be dead already: it would be asked to stop, and waited for."""
    java = SparkContext._gateway.proc
    java.kill()
    java.wait()


def forget_java() -> None:
    """Let the next Spark have a JVM of its own."""
    SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = None
