"""Remove features from a copy of the code, and run the tests that show them."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.features.page import FEATURES, ROOT, Removal

_COPIED: Final = (
    "actors",
    "bench",
    "docs",
    "examples",
    "fsm",
    "spark",
    "specs",
    "tests",
    "transports",
)
_FILES: Final = ("pyproject.toml", "README.md")
_WAIT: Final = 300
"""Seconds for one test: without a feature it may wait for what never comes."""


def replaced(one: Removal, root: Path = ROOT) -> str:
    """Return the text of a file without the feature.

    Raises:
        ValueError: What is to be removed does not stand there exactly once.
    """
    text = (root / one.file).read_text()
    if (times := text.count(one.old)) != 1:
        raise ValueError(f"{one.file}: what shows {one.feature} stands there {times} times")
    return text.replace(one.old, one.new)


def copied(to: Path) -> None:
    """Copy the code and its tests."""
    ignored = shutil.ignore_patterns("__pycache__")
    for name in _COPIED:
        shutil.copytree(ROOT / name, to / name, ignore=ignored)
    for name in _FILES:
        shutil.copy(ROOT / name, to / name)


def is_missed(one: Removal, copy: Path) -> tuple[bool, str]:
    """Return whether the test of a feature fails without it, and what it says."""
    with _changed(one, copy):
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-m", ""]
        try:
            ended = subprocess.run(  # noqa: S603 - our own tests
                [*command, FEATURES[one.feature].test],
                cwd=copy,
                env=os.environ | {"PYTHONPATH": str(copy)},
                capture_output=True,
                text=True,
                timeout=_WAIT,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return True, "it waits for what never comes"
    # 1: tests failed; others, such as 4 for a test that is not there, show nothing.
    return ended.returncode == 1, ended.stdout[-2000:] + ended.stderr[-1000:]


@contextmanager
def _changed(one: Removal, copy: Path) -> Iterator[None]:
    place = copy / one.file
    before = place.read_text()
    place.write_text(replaced(one, copy))
    try:
        yield
    finally:
        place.write_text(before)
