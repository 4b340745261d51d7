"""The used login tokens of a node: a file that outlives it (S5).

Data that `keep` has returned for survives the process, however it ends. Several nodes may
share a file: a token opens one session at one of them.
"""

import math
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Final, final

import attrs
import trio
from typing_extensions import override

from actors.kit.database import DatabaseFile, DatabaseForm
from actors.node.login.errors import UsedTokensError
from fsm.session.assertion import SpentTokens, Use

_VERSION: Final = 1

_SWEEP: Final = 1024
"""Tokens that are written before those are removed that are over (ours; some 100 KB)."""

_SCHEMA: Final = """
    CREATE TABLE IF NOT EXISTS used (digest BLOB PRIMARY KEY, until REAL NOT NULL) WITHOUT ROWID;
    CREATE INDEX IF NOT EXISTS used_until ON used (until);
    CREATE TABLE IF NOT EXISTS forgotten (until REAL NOT NULL);
"""
USED_TABLES: Final = frozenset({"used", "forgotten"})
"""The tables of used tokens."""

_FORM: Final = DatabaseForm(USED_TABLES, _VERSION)
_FLOOR: Final = "SELECT max(until) FROM forgotten"
_KEEP: Final = "INSERT OR IGNORE INTO used VALUES (?, ?)"
_FORGET: Final = "DELETE FROM used WHERE until <= ?"
_NO_FLOOR: Final = "DELETE FROM forgotten WHERE until <= ?"
_SET_FLOOR: Final = "INSERT INTO forgotten VALUES (?)"


@final
@attrs.define(eq=False)
class _Pending:
    """A token that is to be written down.

    Attributes:
        is_first: Whether it was not written down before.
        error: Why nothing was written.
    """

    use: Use
    is_first: bool = False
    error: UsedTokensError | None = None


class UsedTokens(ABC):
    """Where used tokens are written down."""

    @abstractmethod
    def load(self) -> SpentTokens:
        """Open the place, and return a memory that begins where it ends; blocks.

        Raises:
            UsedTokensError: It cannot be used.
        """

    @abstractmethod
    async def keep(self, use: Use, floor: float) -> bool:
        """Write down that a token was used; return whether it was not written down before.

        If cancelled, it may be written down all the same.

        Args:
            use: Digest and expiry of the token.
            floor: Tokens that expire no later count as used.

        Raises:
            UsedTokensError: It cannot be written.
        """

    @abstractmethod
    def close(self) -> None:
        """Close the place."""


@final
class UsedTokenFile(UsedTokens):
    """A SQLite file of digests; it contains no token and no user name.

    Args:
        path: Where it is; made if it is not there.
        sweep: How many tokens are written before those that are over are removed.
        form: Form of the file, of the same version; a file with more tables is another's, too.
    """

    def __init__(self, path: Path, sweep: int = _SWEEP, form: DatabaseForm = _FORM) -> None:
        self._path: Final = path
        self._sweep: Final = sweep
        self._file: Final = DatabaseFile(path, form)
        self._writing = trio.Lock()
        self._pending: list[_Pending] = []
        self._kept = 0

    @override
    def load(self) -> SpentTokens:
        """Open the file, and return a memory that begins where it ends; blocks.

        What is in the file is looked up there, token by token.

        Raises:
            UsedTokensError: The file cannot be used, or is none of ours.
        """
        try:
            connection = self._file.connection()
            with connection:
                # The version first: tables without one would be another program's.
                connection.execute(f"PRAGMA user_version = {_VERSION}")
                connection.executescript(_SCHEMA)
            [floor] = connection.execute(_FLOOR).fetchone()
        except (sqlite3.Error, OSError) as exc:
            raise UsedTokensError(self._path, str(exc)) from exc
        return SpentTokens(floor=-math.inf if floor is None else floor)

    @override
    async def keep(self, use: Use, floor: float) -> bool:
        """Write down that a token was used; return whether it was not written down before.

        If cancelled, it is written down all the same.

        Args:
            use: Digest and expiry of the token.
            floor: Tokens that expire no later count as used.

        Raises:
            UsedTokensError: It cannot be written.
        """
        mine = _Pending(use)
        self._pending.append(mine)
        # Shielded: it must be known whether the token was written down. The file answers in time.
        with trio.CancelScope(shield=True):
            async with self._writing:
                if mine in self._pending:
                    # All that came during the last commit share this one.
                    batch, self._pending = self._pending, []
                    await trio.to_thread.run_sync(self._write, batch, floor)
        if mine.error is not None:
            raise mine.error
        return mine.is_first

    @override
    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _write(self, batch: Sequence[_Pending], floor: float) -> None:
        is_sweep = any((self._kept + nth) % self._sweep == 0 for nth in range(len(batch)))
        try:
            connection = self._file.connection()
            with connection:
                for one in batch:
                    row = one.use.digest, one.use.end
                    one.is_first = connection.execute(_KEEP, row).rowcount == 1
                if is_sweep and floor > -math.inf:
                    _sweep(connection, floor)
        except (sqlite3.Error, OSError) as exc:
            for one in batch:
                one.error = UsedTokensError(self._path, str(exc))
        else:
            self._kept += len(batch)


def _sweep(connection: sqlite3.Connection, floor: float) -> None:
    """Remove what is over; that it may have been used is not forgotten."""
    connection.execute(_FORGET, (floor,))
    connection.execute(_NO_FLOOR, (floor,))
    connection.execute(_SET_FLOOR, (floor,))
