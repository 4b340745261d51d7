"""Defects that are planted in a copy of the code, and the tests that find them."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import attrs

ROOT: Final = Path(__file__).parents[2]
# A compiled module has such a name while another process writes it.
_HALF_WRITTEN: Final = "*.pyc.*"
_IGNORED: Final = shutil.ignore_patterns(".*", "node_modules", _HALF_WRITTEN)
_FAILED: Final = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)
_TESTS_FAILED: Final = 1
"""The status of pytest; greater ones mean that it did not run the tests."""


@attrs.frozen(kw_only=True)
class Defect:
    """A slip of somebody who rewrites a concern.

    Attributes:
        file: The changed file.
        old: Text that stands in it once.
        new: What takes its place.
        effect: What a user would notice.
        found_by: The tests that find it; empty: no test does.
    """

    name: str
    file: str
    old: str
    new: str
    effect: str
    found_by: tuple[str, ...] = attrs.field(converter=tuple)

    def planted(self, root: Path = ROOT) -> str:
        """Return the text of the file with the defect.

        Raises:
            ValueError: The old text does not stand there exactly once.
        """
        return replaced(root / self.file, self.old, self.new)


@attrs.frozen(kw_only=True)
class Concern:
    """The defects of one concern, and the folders of its tests, the likeliest first."""

    tests: tuple[str, ...] = attrs.field(converter=tuple)
    defects: tuple[Defect, ...]


def read_concerns() -> dict[str, Concern]:
    """Return all concerns by name."""
    concerns = {}
    for file in sorted(Path(__file__).parent.glob("*.toml")):
        read = tomllib.loads(file.read_text())
        defects = tuple(Defect(**one) for one in read["defect"])
        concerns[file.stem] = Concern(tests=read["tests"], defects=defects)
    return concerns


def replaced(file: Path, old: str, new: str) -> str:
    """Return the text of a file with another text in the place of `old`.

    Raises:
        ValueError: `old` does not stand there exactly once.
    """
    text = file.read_text()
    if (times := text.count(old)) != 1:
        raise ValueError(f"{file}: the old text stands there {times} times: {old!r}")
    return text.replace(old, new)


@contextmanager
def source_copy() -> Iterator[Path]:
    """Copy the code and its tests; a test may write into any file of the copy."""
    with TemporaryDirectory(prefix="defects-") as place:
        yield Path(shutil.copytree(ROOT, Path(place) / "code", ignore=_IGNORED))


@contextmanager
def changed(file: Path, text: str) -> Iterator[None]:
    """Have another text in a file of a copy."""
    # The original comes back with its time, so that its compiled module is valid again.
    original = file.with_suffix(".original")
    file.rename(original)
    try:
        file.write_text(text)
        yield
    finally:
        original.replace(file)


@attrs.frozen
class Outcome:
    """What the tests did in a copy.

    Attributes:
        verdict: `found`, `SURVIVED`, `timed out`, or `NO TESTS RAN`.
        test: The first test that failed.
        output: What pytest wrote.
    """

    verdict: str
    test: str = ""
    output: str = attrs.field(default="", repr=False)


def run_tests(copy: Path, *options: str, seconds: float = 300) -> Outcome:
    """Run tests in a copy until one fails; the packages are those of the copy."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *options]
    with subprocess.Popen(  # noqa: S603 - our own tests
        command,
        cwd=copy,
        env=os.environ | {"PYTHONPATH": str(copy)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            output, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return Outcome("timed out")
    failed = _FAILED.search(output)
    # The status of pytest-xdist that stops at a failure is that of tests that cannot be read.
    is_broken = failed is None or failed.group().startswith("ERROR")
    if process.returncode > _TESTS_FAILED and is_broken:
        return Outcome("NO TESTS RAN", output=output)
    verdict = "SURVIVED" if process.returncode == 0 else "found"
    return Outcome(verdict, failed.group(1) if failed else "", output)
