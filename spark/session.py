"""The only place that starts Spark."""

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from enum import Enum, unique
from importlib.resources import as_file, files
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

from spark.failure import failures_told
from spark.java import JavaSource, find_java, java_home

__all__ = ["LOCAL", "Effort", "open_session"]

LOCAL: Final = "local[*]"
"""All cores of this machine, nothing of any other."""

_SETTINGS: Final[dict[str, bool | float | int | str | None]] = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
}
_LOOPBACK: Final[dict[str, bool | float | int | str | None]] = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}


_SHORT: Final[dict[str, bool | float | int | str | None]] = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.shuffle.partitions": "2",
}


@unique
class Effort(Enum):
    """How much Spark may prepare before it works.

    Attributes:
        SHORT: Few records: compiling would take longer than what it saves (measured on
            500 records: 20 instead of 35 seconds of processor time).
        LONG: Many records: compile everything well.
    """

    SHORT = "short"
    LONG = "long"


@contextmanager
def open_session(
    master: str | None = None,
    source: JavaSource = JavaSource.ANY,
    effort: Effort = Effort.LONG,
) -> Iterator[SparkSession]:
    """Run Spark as long as the block runs.

    Under `spark-submit` the cluster's own Java and settings are used; else a Java is
    looked for (`spark.java`), and a local Spark keeps to the loopback interface.

    Args:
        master: Which cluster; None: the one `spark-submit` named, else this machine.
        source: Which Java, if this process has to start one.
        effort: How much there will be to do.

    Raises:
        JavaMissingError: There is no Java that Spark supports.
        SparkFailedError: Spark did not start.
    """
    with ExitStack() as stack:
        submitted = "PYSPARK_GATEWAY_PORT" in os.environ
        builder = SparkSession.Builder().appName("protofly").config(map=_SETTINGS)
        if not submitted:
            home = stack.enter_context(java_home(find_java(os.environ, source)))
            quiet = stack.enter_context(as_file(files("spark") / "log4j2.properties"))
            stack.enter_context(_environment({"JAVA_HOME": str(home)}))
            builder = builder.config("spark.driver.extraJavaOptions", _java_options(quiet, effort))
            master = master or LOCAL
        if effort is Effort.SHORT:
            builder = builder.config(map=_SHORT)
        if master is not None:
            builder = builder.master(master)
            if master.startswith("local"):
                stack.enter_context(_environment({"SPARK_LOCAL_IP": "127.0.0.1"}))
                builder = builder.config(map=_LOOPBACK)
        with failures_told(f"Spark did not start on {master or 'its cluster'}"):
            session = builder.getOrCreate()
        stack.callback(session.stop)
        yield session


def _java_options(log_settings: Path, effort: Effort) -> str:
    quick = ["-XX:TieredStopAtLevel=1"] if effort is Effort.SHORT else []
    return " ".join([f'"-Dlog4j2.configurationFile={log_settings.as_uri()}"', *quick])


@contextmanager
def _environment(changes: Mapping[str, str]) -> Iterator[None]:
    """Set variables that the JVM, a child process, inherits; restore them afterwards."""
    before = {name: os.environ.get(name) for name in changes}
    os.environ.update(changes)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
