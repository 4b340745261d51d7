"""The SQLite file in which a runtime stores data objects, and its tables.

Data that `commit` has returned for survives the process and a failure of power. What is stored is
known in memory, too, so that a file that breaks while the runtime runs can be written anew.

The size of the file follows what is stored now: per object its value and about 200 bytes for
each observer and each allowed observer, per copy its value; what is deleted leaves it, and SQLite
uses its pages again. The log beside it stays below a few MB.
"""

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final, final

import attrs
import orjson
import trio

from actors.kit.database import DatabaseFile, DatabaseForm, Durability
from fsm.sync import stored
from specs.bodies.object import DataObject
from specs.errors import PlaceError, ProtoflyError
from transports.bodies import read_object, write_body

VERSION: Final = 2
"""Version of the format of the file; version 1 had no leases."""

_SCHEMA: Final = """
    CREATE TABLE IF NOT EXISTS object (
        url TEXT PRIMARY KEY, is_public INTEGER NOT NULL, value BLOB NOT NULL
    ) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS observer (
        url TEXT NOT NULL, observer TEXT NOT NULL, manager TEXT NOT NULL, lease INTEGER,
        PRIMARY KEY (url, observer)
    ) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS guest (
        url TEXT NOT NULL, guest TEXT NOT NULL, may INTEGER NOT NULL,
        PRIMARY KEY (url, guest)
    ) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS child (url TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS copy (
        url TEXT NOT NULL, observer TEXT NOT NULL, version INTEGER NOT NULL, value BLOB NOT NULL,
        PRIMARY KEY (url, observer)
    ) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS home (url TEXT PRIMARY KEY, descriptor TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS session (domain TEXT PRIMARY KEY, token TEXT NOT NULL) WITHOUT ROWID;
"""
_TABLE_OF: Final[dict[type[stored.Row], str]] = {
    stored.ObjectKept: "object",
    stored.ObserverKept: "observer",
    stored.GuestKept: "guest",
    stored.ChildrenKept: "child",
    stored.CopyKept: "copy",
    stored.HomeKept: "home",
    stored.SessionKept: "session",
}

TABLES: Final = frozenset(_TABLE_OF.values())


def prepare(connection: sqlite3.Connection) -> None:
    """Create the tables in an open transaction, and convert those of an older version."""
    # The version first: tables without a version would count as another program's.
    connection.execute(f"PRAGMA user_version = {VERSION}")
    for statement in _SCHEMA.split(";"):
        connection.execute(statement)
    columns = {name for _, name, *_ in connection.execute("PRAGMA table_info(observer)")}
    if "lease" not in columns:
        connection.execute("ALTER TABLE observer ADD COLUMN lease INTEGER")


def clear(connection: sqlite3.Connection) -> None:
    """Empty the tables."""
    for table in sorted(TABLES):
        connection.execute(f"DELETE FROM {table}")  # noqa: S608 - one of ours


def write(connection: sqlite3.Connection, changes: Iterable[stored.Keep]) -> None:
    """Write changes, in order.

    Args:
        connection: Open database.
        changes: Changes to store.
    """
    for change in changes:
        if isinstance(change, stored.Forgotten):
            about = stored.ABOUT_OBJECT if change.kind is stored.ObjectKept else ()
            for kind in (change.kind, *about):
                # The rows about an object have its address where the object has its own.
                places = " AND ".join(f"{name} = ?" for name in _columns_of(kind, len(change.key)))
                connection.execute(f"DELETE FROM {_TABLE_OF[kind]} WHERE {places}", change.key)  # noqa: S608 - one of ours
        else:
            columns = ", ".join(_columns_of(type(change)))
            values = [_encode(each) for each in attrs.astuple(change, recurse=False)]
            places = ", ".join(f"?{number + 1}" for number in range(len(values)))
            is_about = isinstance(change, stored.ABOUT_OBJECT)
            condition = "WHERE EXISTS (SELECT 1 FROM object WHERE url = ?1)" if is_about else ""
            into = f"{_TABLE_OF[type(change)]} ({columns})"
            connection.execute(f"INSERT OR REPLACE INTO {into} SELECT {places} {condition}", values)


def _columns_of(kind: type[stored.Row], count: int | None = None) -> tuple[str, ...]:
    return tuple(each.name for each in attrs.fields(kind)[:count])


def _encode(value: object) -> object:
    """Return the column value of a field; JSON becomes bytes."""
    if isinstance(value, DataObject):
        value = write_body(value)
    return orjson.dumps(value) if isinstance(value, dict) else value


# --- reading ------------------------------------------------------------------------------


def read(connection: sqlite3.Connection) -> stored.Rest:
    """Return all that is stored.

    Raises:
        sqlite3.Error: The tables have another form.
        ValueError: A row is invalid, as with the next two.
        TypeError: As ValueError.
        ProtoflyError: As ValueError.
    """
    rest = stored.Rest()
    for kind, table in _TABLE_OF.items():
        make: Callable[..., stored.Row] = kind  # type: ignore[explicit-any] # each has its columns
        columns = ", ".join(_columns_of(kind))
        sql = f"SELECT {columns} FROM {table} ORDER BY 1, {stored.KEYS[kind]}"  # noqa: S608 - one of ours
        for row in connection.execute(sql):
            rest.follow([make(*(_decode(kind, column) for column in row))])
    return rest


def _decode(kind: type[stored.Row], column: object) -> object:
    if not isinstance(column, bytes):
        return column
    value = orjson.loads(column)
    return read_object(value, DataObject, "object") if kind is stored.ObjectKept else value


@final
class StoreFileError(PlaceError, public=True):
    """The file in which a runtime stores data objects cannot be used."""

    summary = "cannot use the store {}"


FORM: Final = DatabaseForm(TABLES, VERSION, "runtime", Durability.POWER)
"""Format of the store file: tables, version and owner."""


class ObjectFile:
    """The file of stored objects, locked against other processes.

    Args:
        path: Path of the file; a missing file is made, for its owner only.
    """

    def __init__(self, path: Path) -> None:
        self.path: Final = path
        self.rest: Final = stored.Rest()
        self._file = DatabaseFile(path, FORM)

    def load(self) -> stored.Rest:
        """Open the file, and return what is stored; blocks.

        Raises:
            StoreFileError: The file cannot be read, has another form, or another process uses it.
        """
        try:
            self._file.lock()
            connection = self._file.connection()
            with connection:
                prepare(connection)
            rest = read(connection)
        except (sqlite3.Error, OSError, ValueError, TypeError, ProtoflyError) as exc:
            self.close()
            raise StoreFileError(self.path, str(exc)) from exc
        self.rest.follow(rest)
        return rest

    async def commit(self, changes: Sequence[stored.Keep]) -> None:
        """Make changes durable, all or none, in order.

        If cancelled before the write begins, nothing is written; a write that has begun ends.

        Raises:
            StoreFileError: The file cannot be written.
        """
        if changes:
            await trio.to_thread.run_sync(self._write, tuple(changes))
            self.rest.follow(changes)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _write(self, changes: Sequence[stored.Keep]) -> None:
        try:
            is_new = not self._file.is_open
            connection = self._file.connection()
            self._file.check_place()
            with connection:
                if is_new:
                    self._write_anew(connection)
                write(connection, changes)
        except (sqlite3.Error, OSError) as exc:
            self._file.disconnect()
            raise StoreFileError(self.path, str(exc)) from exc

    def _write_anew(self, connection: sqlite3.Connection) -> None:
        prepare(connection)
        clear(connection)
        write(connection, self.rest)
