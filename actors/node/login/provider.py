"""The interface of identity providers, and the login configuration of a node (CON-01, C-59)."""

import math
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Final, TypeAlias, final

import attrs
import trio
from typing_extensions import override

from actors.kit.arguments import as_path_or_none
from actors.kit.database import DatabaseFile, DatabaseForm
from fsm.session.assertion import SpentTokens, Use
from specs.errors import PlaceError, ReasonError
from specs.identity import Identity
from specs.limits.node import SESSION_LIFE

# The errors of logins, by the party that has to act.


@final
class LoginRefusedError(ReasonError, public=True):
    """An identity provider refuses these credentials; the reason is for their sender.

    Attributes:
        retry_after: Seconds after which the credentials may be accepted; None: unknown or never.
    """

    summary = "login refused"

    def __init__(self, reason: str, retry_after: float | None = None) -> None:
        super().__init__(reason)
        self.retry_after = retry_after


@final
class ProviderAwayError(ReasonError, public=True):
    """An identity provider does not answer at the moment.

    The answer to the login states the reason.
    """

    summary = "the identity provider cannot be asked"


@final
class UsedTokensError(PlaceError, public=True):
    """The file of used tokens cannot be used; the operator has to act."""

    summary = "cannot use the file of used tokens {}"


# The used login tokens of a node: a file that outlives it (S5).

_VERSION: Final = 1

_SWEEP: Final = 1024
"""Number of written tokens after which expired ones are removed (some 100 KB)."""

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


@attrs.define(eq=False)
class _Pending:
    """A used token that is to be stored.

    Attributes:
        is_first: Whether the token was not stored before.
        error: Why nothing was stored.
    """

    use: Use
    is_first: bool = False
    error: UsedTokensError | None = None


class UsedTokens(ABC):
    """Store used tokens."""

    @abstractmethod
    def load(self) -> SpentTokens:
        """Open the store, and return a memory that continues from it; block.

        Raises:
            UsedTokensError: The store cannot be used.
        """

    @abstractmethod
    async def keep(self, use: Use, floor: float) -> bool:
        """Store that a token was used; return whether it was not stored before.

        If cancelled, the token may be stored all the same.

        Args:
            use: Digest and expiry of the token.
            floor: Tokens that expire no later count as used.

        Raises:
            UsedTokensError: The store cannot be written.
        """

    @abstractmethod
    def close(self) -> None:
        """Close the store."""


class UsedTokenFile(UsedTokens):
    """A SQLite file of token digests; it contains no token and no user name.

    Args:
        path: The file; made if it does not exist.
        sweep: Number of written tokens after which expired ones are removed.
        form: The tables that the file must have; it may have more, of other users.
        on_failure: Called after each write that failed.
    """

    def __init__(
        self,
        path: Path,
        sweep: int = _SWEEP,
        form: DatabaseForm = _FORM,
        on_failure: Callable[[], None] = lambda: None,
    ) -> None:
        self._path: Final = path
        self._sweep: Final = sweep
        self._file: Final = DatabaseFile(path, form)
        self._on_failure: Final = on_failure
        self._writing = trio.Lock()
        self._pending: list[_Pending] = []
        self._kept = 0

    @override
    def load(self) -> SpentTokens:
        """Open the file, and return a memory that continues from it; block.

        Tokens in the file are looked up there, one by one.

        Raises:
            UsedTokensError: The file cannot be used, or has another form.
        """
        try:
            connection = self._file.connection()
            with connection:
                # Write the version first: tables without a version count as of another program.
                connection.execute(f"PRAGMA user_version = {_VERSION}")
                connection.executescript(_SCHEMA)
            [floor] = connection.execute(_FLOOR).fetchone()
        except (sqlite3.Error, OSError) as exc:
            raise UsedTokensError(self._path, str(exc)) from exc
        return SpentTokens(floor=-math.inf if floor is None else floor)

    @override
    async def keep(self, use: Use, floor: float) -> bool:
        """Store that a token was used; return whether it was not stored before.

        If cancelled, the token is stored all the same.

        Args:
            use: Digest and expiry of the token.
            floor: Tokens that expire no later count as used.

        Raises:
            UsedTokensError: The file cannot be written.
        """
        pending = _Pending(use)
        self._pending.append(pending)
        # Shielded: the caller must know whether the token was stored; a write is short.
        with trio.CancelScope(shield=True):
            async with self._writing:
                if pending in self._pending:
                    # All tokens that came during the last commit share this one.
                    batch, self._pending = self._pending, []
                    await trio.to_thread.run_sync(self._write, batch, floor)
                    if pending.error is not None:
                        self._on_failure()
        if pending.error is not None:
            raise pending.error
        return pending.is_first

    @override
    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _write(self, batch: Sequence[_Pending], floor: float) -> None:
        is_sweep = any((self._kept + nth) % self._sweep == 0 for nth in range(len(batch)))
        try:
            connection = self._file.connection()
            with connection:
                for each in batch:
                    row = each.use.digest, each.use.end
                    each.is_first = connection.execute(_KEEP, row).rowcount == 1
                if is_sweep and floor > -math.inf:
                    _sweep(connection, floor)
        except (sqlite3.Error, OSError) as exc:
            for each in batch:
                each.error = UsedTokensError(self._path, str(exc))
        else:
            self._kept += len(batch)


