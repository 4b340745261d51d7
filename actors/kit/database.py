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
from contextlib import closing
from enum import StrEnum
from pathlib import Path
from typing import IO, Final

import attrs

_SUFFIX: Final = "-lock"
_MEMORY: Final = ":memory:"


class FileTakenError(OSError):
    """Another process has locked the database file."""


_PRIVATE: Final = 0o600
"""Mode of a file that only its owner may read."""

_BUSY_TIMEOUT: Final = 1.0
"""Seconds a write waits for another process with the file open, such as a backup (ours);
below LOGIN_TIMEOUT."""

_TABLES: Final = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT GLOB 'sqlite_*'"


class Durability(StrEnum):
    """Kind of failure after which committed data still exists: process crash or power failure."""

    PROCESS = "NORMAL"
    POWER = "FULL"


@attrs.frozen
class DatabaseForm:
    """Expected tables, version and durability of a database file.

    Attributes:
        version: Version of our table layout; the caller writes it into the file.
        writer: Kind of program that owns the file, for error messages.
    """

    tables: AbstractSet[str]
    version: int
    writer: str = "node"
    durability: Durability = Durability.PROCESS


def _open(path: Path, form: DatabaseForm) -> sqlite3.Connection:
    """Open a database file, or make it for its owner only; threads may share the connection."""
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


def _check_name(path: Path) -> None:
    """Refuse the file name that SQLite reserves for a database in memory.

    Raises:
        OSError: The path has that name.
    """
    if path.name == _MEMORY:
        raise OSError(f"{_MEMORY} names no file: without the option, nothing outlives the process")


def flaw_of(path: Path, form: DatabaseForm) -> str:
    """Return why a database file cannot be used, as half a sentence; empty: the file can be used.

    Nothing is made or changed, and another process may have the file open. All of it is read.

    Args:
        path: The file; it need not be there.
        form: The form it must have.
    """
    try:
        _check_name(path)
        if not path.exists():
            folder = path.parent
            if not folder.is_dir():
                return "its folder is not there"
            return "" if os.access(folder, os.W_OK | os.X_OK) else "nothing can be made there"
        if not os.access(path, os.R_OK | os.W_OK):
            return "it cannot be read and written"
        where = f"{path.absolute().as_uri()}?mode=ro{_immutable(path)}"
        with closing(sqlite3.connect(where, timeout=_BUSY_TIMEOUT, uri=True)) as connection:
            _check_owner(connection, form)
            (flaw,) = connection.execute("PRAGMA quick_check(1)").fetchone()
            if flaw != "ok":
                return "it is damaged; restore a backup"
    except (OSError, sqlite3.Error) as exc:
        return str(exc)
    return ""


def _immutable(path: Path) -> str:
    """Return the option by which SQLite makes no files beside a database without a log.

    The log of a process that has the file open, or was killed, has to be read.
    """
    real = path.resolve()
    logs = (real.with_name(f"{real.name}{suffix}") for suffix in ("-wal", "-journal"))
    return "" if any(log.exists() for log in logs) else "&immutable=1"


class DatabaseFile:
    """Database file with its only connection, and a lock file that excludes other processes.

    The system releases the lock when the process ends, however it ends. The lock is a file of its
    own, which stays: SQLite's own locks on the file would be lost with the first descriptor of it
    that is closed, and a lock file that is removed could be locked twice.

    Args:
        path: The file; made if it is not there.
        form: Its form.
    """

    def __init__(self, path: Path, form: DatabaseForm) -> None:
        self.path: Final = path
        self._form: Final = form
        self._lock: IO[bytes] | None = None
        self._connection: sqlite3.Connection | None = None
        self._inode = 0

    def lock(self) -> None:
        """Lock the database file against other processes, until `close`.

        Idempotent.

        Raises:
            FileTakenError: Another process has the lock.
            OSError: There can be no lock in that folder, or the name means no file to SQLite.
        """
        if self._lock is not None:
            return
        _check_name(self.path)
        path = self.path.resolve()
        flags = os.O_CREAT | os.O_WRONLY | os.O_APPEND
        opened = os.fdopen(os.open(path.with_name(path.name + _SUFFIX), flags, _PRIVATE), "ab")
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as exc:
            opened.close()
            raise FileTakenError(f"another {self._form.writer} has it open") from exc
        except OSError:
            opened.close()
            raise
        self._lock = opened

    @property
    def is_open(self) -> bool:
        """True if the database connection is open."""
        return self._connection is not None

    def connection(self) -> sqlite3.Connection:
        """Return the database connection; open it first if necessary.

        Only one thread may use it at a time.

        Raises:
            sqlite3.Error: It cannot be opened, or is none of ours: nothing in it was changed.
            OSError: It cannot be made.
        """
        if self._connection is None:
            self._connection = _open(self.path, self._form)
            self._inode = self.path.stat().st_ino
        return self._connection

    def check_place(self) -> None:
        """Raise an error if the file at the path is no longer the opened one.

        Raises:
            OSError: The file was moved, removed or replaced.
        """
        if self.path.stat().st_ino != self._inode:
            raise OSError("another file has taken its place")

    def disconnect(self) -> None:
        """Close the connection, so that a defect of it cannot affect a new one; idempotent."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def close(self) -> None:
        """Close the connection, and release the lock for other processes; idempotent."""
        self.disconnect()
        if self._lock is not None:
            self._lock.close()
            self._lock = None
