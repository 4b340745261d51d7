"""A file that one process may use at a time.

SQLite keeps writers apart for as long as one transaction takes. Who keeps in memory what
the file holds must keep others away for as long as it lives.
"""

import fcntl
from pathlib import Path
from typing import IO, Final, final

__all__ = ["FileLock", "FileTakenError"]

_SUFFIX: Final = "-lock"


@final
class FileTakenError(OSError):
    """Another process has the file."""


@final
class FileLock:
    """A lock beside a file: the system lets go of it when the process ends, however it does.

    The lock is a file of its own, which stays: SQLite's own locks on the file would be
    lost with the first descriptor of it that is closed, and a lock file that is removed
    could be locked twice.

    Args:
        path: The file.
        holder: What kind of program uses such files, for people.
    """

    def __init__(self, path: Path, holder: str = "node") -> None:
        self._path = path
        self._holder = holder
        self._file: IO[bytes] | None = None

    def take(self) -> None:
        """Keep others away, until `release`; nothing happens if it is held already.

        Raises:
            FileTakenError: Another process has it.
            OSError: There can be no lock in that folder.
        """
        if self._file is not None:
            return
        path = self._path.resolve()
        opened = path.with_name(path.name + _SUFFIX).open("ab")
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as exc:
            opened.close()
            raise FileTakenError(f"another {self._holder} has it open") from exc
        except OSError:
            opened.close()
            raise
        self._file = opened

    def release(self) -> None:
        """Let others in."""
        if self._file is not None:
            self._file.close()
            self._file = None
