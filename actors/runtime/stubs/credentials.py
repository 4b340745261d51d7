"""Credentials: the token with which a runtime logs in when it opens a session at a node.

A login token lives for minutes and opens one session, so a stub asks for one each time it opens
a session. The token of the session itself, with which it is resumed, is a different one.

`Entrance` opens the session at the own node before any other message (MN-04).
"""

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Final, final

import structlog
import trio
from typing_extensions import override

from actors.runtime.bus.ports import CorePort
from specs.addresses.address import session_manager
from specs.bodies.session import SessionControl
from specs.bodies.word import SessionMethod
from specs.errors import ProtoflyError
from specs.limits.node import TOKEN_CHARS
from specs.message import Message, MessageType, reason_in
from specs.reply_code import LAST_SUCCESS, TURNED_AWAY
from transports.bodies import write_body

__all__ = [
    "NO_CREDENTIALS",
    "Credentials",
    "Entrance",
    "GivenToken",
    "SessionError",
    "TokenFile",
    "TokenFileError",
    "given",
]


@final
class SessionError(ProtoflyError):
    """The node of the domain gives a runtime no session.

    Attributes:
        code: Reply code of the node; or of this runtime, such as 503 if the node cannot be reached.
        reason: Reason in the answer; may be empty.
    """

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(f"the node gives no session: {reason or code}")
        self.code = code
        self.reason = reason


@final
class Entrance:
    """Opens the session at the node of the own domain, and remembers a refusal.

    Args:
        port: Port that sends the request.
        domain: Domain of the runtime.
    """

    def __init__(self, port: CorePort, domain: str) -> None:
        self._port = port
        self._manager = session_manager(domain)
        self._refused: SessionError | None = None

    def heard(self, answer: Message) -> None:
        """Remember an answer of the node, to any request, that refuses the session."""
        if answer.code in TURNED_AWAY:
            self._refused = _error(answer)

    async def enter(self, number: int) -> None:
        """Open the session if it is not open.

        Args:
            number: Id of the message that asks.

        If cancelled, the session may still be opened; the answer of the node is dropped.

        Raises:
            SessionError: The node refuses it, or cannot be reached.
            ActorStoppedError: The runtime has closed.
        """
        if self._refused is not None:
            raise self._refused
        body = write_body(SessionControl(SessionMethod.PING))
        ping = Message(number, MessageType.EXECUTE, self._port.url, self._manager, body)
        answer = await self._port.request(ping)
        if answer.code > LAST_SUCCESS:
            raise _error(answer)


def _error(answer: Message) -> SessionError:
    return SessionError(answer.code, reason_in(answer))


_log = structlog.get_logger("actors.runtime")


class Credentials(ABC):
    """The source of the tokens for a stub's logins."""

    @abstractmethod
    async def fresh(self) -> str | None:
        """Return a token to open a session with; None: there is none.

        If cancelled, no token is used up.
        """


@final
class _NoCredentials(Credentials):
    @override
    async def fresh(self) -> str | None:
        await trio.lowlevel.checkpoint()
        return None


NO_CREDENTIALS: Final[Credentials] = _NoCredentials()
"""For nodes without login."""


@final
class GivenToken(Credentials):
    """One token; it opens a single session where the node accepts each token once."""

    def __init__(self, token: str) -> None:
        self._token = token

    @override
    async def fresh(self) -> str | None:
        await trio.lowlevel.checkpoint()
        return self._token


def given(token: str | None) -> Credentials:
    """Return credentials that have one token; None: credentials without token."""
    return NO_CREDENTIALS if token is None else GivenToken(token)


@final
class TokenFileError(Exception):
    """A token file cannot be used; the text is half a sentence."""


@final
class TokenFile(Credentials):
    """A file whose token another program renews; it is read each time a session opens.

    A file that cannot be used gives no token, and a warning in the log.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    @override
    async def fresh(self) -> str | None:
        try:
            return await trio.to_thread.run_sync(self.read, abandon_on_cancel=True)
        except TokenFileError as exc:
            _log.warning("token file", path=str(self._path), why=str(exc))
            return None

    def read(self) -> str:
        """Read the file; blocks.

        Raises:
            TokenFileError: It cannot be read, or contains no token.
        """
        try:
            with self._path.open("rb") as file:
                text = file.read(TOKEN_CHARS + 2).decode("ascii").strip()
        except OSError as exc:
            raise TokenFileError(exc.strerror or "it cannot be read") from exc
        except UnicodeDecodeError as exc:
            raise TokenFileError("it holds no token") from exc
        if not text or len(text.split()) > 1 or len(text) > TOKEN_CHARS:
            raise TokenFileError("it holds no token")
        return text
