"""The identity connector at `domain://idm.<d>`: asks who is behind a login (M-55, CON-01)."""

from typing import Final, TypeAlias, final

import attrs
import trio
from typing_extensions import override

from actors.kit.actor import Actor, ActorRef
from actors.node.login.errors import LoginRefusedError, ProviderAwayError
from actors.node.login.provider import IdentityProvider
from actors.node.login.vouched import written_identity
from actors.node.messages import Asked, Attached, BusMessage, Emitted, RuntimeLeft
from specs.bodies.body import IdentityCall
from specs.errors import BadMessageError
from specs.limits.login import LOGIN_TIMEOUT, LOGINS_PENDING
from specs.message import Message, MessageType, refuse, reply_to
from specs.reply_code import Code
from transports.bodies import read_body

__all__ = ["VALIDATE", "ConnectorParts", "IdentityConnector"]

VALIDATE: Final = "validateAssertion"
"""The one method that a node offers."""

_ELSEWHERE: Final = frozenset({"generateAssertion", "getLoginEndpoint"})
"""Methods of identity providers; a node is none."""

_Message: TypeAlias = Asked | RuntimeLeft


@final
@attrs.frozen
class ConnectorParts:
    """What an identity connector is made of.

    Attributes:
        address: Where it listens.
        session: The node's session manager, who is answered there.
        bus: Whom it is attached to.
        provider: Who vouches for people; outlives the connector.
    """

    address: str
    session: str
    bus: ActorRef[BusMessage]
    provider: IdentityProvider


@final
class IdentityConnector(Actor[_Message]):
    """Answers each question once, whatever becomes of the provider; bounded in number."""

    def __init__(self, parts: ConnectorParts) -> None:
        self._parts: Final = parts
        self._pending = 0

    @override
    async def start(self) -> None:
        await self._parts.bus.tell(Attached(self._parts.address, self.me))

    @override
    async def handle(self, message: Asked | RuntimeLeft) -> None:
        if isinstance(message, RuntimeLeft):
            return
        try:
            assertion = _assertion(message.message)
        except BadMessageError as exc:
            await self._answer(message, refuse(message.message, exc.code, exc.reason))
            return
        if self._pending >= LOGINS_PENDING:
            why = f"{LOGINS_PENDING} logins are under way; try again"
            await self._answer(message, refuse(message.message, Code.UNAVAILABLE, why))
            return
        self._pending += 1
        self.spawn(self._look_into, message, assertion)

    async def _look_into(self, asked: Asked, assertion: str) -> None:
        answer = refuse(asked.message, Code.BACKEND_TIMEOUT, "the identity provider is too slow")
        try:
            with trio.move_on_after(LOGIN_TIMEOUT):
                answer = await self._validated(asked.message, assertion)
        finally:
            self._pending -= 1
        await self._answer(asked, answer)

    async def _validated(self, message: Message, assertion: str) -> Message:
        try:
            identity = await self._parts.provider.validate(assertion)
        except LoginRefusedError as exc:
            return refuse(message, Code.UNAUTHENTICATED, exc.reason)
        except ProviderAwayError as exc:
            return refuse(message, Code.BAD_BACKEND, exc.reason)
        return reply_to(message, Code.OK, {"value": written_identity(identity)})

    async def _answer(self, asked: Asked, answer: Message) -> None:
        is_own = asked.message.from_ == self._parts.session
        await self._parts.bus.tell(Emitted(answer, None if is_own else asked.by))


def _assertion(message: Message) -> str:
    """Return what is to be validated.

    Raises:
        BadMessageError: Something else is asked for.
    """
    if message.type is not MessageType.EXECUTE:
        raise BadMessageError(f"an identity connector knows execute, not {message.type}")
    call = read_body(message, IdentityCall)
    if call.method in _ELSEWHERE:
        why = f"{call.method} is what an identity provider does; this node only asks {VALIDATE}"
        raise BadMessageError(why, Code.NOT_FOUND)
    if call.method != VALIDATE:
        raise BadMessageError(f"no method {call.method!r} here, only {VALIDATE}", Code.NOT_FOUND)
    assertion = call.params.get("assertion")
    if not isinstance(assertion, str):
        raise BadMessageError("params.assertion is missing or no text")
    return assertion
