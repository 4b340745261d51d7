"""The state file of a node: its sessions, and the names of runtimes that belong to users.

It is a SQLite file that outlives the process. The used login tokens are in the same file
(`actors.node.login.provider`). The file contains no token; for the token of a session it has a
hash. One node at a time uses a file. Data for which `write` has returned survives the process,
however it ends; a power failure may lose the last moments.
"""

import math
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Final, Never, Protocol, TypeAlias, assert_never

import attrs
import orjson
import trio
from typing_extensions import override

from actors.kit.counters import Counters, KeptFile, Tally, Timing
from actors.kit.database import DatabaseFile, DatabaseForm
from actors.kit.log import get_logger
from actors.kit.supervision.actor import Actor
from actors.node.errors import StateFileError
from actors.node.login.provider import USED_TABLES
from fsm.session.node_session_io import KeptSession
from fsm.session.runtime_names import NameForgotten, NameKept, Owner
from specs.identity import Identity
from specs.jsonvalue import Json
from specs.limits.node import STORE_RETRY

_VERSION: Final = 1

_SCHEMA: Final = """
    CREATE TABLE IF NOT EXISTS session (
        runtime   TEXT PRIMARY KEY,
        stub      TEXT NOT NULL,
        digest    BLOB NOT NULL,
        previous  BLOB NOT NULL,
        taken_up  INTEGER NOT NULL,
        identity  BLOB,
        key       TEXT,
        displaced BLOB
    ) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS name (
        runtime  TEXT PRIMARY KEY,
        issuer   TEXT NOT NULL,
        user     TEXT NOT NULL,
        left_at  REAL,
        released INTEGER NOT NULL
    ) WITHOUT ROWID;
"""
FORM: Final = DatabaseForm(frozenset({"session", "name", *USED_TABLES}), _VERSION)
"""The form of the file."""

_KEEP: Final = "INSERT OR REPLACE INTO session VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
_FORGET: Final = "DELETE FROM session WHERE runtime = ?"
_COLUMNS: Final = "runtime, stub, digest, previous, taken_up, identity, key, displaced"
_ALL: Final = f"SELECT {_COLUMNS} FROM session ORDER BY runtime"  # noqa: S608 - fixed names
_LATER: Final = {"key": "TEXT", "displaced": "BLOB"}
"""Columns that files of earlier versions lack."""
_KEEP_NAME: Final = "INSERT OR REPLACE INTO name VALUES (?, ?, ?, ?, ?)"
_FORGET_NAME: Final = "DELETE FROM name WHERE runtime = ?"
_NAMES: Final = "SELECT runtime, issuer, user, left_at, released FROM name ORDER BY runtime"


@attrs.frozen
class SessionRow:
    """A session as it is stored.

    Attributes:
        stub: Address of the stub that had the last link of the session.
        session: Hashes of the session; the credentials follow from the identity.
        identity: The identity of the login of the session, with the hash of its token; None: no
            login.
    """

    stub: str
    session: KeptSession
    identity: Identity | None = None

    @property
    def runtime(self) -> str:
        """Address of the runtime of the session."""
        return self.session.runtime


@attrs.frozen
class SessionForgotten:
    """The end of a session."""

    runtime: str


Change: TypeAlias = SessionRow | SessionForgotten | NameKept | NameForgotten


def key_of(change: Change) -> tuple[bool, str]:
    """Return the subject of a change: a later change of the same subject replaces it."""
    return isinstance(change, NameKept | NameForgotten), change.runtime


@attrs.frozen
class Stored:
    """The contents of the state file of an earlier process."""

    sessions: tuple[SessionRow, ...]
    names: tuple[NameKept, ...]


class StateFile:
    """A SQLite file that no other process uses meanwhile; made if it does not exist."""

    def __init__(self, path: Path) -> None:
        self.path: Final = path
        self._file = DatabaseFile(path, FORM)

    def load(self) -> Stored:
        """Open the file, and return its contents; block.

        Raises:
            StateFileError: The file cannot be used, or has another form.
        """
        try:
            self._file.lock()
            connection = self._file.connection()
            with connection:
                columns = {each[1] for each in connection.execute("PRAGMA table_info(session)")}
                for name, kind in _LATER.items() if columns else ():
                    if name not in columns:
                        connection.execute(f"ALTER TABLE session ADD COLUMN {name} {kind}")
                # Write the version first: tables without a version count as of another program.
                connection.execute(f"PRAGMA user_version = {_VERSION}")
                connection.executescript(_SCHEMA)
            return Stored(
                tuple(_row(columns) for columns in connection.execute(_ALL)),
                tuple(_name(columns) for columns in connection.execute(_NAMES)),
            )
        except (sqlite3.Error, OSError, ValueError, TypeError, KeyError) as exc:
            raise StateFileError(self.path, str(exc)) from exc

    def write(self, changes: Iterable[Change]) -> None:
        """Make changes durable, all or none, in order; block.

        Raises:
            StateFileError: The file cannot be written.
        """
        try:
            connection = self._file.connection()
            with connection:
                for change in changes:
                    match change:
                        case SessionRow():
                            connection.execute(_KEEP, _columns(change))
                        case SessionForgotten(runtime):
                            connection.execute(_FORGET, (runtime,))
                        case NameKept():
                            connection.execute(_KEEP_NAME, _name_columns(change))
                        case NameForgotten(runtime):
                            connection.execute(_FORGET_NAME, (runtime,))
                        case _:
                            assert_never(change)
        except (sqlite3.Error, OSError) as exc:
            # The failure may be one of this connection only.
            self._file.disconnect()
            raise StateFileError(self.path, str(exc)) from exc

    def close(self) -> None:
        """Close the file. Idempotent."""
        self._file.close()