def _sweep(connection: sqlite3.Connection, floor: float) -> None:
    """Remove expired tokens; all tokens that expire before the floor count as used."""
    connection.execute(_FORGET, (floor,))
    connection.execute(_NO_FLOOR, (floor,))
    connection.execute(_SET_FLOOR, (floor,))


class IdentityProvider(ABC):
    """Validate the credentials of a login.

    Several tasks of one actor call it at once, each with a deadline of its own.
    """

    @abstractmethod
    async def validate(self, assertion: str, key: str | None) -> Identity:
        """Return the identity that an assertion proves.

        Args:
            assertion: The assertion, such as a token.
            key: Thumbprint of the key that its bearer has proven; None: none. An assertion that is
                bound to another key proves nothing, and does not count as used.

        If cancelled, the assertion may count as used.

        Raises:
            LoginRefusedError: The assertion proves no identity, here and now.
            ProviderAwayError: The assertion cannot be verified at the moment.
        """

    async def why_not(self) -> str | None:
        """Return half a sentence on why no credentials can be validated now; None: they can.

        If cancelled, nothing has changed.
        """
        await trio.lowlevel.checkpoint()
        return None

    def remember(self, used: UsedTokens) -> None:
        """Set the store of used tokens; called once at most, before any login; block.

        Raises:
            UsedTokensError: The store cannot be used.
        """
        used.close()

    @abstractmethod
    async def aclose(self) -> None:
        """Close the provider; called once, when no login is pending any more.

        If cancelled, the provider is closed all the same.
        """


class Nobody(IdentityProvider):
    """Refuse all credentials."""

    @override
    async def validate(self, assertion: str, key: str | None) -> Identity:
        await trio.lowlevel.checkpoint()
        raise LoginRefusedError("this node has no keys, so no login is possible")

    @override
    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()


ProviderMaker: TypeAlias = Callable[[Callable[[], float]], IdentityProvider]
"""Makes an identity provider; its argument is a clock of seconds since the epoch."""


@final
class Admission(StrEnum):
    """Conditions for opening a session."""

    VOUCHED = "who logs in"
    ANYBODY = "anybody; who brings credentials must bring good ones"


@final
@attrs.frozen(kw_only=True)
class Login:
    """The rules for opening sessions at one node.

    Attributes:
        provider: Who validates credentials; made once for the life of the node.
        life: Seconds a session lives on its credentials.
        clock: Seconds since the epoch, as the world counts them; None: as the node does.
        used_tokens: File of used tokens, which nodes without an engine can share; None: they are
            where the node has its sessions.
    """

    provider: ProviderMaker
    admission: Admission = Admission.VOUCHED
    life: float = SESSION_LIFE
    clock: Callable[[], float] | None = None
    used_tokens: Path | None = attrs.field(default=None, converter=as_path_or_none)
