"""Progress of long work, on standard error while that is a terminal; else nothing is shown."""

import io
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import BinaryIO, Final, cast, final

import attrs
import click
from typing_extensions import Buffer, override

from fsm.judge.trace_files import LinesPart

_CLEAR: Final = "\r\x1b[2K"
"""Empties the line of a terminal on which the bar stands."""


@final
class Progress:
    """How far some work is.

    Args:
        show: Shows how much is done, and how much there is to do; None: nothing is shown.
    """

    def __init__(self, show: Callable[[int, int], None] | None) -> None:
        self._show = show

    def set(self, done: int, total: int) -> None:
        """Show how far the work is.

        Args:
            done: How much is done.
            total: How much there is to do, as far as is known.
        """
        if self._show is not None:
            self._show(done, total)

    def clear(self) -> None:
        """Make place for a line of output; the next `set` shows the bar again."""
        if self._show is not None and sys.stderr.isatty():
            click.echo(_CLEAR, nl=False, err=True)


@contextmanager
def progress_of(title: str, total: int = 1) -> Iterator[Progress]:
    """Show how far some work is, while the context is open.

    Args:
        title: Name of the work.
        total: How much there is to do, as far as is known.

    Yields:
        What takes how much is done.
    """
    if not sys.stderr.isatty():
        yield Progress(None)
        return
    opened = click.progressbar(range(total), label=title, file=sys.stderr, show_percent=True)
    with opened as bar:

        def show(done: int, known: int) -> None:
            bar.length = max(known, 1)
            bar.update(done - bar.pos)

        yield Progress(show)


@contextmanager
def progress_of_reading(title: str, parts: Sequence[LinesPart]) -> Iterator[Sequence[LinesPart]]:
    """Show how many bytes of files of this machine were read, while the context is open.

    Args:
        title: Name of the work.
        parts: The files.

    Yields:
        The files, to be read instead. What is read again, as its records are not in order, is
        not counted again.
    """
    if not sys.stderr.isatty():
        yield parts
        return
    sizes = {part.name: _size(part.name) for part in parts}
    read = dict.fromkeys(sizes, 0)
    with progress_of(title, sum(sizes.values())) as progress:

        def came(name: str, count: int) -> None:
            read[name] = min(read[name] + count, sizes[name])
            progress.set(sum(read.values()), sum(sizes.values()))

        yield [attrs.evolve(part, opened=partial(_opened, part.name, came)) for part in parts]


def _size(name: str) -> int:
    try:
        return Path(name).stat().st_size
    except OSError:  # whoever reads it reports that
        return 0


def _opened(name: str, came: Callable[[str, int], None]) -> BinaryIO:
    return cast("BinaryIO", io.BufferedReader(_Counted(name, came), _BLOCK))


_BLOCK: Final = 1 << 16
"""Bytes that are read from a file at once."""


@final
class _Counted(io.FileIO):
    """A file that reports the number of bytes read."""

    def __init__(self, name: str, came: Callable[[str, int], None]) -> None:
        super().__init__(name)
        self._came = partial(came, name)

    @override
    def readinto(self, buffer: Buffer, /) -> int | None:
        count: int | None = super().readinto(buffer)
        self._came(count or 0)
        return count
