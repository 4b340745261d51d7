"""The tables in which data objects are stored, and how changes are written to them."""

import sqlite3
from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

import orjson

from fsm.sync.stored import (
    AllowedKept,
    ChildrenKept,
    CopyForgotten,
    CopyKept,
    HomeForgotten,
    HomeKept,
    Keep,
    ObjectForgotten,
    ObjectKept,
    ObserverForgotten,
    ObserverKept,
    Rest,
    SessionKept,
)
from specs.bodies.sync import DataObject
from transports.bodies import read_object, write_body

__all__ = ["TABLES", "VERSION", "clear", "prepare", "read", "whole", "write"]

VERSION: Final = 2
"""Of the form in which all this is kept; 1 knew no leases."""

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


def write(connection: sqlite3.Connection, changes: Iterable[Keep]) -> None:
    """Write changes, in order."""
    for change in changes:
        for sql, columns in _statements(change):
            connection.execute(sql, columns)


def _statements(change: Keep) -> Iterator[_Statement]:
    match change:
        case ObjectKept(snapshot, is_public):
            shown = orjson.dumps(write_body(snapshot))
            whole_object = (snapshot.url, int(is_public), shown)
            yield "INSERT OR REPLACE INTO object VALUES (?, ?, ?)", whole_object
        case ObjectForgotten(url):
            for table in _OF_OBJECT:
                yield f"DELETE FROM {table} WHERE url = ?", (url,)  # noqa: S608 - one of ours
        case ObserverKept() | ObserverForgotten() | AllowedKept() | ChildrenKept():
            yield _around(change)
        case CopyKept(url, observer, version, data):
            columns = url, observer, version, orjson.dumps(data)
            yield "INSERT OR REPLACE INTO copy VALUES (?, ?, ?, ?)", columns
        case CopyForgotten(url, observer):
            yield "DELETE FROM copy WHERE url = ? AND observer = ?", (url, observer)
        case _:
            yield _of_runtime(change)


def _around(change: ObserverKept | ObserverForgotten | AllowedKept | ChildrenKept) -> _Statement:
    # A row of an object that is not stored is none of ours to keep.
    there = "WHERE EXISTS (SELECT 1 FROM object WHERE url = ?1)"
    match change:
        case ObserverKept(url, observer, manager, lease):
            values = (url, observer, manager, lease)
            return f"INSERT OR REPLACE INTO observer SELECT ?1, ?2, ?3, ?4 {there}", values
        case ObserverForgotten(url, observer):
            return "DELETE FROM observer WHERE url = ? AND observer = ?", (url, observer)
        case AllowedKept(url, guest, None):
            return "DELETE FROM guest WHERE url = ? AND guest = ?", (url, guest)
        case AllowedKept(url, guest, may):
            said = (url, guest, int(bool(may)))
            return f"INSERT OR REPLACE INTO guest SELECT ?1, ?2, ?3 {there}", said
        case ChildrenKept(url, None):
            return "DELETE FROM child WHERE url = ?", (url,)
        case ChildrenKept(url, children):
            told = (url, orjson.dumps(children))
            return f"INSERT OR REPLACE INTO child SELECT ?1, ?2 {there}", told


def _of_runtime(change: HomeKept | HomeForgotten | SessionKept) -> _Statement:
    match change:
        case HomeKept(url, descriptor):
            return "INSERT OR REPLACE INTO home VALUES (?, ?)", (url, descriptor)
        case HomeForgotten(url):
            return "DELETE FROM home WHERE url = ?", (url,)
        case SessionKept(domain, token):
            return "INSERT OR REPLACE INTO session VALUES (?, ?)", (domain, token)


# --- reading ------------------------------------------------------------------------------


def read(connection: sqlite3.Connection) -> Rest:
    """Return all that is stored.

    Raises:
        sqlite3.Error: The tables are not what they should be.
        ValueError: A row is not.
        TypeError: The same.
        ProtoflyError: The same.
    """
    rest = Rest()
    rest.follow(_kept(connection))
    return rest


def _kept(connection: sqlite3.Connection) -> Iterator[Keep]:
    for is_public, value in connection.execute("SELECT is_public, value FROM object ORDER BY url"):
        snapshot = read_object(orjson.loads(value), DataObject, "object")
        yield ObjectKept(snapshot, bool(is_public))
    for row in connection.execute("SELECT url, observer, manager, lease FROM observer"):
        yield ObserverKept(*row)
    for url, guest, may in connection.execute("SELECT url, guest, may FROM guest"):
        yield AllowedKept(url, guest, bool(may))
    for url, value in connection.execute("SELECT url, value FROM child"):
        yield ChildrenKept(url, orjson.loads(value))
    for url, observer, version, value in connection.execute("SELECT * FROM copy"):
        yield CopyKept(url, observer, version, orjson.loads(value))
    for row in connection.execute("SELECT url, descriptor FROM home"):
        yield HomeKept(*row)
    for row in connection.execute("SELECT domain, token FROM session"):
        yield SessionKept(*row)


def whole(rest: Rest) -> Iterator[Keep]:
    """Return all of it as changes of a file in which there is nothing."""
    for url, there in rest.objects.items():
        yield ObjectKept(there.snapshot, there.is_public)
        for one in there.observers.values():
            yield ObserverKept(url, one.observer, one.manager, one.lease)
        for guest, may in there.guests.items():
            yield AllowedKept(url, guest, may)
        if there.children is not None:
            yield ChildrenKept(url, there.children)
    yield from rest.copies.values()
    for url, descriptor in rest.homes.items():
        yield HomeKept(url, descriptor)
    for domain, token in rest.sessions.items():
        yield SessionKept(domain, token)
