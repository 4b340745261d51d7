"""A SQLite file that one process opens, and a lock that keeps other processes away from it.

The file is in WAL mode. With `synchronous=NORMAL` what is committed survives the process,
however it ends, but a power failure may lose the last moments; with `FULL` it survives that,
too, at the price of one sync per commit. SQLite separates writers for one transaction only; a
process that caches the file in memory holds the lock for as long as it runs.
"""

import fcntl
import os
import sqlite3
from collections.abc import Set as AbstractSet
from enum import StrEnum, unique
from pathlib import Path
from typing import IO, Final, final

import attrs

__all__ = ["DatabaseForm", "Durability", "FileLock", "open_database"]

_SUFFIX: Final = "-lock"


@final
class FileTakenError(OSError):
    """Another process has the file."""


_PRIVATE: Final = 0o600
"""Mode of a file that only its owner may read."""


@final
class FileLock:
    """A lock beside a file: the system lets go of it when the process ends, however it does.

    The lock is a file of its own, which stays: SQLite's own locks on the file would be
    lost with the first descriptor of it that is closed, and a lock file that is removed
    could be locked twice.

    Args:
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
        flags = os.O_CREAT | os.O_WRONLY | os.O_APPEND
        opened = os.fdopen(os.open(path.with_name(path.name + _SUFFIX), flags, _PRIVATE), "ab")
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


_BUSY_TIMEOUT: Final = 1.0
"""Seconds a write waits for another process with the file open, such as a backup (ours);
below LOGIN_TIMEOUT."""

_TABLES: Final = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT GLOB 'sqlite_*'"


@final
@unique
class Durability(StrEnum):
    """Failures that a commit survives."""

    PROCESS = "NORMAL"
    POWER = "FULL"


@final
@attrs.frozen
class DatabaseForm:
    """The form of a database file.

    Attributes:
        version: Of the form in which we keep it; written by the caller.
        writer: What kind of program keeps it, for people.
    """

    tables: AbstractSet[str]
    version: int
    writer: str = "node"
    durability: Durability = Durability.PROCESS


def open_database(path: Path, form: DatabaseForm) -> sqlite3.Connection:
    """Open a file, or make it for its owner only; any thread may use the connection, one at a time.

    Args:
        path: The file.
        form: Expected form of the database.

    Raises:
        sqlite3.Error: It cannot be opened, or is none of ours: then nothing in it was changed.
        OSError: It cannot be made.
    """
    # SQLite gives its other files the mode of this one.
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, _PRIVATE))
    connection = sqlite3.connect(path, timeout=_BUSY_TIMEOUT, check_same_thread=False)
    try:
        _check_owner(connection, form)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA synchronous = {form.durability}")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _check_owner(connection: sqlite3.Connection, form: DatabaseForm) -> None:
    found = {str(name) for (name,) in connection.execute(_TABLES)}
    (written,) = connection.execute("PRAGMA user_version").fetchone()
    if (found and not written) or found - form.tables:
        raise sqlite3.DatabaseError("it is the database of another program")
    if written > form.version:
        raise sqlite3.DatabaseError(f"it was written by a newer version of the {form.writer}")
