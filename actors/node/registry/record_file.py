"""The storage of the domain registry: a SQLite file, or memory only, with group commits.

Data for which `commit` has returned survives the process, however it ends. It is kept in memory,
too, so that a file that fails while the node runs can be written again when that is possible (R13).
All requests that the registry receives during one commit share the next commit.
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
    """Store records beyond the life of an actor."""

    @abstractmethod
    def load(self) -> list[Row]:
        """Return all stored records.

        Raises:
            RegistryFileError: The file cannot be read, or has another form.
        """

    @abstractmethod
    async def commit(self, changes: Sequence[Change]) -> None:
        """Make changes durable, all or none, in order.

        If cancelled before the write begins, nothing is written; a write that has begun ends.

        Raises:
            RegistryFileError: The store cannot be written.
        """

    @abstractmethod
    async def recover(self) -> None:
        """Open the store again, and write all records for which `commit` ever returned.

        If cancelled before the write begins, nothing is written; a write that has begun ends.

        Raises:
            RegistryFileError: The store still cannot be written.
        """

    @abstractmethod
    def close(self) -> None:
        """Close the store."""


class MemoryRecords(RecordFile):
    """Keep records as long as the process lives."""

    def __init__(self) -> None:
        self._rows: dict[str, Row] = {}

    @override
    def load(self) -> list[Row]:
        return list(self._rows.values())

    @override
    async def commit(self, changes: Sequence[Change]) -> None:
        _apply_changes(self._rows, changes)
        await trio.lowlevel.checkpoint()

    @override
    async def recover(self) -> None:
        await trio.lowlevel.checkpoint()

    @override
    def close(self) -> None:
        """Do nothing: the records live as long as this object."""


class SqliteRecords(RecordFile):
    """Store records in a SQLite file, which no other process may use meanwhile."""

    def __init__(self, path: Path) -> None:
        self.path: Final = path
        self._file = DatabaseFile(path, FORM)
        self._rows: dict[str, Row] | None = None

    @override
    def load(self) -> list[Row]:
        """Return all stored records; from the file the first time, then from memory."""
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
            _apply_changes({} if self._rows is None else self._rows, changes)

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
            # The failure may be one of the old connection only.
            self._file.disconnect()
            connection = self._file.connection()
            with connection:
                _prepare(connection)
                connection.execute(_CLEAR)
                connection.executemany(_KEEP, map(_columns, rows))
        except (sqlite3.Error, OSError) as exc:
            raise RegistryFileError(self.path, str(exc)) from exc


def _prepare(connection: sqlite3.Connection) -> None:
    # Write the version first: tables without a version count as of another program.
    connection.execute(f"PRAGMA user_version = {_VERSION}")
    connection.execute(_SCHEMA)


def _apply_changes(rows: dict[str, Row], changes: Sequence[Change]) -> None:
    """Apply committed changes to the records in memory."""
    for url, row in changes:
        if row is None:
            rows.pop(url, None)
        else:
            rows[url] = row


def _columns(row: Row) -> tuple[str, str, str, float, bytes, int]:
    return row.url, row.runtime, row.status.value, row.touched, row.text, row.number


def _row(url: str, runtime: str, status: str, touched: float, value: bytes, number: int) -> Row:
    return Row(url, runtime, State(status), touched, orjson.loads(value), number)