_Columns: TypeAlias = tuple[str, str, bytes, bytes, int, bytes | None, str | None, bytes | None]


def _columns(row: SessionRow) -> _Columns:
    kept = row.session
    identity = None if row.identity is None else orjson.dumps(_encode_identity(row.identity))
    displaced = b"".join(kept.displaced)
    head = row.runtime, row.stub, kept.digest, kept.previous
    return (*head, kept.is_taken_up, identity, kept.key, displaced)


def _row(columns: _Columns) -> SessionRow:
    runtime, stub, digest, previous, taken_up, identity, key, joined = columns
    joined, size = joined or b"", len(digest)
    displaced = tuple(joined[at : at + size] for at in range(0, len(joined), size))
    kept = KeptSession(runtime, digest, previous, bool(taken_up), key=key, displaced=displaced)
    return SessionRow(stub, kept, None if identity is None else _identity(orjson.loads(identity)))


def _name_columns(name: NameKept) -> tuple[str, str, str, float | None, bool]:
    left = name.left if math.isfinite(name.left) else None
    return name.runtime, name.owner.issuer, name.owner.user, left, name.is_released


def _name(columns: tuple[str, str, str, float | None, int]) -> NameKept:
    runtime, issuer, user, left, released = columns
    return NameKept(
        runtime, Owner(issuer, user), math.inf if left is None else left, bool(released)
    )


def _encode_identity(identity: Identity) -> dict[str, Json]:
    return {
        "user": identity.user,
        "issuer": identity.issuer,
        "until": identity.until if math.isfinite(identity.until) else None,
        "roles": [*sorted(identity.roles)],
        "runtime": identity.runtime,
        "login": identity.login,
        "addresses": [*sorted(identity.addresses)],
    }


def _identity(value: dict[str, Json]) -> Identity:
    user, issuer, until = value["user"], value["issuer"], value["until"]
    roles, runtime, login = value["roles"], value["runtime"], value.get("login")
    match user, issuer, until, roles, runtime, login:
        case str(), str(), float() | int() | None, list(), str() | None, str() | None:
            return Identity(
                user=user,
                issuer=issuer,
                until=math.inf if until is None else float(until),
                roles=_texts(roles),
                runtime=runtime,
                addresses=_texts(value.get("addresses")),
                login=login,
            )
        case _:
            raise ValueError("an identity is not what it should be")  # caught by `load`


def _texts(value: Json) -> frozenset[str]:
    listed = value if isinstance(value, list) else ()
    return frozenset(text for text in listed if isinstance(text, str))


# The writer of the state file: changes during one commit share the next commit.

_log = get_logger("actors.node")


class HeldLink(Protocol):
    """A link whose answer waits for the disk."""

    def hold(self) -> None:
        """Suspend writing until `release`."""

    def release(self) -> None:
        """Write the waiting messages. Idempotent."""


class StateWriter(Actor[Never]):
    """Write all changes since the last commit in one commit.

    At most one change waits for each session, and for each name: the last one. If the file cannot
    be written, the answers are sent all the same, and the changes are written later: sessions go
    on, and a restart before that loses the changes. Nobody can log in meanwhile, as the used tokens
    are in the same file.
    """

    def __init__(self, file: StateFile, counters: Counters) -> None:
        self._file: Final = file
        self._counters: Final = counters
        self._changes: dict[tuple[bool, str], Change] = {}
        self._links: list[HeldLink] = []
        self._retry_at = math.inf

    def note(self, change: Change, link: HeldLink | None = None) -> None:
        """Queue a change for the file.

        Args:
            change: The change.
            link: A link that is written to when the change is stored; None: none.
        """
        key = key_of(change)
        self._changes.pop(key, None)
        self._changes[key] = change
        if link is not None:
            link.hold()
            self._links.append(link)
        self.wake()

    @override
    async def handle(self, message: Never) -> None:
        """Do nothing: this actor receives no messages."""

    @override
    async def drained(self) -> None:
        links, self._links = self._links, []
        try:
            if math.isinf(self._retry_at):
                await self._write()
        finally:
            for link in links:
                link.release()

    @override
    def deadline(self) -> float:
        return self._retry_at

    @override
    async def timed_out(self) -> None:
        await self._write()

    @override
    async def stop(self) -> None:
        """Write the remaining changes."""
        await self._write()

    async def _write(self) -> None:
        if not self._changes:
            return
        begun = trio.current_time()
        changes = dict(self._changes)
        try:
            await trio.to_thread.run_sync(self._file.write, tuple(changes.values()))
        except StateFileError as exc:
            if math.isinf(self._retry_at):
                _log.error("state file cannot be written", path=str(exc.where), why=exc.reason)
            self._retry_at = trio.current_time() + STORE_RETRY
            self._counters.count(Tally.WRITES_FAILED, KeptFile.STATE)
            return
        if math.isfinite(self._retry_at):
            _log.warning("state file is written again")
        self._retry_at = math.inf
        noted = self._changes.items()
        self._changes = {key: each for key, each in noted if changes.get(key) is not each}
        self._counters.took(Timing.COMMIT, trio.current_time() - begun)
