"""What can go wrong before a trace is judged."""

from typing import final

from specs.errors import ProtoflyError

__all__ = ["JavaMissingError", "SparkMissingError", "TraceMissingError"]


@final
class JavaMissingError(ProtoflyError):
    """There is no Java that Spark runs on: install the wheel, or a system Java."""


@final
class SparkMissingError(ProtoflyError):
    """PySpark or what it needs is not installed: install the extra."""


@final
class TraceMissingError(ProtoflyError):
    """There is no trace at the place named.

    Attributes:
        path: The place.
    """

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"no trace at {path}: {reason}; name a directory that --trace wrote")
        self.path = path
