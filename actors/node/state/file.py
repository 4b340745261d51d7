"""The state file of a node: its sessions, in a SQLite file that outlives the process.

The used login tokens are in the same file (`actors.node.login.used_tokens`). No token is in it:
of a session's token there is a hash. One node at a time uses a file. Data that `write` has
returned for survives the process, however it ends; a power failure may lose the last moments.
"""

import math
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Final, TypeAlias, assert_never, final

import attrs
import orjson

from actors.kit.database import DatabaseForm, FileLock, open_database
from actors.node.errors import StateFileError
from actors.node.login.used_tokens import USED_TABLES
from fsm.session.node_session_io import KeptSession
from specs.identity import Identity
from specs.jsonvalue import Json

__all__ = ["FORM", "Change", "SessionForgotten", "SessionRow", "StateFile"]

_VERSION: Final = 1

_SCHEMA: Final = """
    CREATE TABLE IF NOT EXISTS session (
        runtime  TEXT PRIMARY KEY,
        stub     TEXT NOT NULL,
        digest   BLOB NOT NULL,
        previous BLOB NOT NULL,
        taken_up INTEGER NOT NULL,
        identity BLOB
    ) WITHOUT ROWID
"""
FORM: Final = DatabaseForm(frozenset({"session", *USED_TABLES}), _VERSION)
"""The form of the file."""

_KEEP: Final = "INSERT OR REPLACE INTO session VALUES (?, ?, ?, ?, ?, ?)"
_FORGET: Final = "DELETE FROM session WHERE runtime = ?"
_ALL: Final = (
    "SELECT runtime, stub, digest, previous, taken_up, identity FROM session ORDER BY runtime"
)


@final
@attrs.frozen
class SessionRow:
    """A session as it is stored.

    Attributes:
        stub: Address of the stub that had its last link.
        session: Its hashes; the credentials follow from the identity.
        identity: The identity of the login that opened it; None: nobody logged in.
    """

    stub: str
    session: KeptSession
    identity: Identity | None = None

    @property
    def runtime(self) -> str:
        """Whose session it is."""
        return self.session.runtime


@final
@attrs.frozen
class SessionForgotten:
    """A session is over."""

    runtime: str


Change: TypeAlias = SessionRow | SessionForgotten


@final
class StateFile:
    """A SQLite file that no other process uses meanwhile; made if it is not there."""

    def __init__(self, path: Path) -> None:
        self.path: Final = path
        self._lock = FileLock(path)
        self._connection: sqlite3.Connection | None = None

    def load(self) -> list[SessionRow]:
        """Open the file, and return the stored sessions; blocks.

        Raises:
            StateFileError: It cannot be used, or is none of ours.
        """
        try:
            self._lock.take()
            connection = self._open()
            with connection:
                # The version first: tables without one would be another program's.
                connection.execute(f"PRAGMA user_version = {_VERSION}")
                connection.execute(_SCHEMA)
            return [_row(columns) for columns in connection.execute(_ALL)]
        except (sqlite3.Error, OSError, ValueError, TypeError, KeyError) as exc:
            raise StateFileError(self.path, str(exc)) from exc

    def write(self, changes: Iterable[Change]) -> None:
        """Make changes durable, all or none, in order; blocks.

        Raises:
            StateFileError: It cannot be written.
        """
        try:
            connection = self._open()
            with connection:
                for change in changes:
                    match change:
                        case SessionRow():
                            connection.execute(_KEEP, _columns(change))
                        case SessionForgotten(runtime):
                            connection.execute(_FORGET, (runtime,))
                        case _:
                            assert_never(change)
        except (sqlite3.Error, OSError) as exc:
            # Whatever is wrong with this connection may not be wrong with the next one.
            self._disconnect()
            raise StateFileError(self.path, str(exc)) from exc

    def close(self) -> None:
        """Close the file. Idempotent."""
        self._disconnect()
        self._lock.release()

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _open(self) -> sqlite3.Connection:
        """Return the connection; one thread at a time uses it."""
        if self._connection is None:
            self._connection = open_database(self.path, FORM)
        return self._connection


def _columns(row: SessionRow) -> tuple[str, str, bytes, bytes, bool, bytes | None]:
    session = row.session
    identity = None if row.identity is None else orjson.dumps(_written(row.identity))
    return row.runtime, row.stub, session.digest, session.previous, session.is_taken_up, identity


def _row(columns: tuple[str, str, bytes, bytes, int, bytes | None]) -> SessionRow:
    runtime, stub, digest, previous, taken_up, identity = columns
    kept = KeptSession(runtime, digest, previous, bool(taken_up))
    return SessionRow(stub, kept, None if identity is None else _identity(orjson.loads(identity)))


def _written(identity: Identity) -> dict[str, Json]:
    return {
        "user": identity.user,
        "issuer": identity.issuer,
        "until": identity.until if math.isfinite(identity.until) else None,
        "roles": [*sorted(identity.roles)],
        "runtime": identity.runtime,
    }


def _identity(value: dict[str, Json]) -> Identity:
    user, issuer, until = value["user"], value["issuer"], value["until"]
    roles, runtime = value["roles"], value["runtime"]
    match user, issuer, until, roles, runtime:
        case str(), str(), float() | int() | None, list(), str() | None:
            return Identity(
                user=user,
                issuer=issuer,
                until=math.inf if until is None else float(until),
                roles=frozenset(role for role in roles if isinstance(role, str)),
                runtime=runtime,
            )
        case _:
            raise ValueError("an identity is not what it should be")  # caught by `load`
