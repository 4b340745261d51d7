"""The storage of the domain registry: a SQLite file, or nothing but memory, and its group commit.

Data that `commit` has returned for survives the process, however it ends. It is kept in
memory, too, so that a file that breaks while the node runs can be written anew when it can be
written again (R13). `RecordWriter` is the only actor that writes: what the registry takes in
during one commit is the next one, so all waiting requests share the cost of a commit.
"""

import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import orjson
import trio
from typing_extensions import override

from actors.kit.database import DatabaseFile, DatabaseForm
from actors.node.errors import RegistryFileError
from fsm.machines.registration import State
from fsm.registry.records import Change, Row

_VERSION: Final = 1

_SCHEMA: Final = """
    CREATE TABLE IF NOT EXISTS record (
        url     TEXT PRIMARY KEY,
        runtime TEXT NOT NULL,
        status  TEXT NOT NULL,
        touched REAL NOT NULL,
        value   BLOB NOT NULL,
        number  INTEGER NOT NULL
    ) WITHOUT ROWID
"""
_KEEP: Final = "INSERT OR REPLACE INTO record VALUES (?, ?, ?, ?, ?, ?)"
_CLEAR: Final = "DELETE FROM record"
_FORGET: Final = "DELETE FROM record WHERE url = ?"
FORM: Final = DatabaseForm(frozenset({"record"}), _VERSION)
"""The form of the file."""

_ALL: Final = "SELECT url, runtime, status, touched, value, number FROM record ORDER BY url"


class RecordFile(ABC):
    """Keeps rows beyond the life of an actor."""

    @abstractmethod
    def load(self) -> list[Row]:
        """Return every row that was kept.

        Raises:
            RegistryFileError: The file cannot be read, or is none of ours.
        """

    @abstractmethod
    async def commit(self, changes: Sequence[Change]) -> None:
        """Make changes durable, all or none, in order.

        If cancelled before the write begins, nothing is written; a write that has begun ends.

        Raises:
            RegistryFileError: It cannot be written.
        """

    @abstractmethod
    async def recover(self) -> None:
        """Open the place again and write there all that `commit` ever returned for.

        If cancelled before the write begins, nothing is written; a write that has begun ends.

        Raises:
            RegistryFileError: It still cannot be written.
        """

    @abstractmethod
    def close(self) -> None:
        """Close the file."""


class MemoryRecords(RecordFile):
    """Keeps rows as long as the process lives."""

    def __init__(self) -> None:
        self._rows: dict[str, Row] = {}

    @override
    def load(self) -> list[Row]:
        return list(self._rows.values())

    @override
    async def commit(self, changes: Sequence[Change]) -> None:
        _follow(self._rows, changes)
        await trio.lowlevel.checkpoint()

    @override
    async def recover(self) -> None:
        await trio.lowlevel.checkpoint()

    @override
    def close(self) -> None:
        """Rows live as long as this object."""


class SqliteRecords(RecordFile):
    """Keeps rows in a SQLite file, which no other process may keep rows in meanwhile."""

    def __init__(self, path: Path) -> None:
        self.path: Final = path
        self._file = DatabaseFile(path, FORM)
        self._rows: dict[str, Row] | None = None

    @override
    def load(self) -> list[Row]:
        """Return every row that was kept; from the file the first time, then from memory."""
        if self._rows is None:
            self._rows = {row.url: row for row in self._read()}
        return list(self._rows.values())

    def _read(self) -> list[Row]:
        try:
            self._file.lock()
            connection = self._file.connection()
            with connection:
                _prepare(connection)
            return [_row(*columns) for columns in connection.execute(_ALL)]
        except (sqlite3.Error, OSError, ValueError, TypeError) as exc:
            raise RegistryFileError(self.path, str(exc)) from exc

    @override
    async def commit(self, changes: Sequence[Change]) -> None:
        if changes:
            await trio.to_thread.run_sync(self._write, tuple(changes))
            _follow({} if self._rows is None else self._rows, changes)

    @override
    async def recover(self) -> None:
        await trio.to_thread.run_sync(self._rewrite, tuple(self.load()))

    @override
    def close(self) -> None:
        self._file.close()

    def _write(self, changes: Sequence[Change]) -> None:
        try:
            connection = self._file.connection()
            self._file.check_place()
            with connection:
                for url, row in changes:
                    if row is None:
                        connection.execute(_FORGET, (url,))
                    else:
                        connection.execute(_KEEP, _columns(row))
        except (sqlite3.Error, OSError) as exc:
            raise RegistryFileError(self.path, str(exc)) from exc

    def _rewrite(self, rows: Sequence[Row]) -> None:
        try:
            # A defect of the old connection does not affect a new one.
            self._file.disconnect()
            connection = self._file.connection()
            with connection:
                _prepare(connection)
                connection.execute(_CLEAR)
                connection.executemany(_KEEP, map(_columns, rows))
        except (sqlite3.Error, OSError) as exc:
            raise RegistryFileError(self.path, str(exc)) from exc


def _prepare(connection: sqlite3.Connection) -> None:
    # The version first: tables without one would be another program's.
    connection.execute(f"PRAGMA user_version = {_VERSION}")
    connection.execute(_SCHEMA)


def _follow(rows: dict[str, Row], changes: Sequence[Change]) -> None:
    """Note in memory what has become durable."""
    for url, row in changes:
        if row is None:
            rows.pop(url, None)
        else:
            rows[url] = row


def _columns(row: Row) -> tuple[str, str, str, float, bytes, int]:
    return row.url, row.runtime, row.status.value, row.touched, row.text, row.number


def _row(url: str, runtime: str, status: str, touched: float, value: bytes, number: int) -> Row:
    return Row(url, runtime, State(status), touched, orjson.loads(value), number)
