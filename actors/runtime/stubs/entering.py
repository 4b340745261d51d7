"""Getting the session with the own node before anything else is done by it (MN-04)."""

from typing import final

from actors.runtime.bus.ports import CorePort
from specs.addresses.address import session_manager
from specs.bodies.body import SessionControl
from specs.bodies.word import SessionMethod
from specs.errors import ProtoflyError
from specs.message import Message, MessageType, reason_in
from specs.reply_code import LAST_SUCCESS, TURNED_AWAY
from transports.bodies import write_body

__all__ = ["Entrance", "SessionError"]


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
