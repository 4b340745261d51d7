"""What a runtime shows to be let in at a node: asked for anew at each open of a session.

A login token lives for minutes and opens one session; so the stub asks for one only when
it needs it. The session's own token, with which it comes back, is none of these.

Getting the session with the own node before anything else is done by it (MN-04).
"""

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Final, final

import structlog
import trio
from typing_extensions import override

from actors.runtime.bus.ports import CorePort
from specs.addresses.address import session_manager
from specs.bodies.body import SessionControl
from specs.bodies.word import SessionMethod
from specs.errors import ProtoflyError
from specs.limits.login import TOKEN_CHARS
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
    """A runtime has no session at the node of its domain.

    Attributes:
        code: What the node answered, or what was answered for it.
        reason: Its own words.
    """

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(f"the node gives no session: {reason or code}")
        self.code = code
        self.reason = reason


@final
class Entrance:
    """Knows whether the node of the own domain lets the runtime in.

    Args:
        port: Whom the runtime asks by.
        domain: Its own domain.
    """

    def __init__(self, port: CorePort, domain: str) -> None:
        self._port = port
        self._manager = session_manager(domain)
        self._refused: SessionError | None = None

    def heard(self, answer: Message) -> None:
        """Note what the node, or the stub for it, answered to anything at all."""
        if answer.code in TURNED_AWAY:
            self._refused = _error(answer)

    async def enter(self, number: int) -> None:
        """Have the session opened, if it is not; raise why it cannot be had.

        Args:
            number: Id of the message that asks.

        Raises:
            SessionError: The node refuses it, or is out of reach.
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
    """Where a stub gets the token to log in with."""

    @abstractmethod
    async def fresh(self) -> str | None:
        """Return a token to open a session with; None: there is none."""


@final
class _NoCredentials(Credentials):
    @override
    async def fresh(self) -> str | None:
        await trio.lowlevel.checkpoint()
        return None


NO_CREDENTIALS: Final[Credentials] = _NoCredentials()
"""For nodes where nobody has to log in."""


@final
class GivenToken(Credentials):
    """One token, which opens one session at most where tokens are used up."""

    def __init__(self, token: str) -> None:
        self._token = token

    @override
    async def fresh(self) -> str | None:
        await trio.lowlevel.checkpoint()
        return self._token


def given(token: str | None) -> Credentials:
    """Return credentials that are a token; None: there are none."""
    return NO_CREDENTIALS if token is None else GivenToken(token)


@final
class TokenFileError(Exception):
    """A file of a token cannot be used; the text is half a sentence."""


@final
class TokenFile(Credentials):
    """A file that somebody keeps fresh; read at each open."""

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
            TokenFileError: It cannot be read, or holds no token.
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
