"""How a node opens a SQLite file of its own.

The file is in WAL mode with `synchronous=NORMAL`: what is committed survives the process,
however it ends; a failure of power may lose the last moments.
"""

import sqlite3
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Final

__all__ = ["open_database"]

_BUSY_TIMEOUT: Final = 1.0
"""Seconds a write waits for whoever else has the file open, such as a backup (ours);
below LOGIN_TIMEOUT."""

_TABLES: Final = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT GLOB 'sqlite_*'"


def open_database(path: Path, tables: AbstractSet[str], version: int) -> sqlite3.Connection:
    """Open a file, or make it; any thread may use the connection, one at a time.

    Args:
        path: The file.
        tables: What we keep in it.
        version: Of the form in which we keep it; written by the caller.

    Raises:
        sqlite3.Error: It cannot be opened, or is none of ours: then nothing in it was changed.
    """
    connection = sqlite3.connect(path, timeout=_BUSY_TIMEOUT, check_same_thread=False)
    try:
        _check_owner(connection, tables, version)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _check_owner(connection: sqlite3.Connection, tables: AbstractSet[str], version: int) -> None:
    found = {str(name) for (name,) in connection.execute(_TABLES)}
    (written,) = connection.execute("PRAGMA user_version").fetchone()
    if (found and not written) or found - tables:
        raise sqlite3.DatabaseError("it is the database of another program")
    if written > version:
        raise sqlite3.DatabaseError("it was written by a newer version of the node")
