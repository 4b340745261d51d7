"""What Spark and its Java say when they fail, as one sentence."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from py4j.protocol import Py4JError  # type: ignore[import-untyped] # ships no types
from pyspark.errors import PySparkException

from spark.errors import SparkFailedError

__all__ = ["failures_told"]

_SAID: Final = re.compile(
    r"^(?:: )?[\w.$]+(?:Exception|Error): (?:\[[A-Z_.]+\] )?(?P<words>.+?)[\s.]*(?:SQLSTATE.*)?$",
    re.MULTILINE,
)
"""The first line of a Java stack that names an exception: its words, without codes."""


@contextmanager
def failures_told(what: str) -> Iterator[None]:
    """Turn a failure of Spark in the block into one sentence that begins with `what`.

    Raises:
        SparkFailedError: Spark, or the Java under it, failed.
    """
    try:
        yield
    except (PySparkException, Py4JError) as exc:
        raise SparkFailedError(f"{what}: {_words(str(exc))}") from exc


def _words(text: str) -> str:
    found = _SAID.search(text)
    return found["words"] if found else text.partition("\n")[0].rstrip(" .:")
