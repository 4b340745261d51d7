"""The P2P handler stub: takes the links other runtimes ask for (P2P-01, P2P-19, SC-17)."""

from contextlib import suppress
from typing import final

import trio
from typing_extensions import override

from actors.kit.errors import ActorStoppedError
from actors.kit.supervision.actor import Actor
from actors.kit.supervision.delivery import Delivery
from actors.runtime.p2p.link import LinkEnd, P2PMessage
from actors.runtime.p2p.stub import EndEffects, P2PStub
from actors.runtime.stubs.stub import StubContext
from fsm.engine import Entity
from fsm.machines.stub_connection import STUB_CONNECTION, Trigger
from fsm.p2p.handler import HandlerQuota, P2PHandlerCore, PerLink
from fsm.p2p.link_io import SideInput
from fsm.p2p.link_policy import P2pUse
from specs.addresses.address import is_below, runtime_of, status_of
from specs.bodies.link import Command, Path
from specs.bodies.session import Status
from specs.bodies.sync import Invitation
from specs.bodies.word import StubMethod
from specs.errors import BadMessageError
from specs.message import Message, MessageType
from specs.reply_code import Code
from transports.bodies import read_body, write_body

__all__ = ["P2PHandler", "activate"]


def activate(context: StubContext) -> Actor[P2PMessage]:
    """Make a handler stub (STB-01)."""
    return P2PHandler(context)


@final
class P2PHandler(P2PStub):
    """Host of one `P2PHandlerCore`; it has an end per link, named PC."""

    def __init__(self, context: StubContext) -> None:
        super().__init__(context, "answer")
        self._core = P2PHandlerCore(context.config.runtime, context.url, self.policy)
        self._quota = HandlerQuota()
        # A runtime makes its certificate when it starts, and not while a link is waited for.
        context.guard().certificate()
        self._self = Entity(STUB_CONNECTION, context.url)

    @override
    async def start(self) -> None:
        # It is a stub, too, which stays created: it leads nowhere, its links do (SC-04).
        await self._step(Trigger.CONSTRUCTED)

    @override
    async def closing(self) -> None:
        await super().closing()
        with suppress(ActorStoppedError):
            await self._step(Trigger.CONNECT_IMPOSSIBLE, "the stub is removed")

    @override
    async def stop(self) -> None:
        await super().stop()
        if self._self.allows(Trigger.CONNECT_IMPOSSIBLE):
            step = self._self.step(Trigger.CONNECT_IMPOSSIBLE, "the stub is gone")
            self.context.tracer.step(self.context.url, step)

    @override
    def deadline(self) -> float:
        return min(self._core.deadline(), self.objects.deadline())

    @override
    async def timed_out(self) -> None:
        await self.copies_overdue()
        await self.perform(_per_end(self._core.time_passed(trio.current_time())))

    @override
    def decide(self, end: str, happened: SideInput) -> EndEffects:
        return _per_end(self._core.feed(end, happened, trio.current_time()))

    @override
    def end_for(self, delivery: Delivery) -> str:
        return delivery.route

    @override
    async def take_own(self, message: Message) -> None:
        match message.type:
            case MessageType.CREATE:
                await self._invited_by_requester(message)
            case MessageType.SUBSCRIBE:
                await self._listen_for_link(message)
            case MessageType.EXECUTE:
                await self._commanded(message)
            case _ if message.is_request:
                await self.answer(message, Code.NOT_FOUND, "a handler does not do this")
            case _:
                pass

    async def _step(self, trigger: Trigger, why: str = "") -> None:
        """Take a step of the stub itself, and publish its new status (I-S4)."""
        step, url = self._self.step(trigger, why), self.context.url
        self.context.tracer.step(url, step)
        number, body = self.context.ids.next(url), write_body(Status(step.new))
        await self.context.bus.post(Message(number, MessageType.UPDATE, url, status_of(url), body))

    async def _invited_by_requester(self, message: Message) -> None:
        invitation = read_body(message, Invitation)
        remote = invitation.value.get("runtime")
        requester = invitation.source
        if not isinstance(remote, str) or not is_below(requester, remote):
            raise BadMessageError("the requester is no stub of the runtime it names")
        if runtime_of(requester) == self.context.config.runtime:
            raise BadMessageError("a runtime needs no link to itself")
        if self.context.config.links.of(remote) is P2pUse.NEVER:
            await self.answer(message, Code.FORBIDDEN, "no direct links are wanted from there")
            return
        refusal = self._quota.refusal(remote, self._core.remotes(), trio.current_time())
        if refusal is not None:
            await self.answer(message, Code.UNAVAILABLE, refusal)
            return
        offer = message.from_.removesuffix("/subscription")
        effects = self._core.invited(offer, requester, remote, trio.current_time())
        name = next(each.link for each in reversed(effects) if each.link)
        self.add_end(LinkEnd(name, remote, requester, self.context.guard().tls()))
        await self.invited(offer, message, _per_end(effects))

    async def _listen_for_link(self, message: Message) -> None:
        resources = read_body(message, Path).resources
        if not all(self._core.knows(link) for link in resources):
            await self.answer(message, Code.NOT_FOUND, "there is no such link")
            return
        for link in resources:
            await self.context.bus.add_listener(link, self.me)
        await self.answer(message, Code.OK)

    @override
    async def end_removed(self, name: str) -> None:
        await self.context.bus.remove_listener(name, self.me)
        await self.context.bus.post(self.signalling.over(name))

    async def _commanded(self, message: Message) -> None:
        command = read_body(message, Command)
        if command.method != StubMethod.DISCONNECT:
            raise BadMessageError("the only command of a handler is to disconnect")
        why, now = "disconnect asked", trio.current_time()
        named = command.params or self._core.remotes() if command.link is None else (command.link,)
        effects = self._core.disconnect(named, why, now)
        await self.command(message, _per_end(effects))


def _per_end(effects: list[PerLink]) -> EndEffects:
    return [(each.link, each.effect) for each in effects]
