"""The P2P requester stub: links this runtime to one other, on request (P2P-04, SC-16)."""

from typing import assert_never, final

import trio
from typing_extensions import override

from actors.kit.supervision.actor import Actor
from actors.kit.supervision.delivery import Delivery
from actors.runtime.p2p.link import LinkEnd, P2PMessage
from actors.runtime.p2p.stub import EndEffects, P2PStub
from actors.runtime.stubs.stub import StubContext
from fsm.p2p.link_io import (
    ConnectAsked,
    DisconnectAsked,
    LinkTerms,
    Order,
    PeerInvited,
    ResumeAsked,
    SideInput,
    Started,
    TimePassed,
    YieldAsked,
)
from fsm.p2p.negotiation import FIRST
from fsm.p2p.requester import P2PRequesterCore
from specs.addresses.address import is_below
from specs.bodies.link import Command
from specs.bodies.sync import Invitation
from specs.bodies.word import StubMethod
from specs.errors import SpecError
from specs.message import Message, MessageType
from specs.reply_code import Code
from transports.bodies import read_body

__all__ = ["P2PRequester", "activate"]


def activate(context: StubContext) -> Actor[P2PMessage]:
    """Make a requester stub (STB-01).

    Raises:
        SpecError: The configuration names no peer.
    """
    return P2PRequester(context)


@final
class P2PRequester(P2PStub):
    """Host of one `P2PRequesterCore`; its only end is named as the stub."""

    def __init__(self, context: StubContext) -> None:
        super().__init__(context, "offer")
        remote, handler = context.config.remote_runtime, context.config.p2p_handler
        if remote is None or handler is None or not is_below(handler, remote):
            raise SpecError("a P2P requester needs a remote runtime and a handler stub of it")
        self._end = LinkEnd(context.url, remote, handler, context.guard().tls())
        terms = LinkTerms(context.config.runtime, remote, context.url, handler)
        self._core = P2PRequesterCore(terms, self.policy)

    @override
    async def start(self) -> None:
        self.add_end(self._end)
        await self.perform(self.decide(self.context.url, Started()))

    @override
    def deadline(self) -> float:
        return min(self._core.deadline(), self.objects.deadline())

    @override
    async def timed_out(self) -> None:
        await self.copies_overdue()
        await self.perform(self.decide(self.context.url, TimePassed()))

    @override
    def decide(self, end: str, happened: SideInput) -> EndEffects:
        return [(end, each) for each in self._core.feed(happened, trio.current_time())]

    @override
    def end_for(self, delivery: Delivery) -> str:
        return self.context.url

    @override
    async def take_own(self, message: Message) -> None:
        match message.type:
            case MessageType.CREATE:
                await self._invited_by_peer(message)
            case MessageType.EXECUTE:
                await self._commanded(message)
            case _ if message.is_request:
                await self.answer(message, Code.NOT_FOUND, "a requester does not do this")
            case _:
                pass

    async def _invited_by_peer(self, message: Message) -> None:
        invitation = read_body(message, Invitation)
        url = message.from_.removesuffix("/subscription")
        invited = PeerInvited(url, invitation.source)
        await self.invited(url, message, self.decide(self.context.url, invited))

    async def _commanded(self, message: Message) -> None:
        command = read_body(message, Command)
        number = FIRST if command.negotiation is None else command.negotiation
        match StubMethod(command.method):
            case StubMethod.CONNECT:
                order: Order = ConnectAsked()
            case StubMethod.DISCONNECT:
                order = DisconnectAsked("disconnect asked")
            case StubMethod.YIELD:
                order = YieldAsked(number)
            case StubMethod.RESUME:
                order = ResumeAsked(number)
            case StubMethod.RENEWED:
                await self.answer(message, Code.MALFORMED, "a requester has no session to renew")
                return
            case method:
                assert_never(method)
        await self.command(message, self.decide(self.context.url, order))
