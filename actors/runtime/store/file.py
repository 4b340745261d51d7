"""The SQLite file in which a runtime stores data objects, and its tables.

Data that `commit` has returned for survives the process and a failure of power. What is stored is
known in memory, too, so that a file that breaks while the runtime runs can be written anew.

The size of the file follows what is stored now: per object its value and about 200 bytes for
each observer and each allowed observer, per copy its value; what is deleted leaves it, and SQLite
uses its pages again. The log beside it stays below a few MB.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, TypeAlias, final

import orjson
import trio

from actors.kit.database import DatabaseFile, DatabaseForm, Durability
from fsm.sync import stored
from specs.bodies.object import DataObject
from specs.errors import PlaceError, ProtoflyError
from transports.bodies import read_object, write_body

VERSION: Final = 2
"""Version of the form of the file; 1 had no leases."""

TABLES: Final = frozenset({"object", "observer", "guest", "child", "copy", "home", "session"})

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
_OF_OBJECT: Final = ("object", "observer", "guest", "child")

_Column: TypeAlias = str | int | bytes | None
_Statement: TypeAlias = tuple[str, tuple[_Column, ...]]


def prepare(connection: sqlite3.Connection) -> None:
    """Make the tables, in an open transaction; those of an older form become ours."""
    # The version first: tables without one would be another program's.
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
        for sql, columns in _statements(change):
            connection.execute(sql, columns)


def _statements(change: stored.Keep) -> Iterator[_Statement]:
    match change:
        case stored.ObjectKept(snapshot, is_public):
            shown = orjson.dumps(write_body(snapshot))
            whole_object = (snapshot.url, int(is_public), shown)
            yield "INSERT OR REPLACE INTO object VALUES (?, ?, ?)", whole_object
        case stored.ObjectForgotten(url):
            for table in _OF_OBJECT:
                yield f"DELETE FROM {table} WHERE url = ?", (url,)  # noqa: S608 - one of ours
        case (
            stored.ObserverKept()
            | stored.ObserverForgotten()
            | stored.AllowedKept()
            | stored.ChildrenKept()
        ):
            yield _around(change)
        case stored.CopyKept(url, observer, version, data):
            columns = url, observer, version, orjson.dumps(data)
            yield "INSERT OR REPLACE INTO copy VALUES (?, ?, ?, ?)", columns
        case stored.CopyForgotten(url, observer):
            yield "DELETE FROM copy WHERE url = ? AND observer = ?", (url, observer)
        case _:
            yield _of_runtime(change)


def _around(
    change: stored.ObserverKept
    | stored.ObserverForgotten
    | stored.AllowedKept
    | stored.ChildrenKept,
) -> _Statement:
    # A row of an object that is not stored is none of ours to keep.
    there = "WHERE EXISTS (SELECT 1 FROM object WHERE url = ?1)"
    match change:
        case stored.ObserverKept(url, observer, manager, lease):
            values = (url, observer, manager, lease)
            return f"INSERT OR REPLACE INTO observer SELECT ?1, ?2, ?3, ?4 {there}", values
        case stored.ObserverForgotten(url, observer):
            return "DELETE FROM observer WHERE url = ? AND observer = ?", (url, observer)
        case stored.AllowedKept(url, guest, None):
            return "DELETE FROM guest WHERE url = ? AND guest = ?", (url, guest)
        case stored.AllowedKept(url, guest, may):
            said = (url, guest, int(bool(may)))
            return f"INSERT OR REPLACE INTO guest SELECT ?1, ?2, ?3 {there}", said
        case stored.ChildrenKept(url, None):
            return "DELETE FROM child WHERE url = ?", (url,)
        case stored.ChildrenKept(url, children):
            row = (url, orjson.dumps(children))
            return f"INSERT OR REPLACE INTO child SELECT ?1, ?2 {there}", row


def _of_runtime(change: stored.HomeKept | stored.HomeForgotten | stored.SessionKept) -> _Statement:
    match change:
        case stored.HomeKept(url, descriptor):
            return "INSERT OR REPLACE INTO home VALUES (?, ?)", (url, descriptor)
        case stored.HomeForgotten(url):
            return "DELETE FROM home WHERE url = ?", (url,)
        case stored.SessionKept(domain, token):
            return "INSERT OR REPLACE INTO session VALUES (?, ?)", (domain, token)


# --- reading ------------------------------------------------------------------------------


def read(connection: sqlite3.Connection) -> stored.Rest:
    """Return all that is stored.

    Raises:
        sqlite3.Error: The tables are not what they should be.
        ValueError: A row is not.
        TypeError: The same.
        ProtoflyError: The same.
    """
    rest = stored.Rest()
    rest.follow(_kept(connection))
    return rest


def _kept(connection: sqlite3.Connection) -> Iterator[stored.Keep]:
    for is_public, value in connection.execute("SELECT is_public, value FROM object ORDER BY url"):
        snapshot = read_object(orjson.loads(value), DataObject, "object")
        yield stored.ObjectKept(snapshot, bool(is_public))
    for row in connection.execute("SELECT url, observer, manager, lease FROM observer"):
        yield stored.ObserverKept(*row)
    for url, guest, may in connection.execute("SELECT url, guest, may FROM guest"):
        yield stored.AllowedKept(url, guest, bool(may))
    for url, value in connection.execute("SELECT url, value FROM child"):
        yield stored.ChildrenKept(url, orjson.loads(value))
    for url, observer, version, value in connection.execute("SELECT * FROM copy"):
        yield stored.CopyKept(url, observer, version, orjson.loads(value))
    for row in connection.execute("SELECT url, descriptor FROM home"):
        yield stored.HomeKept(*row)
    for row in connection.execute("SELECT domain, token FROM session"):
        yield stored.SessionKept(*row)


def whole(rest: stored.Rest) -> Iterator[stored.Keep]:
    """Return all of it as changes of a file in which there is nothing."""
    for url, there in rest.objects.items():
        yield stored.ObjectKept(there.snapshot, there.is_public)
        for one in there.observers.values():
            yield stored.ObserverKept(url, one.observer, one.manager, one.lease)
        for guest, may in there.guests.items():
            yield stored.AllowedKept(url, guest, may)
        if there.children is not None:
            yield stored.ChildrenKept(url, there.children)
    yield from rest.copies.values()
    for url, descriptor in rest.homes.items():
        yield stored.HomeKept(url, descriptor)
    for domain, token in rest.sessions.items():
        yield stored.SessionKept(domain, token)


@final
class StoreFileError(PlaceError, public=True):
    """The file in which a runtime stores data objects cannot be used."""

    summary = "cannot use the store {}"


FORM: Final = DatabaseForm(TABLES, VERSION, "runtime", Durability.POWER)
"""The form of the file."""


class ObjectFile:
    """A file that no other process may store objects in meanwhile.

    Args:
        path: Where it is; made, for its owner only, if it is not there.
    """

    def __init__(self, path: Path) -> None:
        self.path: Final = path
        self.rest: Final = stored.Rest()
        self._file = DatabaseFile(path, FORM)

    def load(self) -> stored.Rest:
        """Open the file, and return what is stored; blocks.

        Raises:
            StoreFileError: It cannot be read, or is none of ours, or another process has it.
        """
        try:
            self._file.lock()
            connection = self._file.connection()
            with connection:
                prepare(connection)
            found = read(connection)
        except (sqlite3.Error, OSError, ValueError, TypeError, ProtoflyError) as exc:
            self.close()
            raise StoreFileError(self.path, str(exc)) from exc
        self.rest.follow(whole(found))
        return found

    async def commit(self, changes: Sequence[stored.Keep]) -> None:
        """Make changes durable, all or none, in order.

        If cancelled before the write begins, nothing is written; a write that has begun ends.

        Raises:
            StoreFileError: It cannot be written.
        """
        if changes:
            await trio.to_thread.run_sync(self._write, tuple(changes))
            self.rest.follow(changes)

    def close(self) -> None:
        """Let go of the file."""
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
        write(connection, whole(self.rest))
