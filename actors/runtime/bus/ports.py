"""The ports by which components reach the Message BUS.

Methods raise ActorStoppedError if the runtime has closed.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Final, final

import trio
from typing_extensions import override

from actors.kit.errors import ActorStoppedError
from actors.kit.supervision.actor import ActorRef
from actors.kit.supervision.delivery import Delivery
from actors.kit.supervision.mailbox import Reply
from actors.runtime.bus.delivery import Listener
from actors.runtime.bus.fair_queue import Permits
from actors.runtime.bus.messages import (
    Announced,
    AnswerInTurn,
    InFlight,
    Origin,
    Turn,
)
from actors.runtime.bus.mini_bus import MiniBus, MiniBusPort
from fsm.bus.child_paths import ChildPath
from fsm.bus.forward_rules import ForwardRule
from fsm.bus.transactions import ASKED_ONCE, Terms
from fsm.intent import Intent
from fsm.p2p.transfer import Behind
from specs.message import Message

if TYPE_CHECKING:
    from actors.runtime.bus.message_bus import MessageBus

_BATCH: Final = 64
"""Messages that a hyperty or stub posts before other tasks run."""


class _Port(MiniBusPort):
    """The operations of every component: post, request, hand back."""

    _mailbox: ActorRef[Turn] | None = None

    def __init__(self, url: str, bus: "MessageBus") -> None:
        self.url = url
        self._bus = bus

    @override
    async def post(self, message: Message, by: str | None = None) -> None:
        self._bus.submit(InFlight(message, by or self.url))

    @override
    def try_answer(self, answer: Message) -> bool:
        try:
            self._bus.submit(InFlight(answer, self.url))
        except ActorStoppedError:
            return False
        return True

    @override
    async def request(self, message: Message) -> Message:
        return await self.insist(message, 1)

    @override
    async def insist(self, message: Message, attempts: int) -> Message:
        # What is refused is answered at once: a loop of such requests can be cancelled here.
        await trio.lowlevel.checkpoint_if_cancelled()
        return await self._bus.replies.wait_for(self._ask(message, attempts))

    def _ask(
        self,
        message: Message,
        attempts: int = 1,
        permit: Permits | None = None,
        intent: Intent | None = None,
    ) -> Reply[Message]:
        reply: Reply[Message] = Reply()
        sink = reply if self._mailbox is None else AnswerInTurn(reply, self._mailbox)
        terms = Terms(attempts=attempts) if attempts > 1 else ASKED_ONCE
        self._bus.submit(InFlight(message, self.url, sink, terms, permit, intent))
        return reply

    @override
    async def hand_back(self, messages: Sequence[Message], by: str | None = None) -> None:
        self._bus.hand_back(tuple(messages), by or self.url)

    @override
    async def room(self, count: int, *, is_first: bool = False) -> None:
        self._bus.room(self.url, count, is_first=is_first)

    @override
    async def announce(self, behind: Behind, by: str) -> None:
        self._bus.announce(Announced(behind, by))


class SandboxPort(_Port):
    """The port of a component in a sandbox; its listeners are rows of its MiniBUS."""

    def __init__(self, url: str, bus: "MessageBus", mini_bus: MiniBus) -> None:
        super().__init__(url, bus)
        self._mini_bus = mini_bus
        self._posted = 0

    @override
    async def add_listener(self, address: str, ref: ActorRef[Delivery]) -> None:
        self._bus.overflow(self._mini_bus.add(address, ref, self.url))

    @override
    async def remove_listener(self, address: str, ref: ActorRef[Delivery]) -> None:
        self._mini_bus.remove(address, ref, self.url)

    @override
    async def post(self, message: Message, by: str | None = None) -> None:
        self._posted += 1
        is_turn = self._posted % _BATCH == 0
        if is_turn and not message.is_response:
            # An answer is owed, and is sent by a task that is being cancelled, too.
            await trio.lowlevel.checkpoint_if_cancelled()
        await self._put(InFlight(message, by or self.url))
        if is_turn:
            # Afterwards: a message that has its permit goes before those that come later (I-T7).
            await trio.lowlevel.cancel_shielded_checkpoint()

    async def _put(self, flight: InFlight) -> None:
        self._bus.submit(flight)


@final
class HypertyPort(SandboxPort):
    """The port of a hyperty: it shares the bus fairly with other hyperties (R11)."""

    def __init__(self, url: str, bus: "MessageBus", mini_bus: MiniBus) -> None:
        super().__init__(url, bus, mini_bus)
        self._permits = Permits()

    @override
    async def insist(self, message: Message, attempts: int) -> Message:
        await trio.lowlevel.checkpoint_if_cancelled()
        if not self._permits.enter_nowait():
            await self._permits.enter()
        return await self._bus.replies.wait_for(self._ask(message, attempts, self._permits))

    @override
    async def _put(self, flight: InFlight) -> None:
        # An answer needs no permit: it is owed, and no more can come than was asked for.
        if not flight.message.is_response:
            await self._permits.enter()
            flight.permit = self._permits
        self._bus.submit(flight)


@final
class CorePort(_Port):
    """The port of a core component; its listeners are rows of the Message BUS.

    The methods are those of the bus; the port adds whose they are.
    """

    def take_turns(self, mailbox: ActorRef[Turn]) -> None:
        """Let answers to tasks of an actor wait in its mailbox, behind what came before them."""
        self._mailbox = mailbox

    def send(self, message: Message) -> None:
        """Post a message at once."""
        self._bus.submit(InFlight(message, self.url))

    def open_address(self, address: str, ref: ActorRef[Delivery]) -> None:
        """Speak as an address, and listen to it."""
        self._bus.grant(self.url, address, Origin.LOCAL)
        self._bus.listen(address, ref, self.url)

    def close_address(self, address: str, ref: ActorRef[Delivery]) -> None:
        """Undo `open_address`. Idempotent."""
        self._bus.unlisten(address, ref, self.url)
        self._bus.revoke(self.url, address)

    @override
    async def add_listener(self, address: str, ref: ActorRef[Delivery]) -> None:
        self.open_address(address, ref)

    @override
    async def remove_listener(self, address: str, ref: ActorRef[Delivery]) -> None:
        self.close_address(address, ref)

    def listen(self, address: str, ref: Listener) -> None:
        self._bus.listen(address, ref, self.url)

    def unlisten(self, address: str, ref: Listener) -> None:
        self._bus.unlisten(address, ref, self.url)

    def follow(self, address: str, component: str) -> None:
        self._bus.follow(address, component, self.url)

    def unfollow(self, address: str, component: str) -> None:
        self._bus.unfollow(address, component, self.url)

    def unfollow_all(self, address: str) -> None:
        self._bus.unlisten(address, None, self.url)

    def add_link(self, address: str, link: str) -> None:
        self._bus.add_link(address, link, self.url)

    def remove_link(self, address: str, link: str) -> None:
        self._bus.remove_link(address, link, self.url)

    async def request_direct(self, message: Message) -> Message:
        """Request by the live link only; 503 if there is none or it ends first (P2P-30)."""
        await trio.lowlevel.checkpoint_if_cancelled()
        reply = self._ask(message, intent=Intent.DIRECT)
        return await self._bus.replies.wait_for(reply)

    def set_event_link(self, address: str, link: str | None) -> None:
        self._bus.set_event_link(address, link)

    def set_child_path(self, address: str, path: ChildPath) -> None:
        self._bus.set_child_path(address, path)

    async def caught_up(self, address: str, link: str) -> None:
        await self._bus.caught_up(address, link)

    def publish(
        self, message: Message, runtimes: frozenset[str], direct: frozenset[str] = frozenset()
    ) -> None:
        """Publish to all observers, wherever they are (BUS-09).

        Answers come to the listener of its `from`: one of each runtime, which `source` names
        (C-81), or that of a router, which names none and ends the request for all. Observers behind
        a link with a listener (`add_link`) get the message by it only.

        Args:
            message: The message; its `to` is an address of the object.
            runtimes: Runtimes whose answers are awaited.
            direct: Those of them that are reached by a direct link.
        """
        # By the node: where the object was reported before, a link may lead all the same.
        terms = Terms(runtimes, direct=direct)
        self._bus.submit(InFlight(message, self.url, terms=terms, intent=Intent.NODE))

    def deliver(self, message: Message, component: str) -> None:
        self._bus.deliver(message, component)

    @asynccontextmanager
    async def forwarded(self, rule: ForwardRule) -> AsyncIterator[None]:
        """Copy messages by a rule while the context is open (BUS-08, BUS-10)."""
        self._bus.add_rule(rule, self.url)
        try:
            yield
        finally:
            with suppress(ActorStoppedError):
                self._bus.remove_rule(rule, self.url)

    def grant(self, address: str, component: str) -> None:
        self._bus.grant(component, address, Origin.LOCAL)

    def revoke(self, address: str, component: str) -> None:
        self._bus.revoke(component, address)

    def admit(self, owner: str, origin: Origin, listener: Listener) -> None:
        self._bus.grant(owner, owner, origin)
        self._bus.listen(owner, listener, self.url)

    def anonymise(self, stub: str) -> None:
        self._bus.anonymise(stub)

    def expel(self, owner: str) -> None:
        self._bus.expel(owner, self.url)
