"""What is under way in the Message BUS of a runtime, how it is delivered, and in which turn.

A component has a limited number of permits: one component does not crowd out the others (R11). A
message gives its permit back when it is routed; one that waits for room at a stub keeps it. A
component that takes more than its share while others wait gets its permits back later.
"""

from collections.abc import Callable
from enum import Enum
from typing import Final, Protocol, TypeAlias

import attrs
import trio

from actors.kit.supervision.actor import ActorRef, Delivery, Purpose, Reply
from actors.runtime.hop_trace import HopTrace
from fsm.bus.listeners import RoutingCore
from fsm.bus.transactions import ASKED_ONCE, Terms
from fsm.effects import Intent, LinkHint, intent_of
from fsm.p2p.transfer import Behind
from specs.child import is_of_creator
from specs.limits.bus import SUBMITTED
from specs.limits.protocol import MAILBOX, RETRY_AFTER
from specs.message import Message
from specs.reply_code import DropReason


class Permits:
    """The permits of one component, each as good as another.

    Places are given in the order in which they are asked for: a message has its id by then,
    and the ids of one sender rise (I-T7).
    """

    __slots__ = ("_line", "_permits")

    def __init__(self) -> None:
        self._permits = trio.Semaphore(SUBMITTED)
        self._line = trio.StrictFIFOLock()

    def enter_nowait(self) -> bool:
        """Take a permit if one is free and no sender waits; return whether there was."""
        if self._line.locked():
            return False
        try:
            self._permits.acquire_nowait()
        except trio.WouldBlock:
            return False
        return True

    async def enter(self) -> None:
        """Wait for a permit. Not a checkpoint while there is one."""
        if not self.enter_nowait():
            # One at a time: of two that are woken at once either may run first.
            async with self._line:
                await self._permits.acquire()

    def give_back(self) -> None:
        """Let the next message come; called once for each."""
        self._permits.release()


class Origin(Enum):
    """The kind of the submitting component: it decides which `from` is allowed."""

    LOCAL = "local"
    NODE_STUB = "node-stub"
    P2P_STUB = "p2p-stub"


# ---- listeners


@attrs.frozen(slots=True)
class Full:
    """A queue that has no space for a message.

    Attributes:
        limit: Name of the limit that it meets.
        value: Its value.
        why: The reason, for people.
        retry_after: Seconds after which there may be space.
    """

    limit: str
    value: float
    why: str
    retry_after: float = RETRY_AFTER


RECEIVER_FULL: Final = Full("MAILBOX", MAILBOX, "the receiver's mailbox is full")


class Listener(Protocol):
    """A listener in a bus's table."""

    @property
    def name(self) -> str:
        """Name of the receiver, for people and traces."""

    @property
    def is_gone(self) -> bool:
        """Whether the listener is gone for good."""

    def try_tell(self, message: Delivery) -> bool:
        """Put a message where it is read, if there is room; return whether there was."""


@attrs.define(eq=False)
class LinkListener:
    """Sends what it is given out by one link of a stub, for any address under which it was found.

    Attributes:
        stub: The stub that the link's address leads to.
        behind: What the link announces before the first message: what went by the node may
            still be outstanding (I-B7). None: it has been announced.
    """

    stub: Listener
    link: str
    behind: Behind | None

    @property
    def name(self) -> str:
        """Name of the stub's place."""
        return self.stub.name

    @property
    def is_gone(self) -> bool:
        """Whether the stub is gone for good."""
        return self.stub.is_gone

    def takes(self, message: Message) -> bool:
        """Return whether a message is for a link: of children the object alone speaks over it."""
        return not is_of_creator(message)

    def try_tell(self, message: Delivery) -> bool:
        """Give a message to the stub, for this link."""
        is_delivered = self.stub.try_tell(Delivery(message.message, self.link, behind=self.behind))
        self.behind = None if is_delivered else self.behind
        return is_delivered


class Deliveries:
    """The listeners of one bus, and the delivery into their mailboxes; it never waits.

    Attributes:
        routing: Listeners of all addresses.
    """

    def __init__(self, hops: HopTrace) -> None:
        self.routing: RoutingCore[Listener] = RoutingCore(has_any=False)
        self._hops = hops

    def deliver(
        self,
        message: Message,
        route: str,
        *,
        is_foreign: bool = False,
        behind: Behind | None = None,
        purpose: Purpose = Purpose.SEND,
    ) -> bool | None:
        """Deliver a message to all listeners of a route.

        Args:
            message: The message.
            route: Address under which the listeners are found.
            is_foreign: Whether a stub has brought it into this runtime.
            behind: What the link of a stub announces before it.
            purpose: Purpose of the delivery.

        Returns:
            True if a listener had room; the copies of the others are drops then. False if none had.
            None if nobody listens.
        """
        listeners = self.routing.find(route)
        if not listeners:
            return None
        delivery = Delivery(message, route, is_foreign, behind, purpose)
        # Nearly always it is one; a link that is one of several takes a part of the messages.
        is_shared, full = len(listeners) > 1, 0
        for listener in listeners:
            if is_shared and isinstance(listener, LinkListener) and not listener.takes(message):
                continue
            if not listener.try_tell(delivery):
                full += 1
            elif self._hops.is_on and isinstance(listener, ActorRef):
                # A MiniBUS has recorded it, before its own delivery.
                self._hops.delivered(message, listener.name)
        if full == len(listeners):
            return False
        for _ in range(full):
            self._hops.dropped(message, DropReason.OVERFLOW)
        return True

    def listens(self, component: str, route: str) -> bool:
        """Return whether the listener of a component's address listens to another, too."""
        listeners = self.routing.find(route)
        return any(each in listeners for each in self.routing.find(component))

    def is_there(self, route: str) -> bool:
        """Return whether a receiver still reads messages of a route."""
        return any(not each.is_gone for each in self.routing.find(route))


# ---- what components hand to the bus


@attrs.frozen(slots=True)
class Turn:
    """To the mailbox of an actor: a task of it has been answered, and goes on now."""

    reply: Reply[Message]
    answer: Message

    async def take(self) -> None:
        """Let the task go on until it waits again."""
        if self.reply.is_open:
            self.reply.send(self.answer)
            # The task runs beside this one at the first checkpoint, and has run at the second.
            await trio.lowlevel.checkpoint()
            await trio.lowlevel.checkpoint()


def answer_in_turn(reply: Reply[Message], mailbox: ActorRef[Turn], answer: Message) -> None:
    """Let an answer take its turn behind what came to the mailbox of the requester before it.

    Otherwise a task of an actor would go on before the actor has handled older messages of the
    same sender. Where the mailbox is full, it goes on at once.
    """
    if not mailbox.try_tell(Turn(reply, answer)):
        reply.send(answer)


@attrs.define(slots=True, eq=False)
class InFlight:
    """A message that is under way in the bus; a request is until its last answer has gone.

    Attributes:
        message: As its component submits it; after the checks, as they let it pass.
        by: Address under which the component submits (BUS-12).
        reply: Takes the final answer, once; None: it goes to the listener of `from`.
        terms: How it is asked; `awaited` are the runtimes whose answers are awaited (BUS-09).
        permit: Permit of its component, which gets it back; None: it has none.
        intent: How it may go; None: as messages of its kind do.
        origin: The kind of the component.
        is_outgoing: Whether this runtime sends it, a stub that speaks for itself included.
        is_copy: Whether nobody waits for its answer: it is a copy of another one (BUS-08).
    """

    message: Message
    by: str
    reply: Callable[[Message], object] | None = None
    terms: Terms = ASKED_ONCE
    permit: Permits | None = None
    intent: Intent | None = None
    origin: Origin = Origin.LOCAL
    is_outgoing: bool = True
    is_copy: bool = False

    def answer_intent(self, answer: Message) -> Intent:
        """Return how an answer may go; to a request by the node, by it only.

        A request by a link is answered by the link, if it is still there.
        """
        is_by_node = self.origin is not Origin.P2P_STUB and intent_of(self.message) is Intent.NODE
        return Intent.NODE if is_by_node else intent_of(answer)


Announced: TypeAlias = tuple[Behind, str]
"""What a link has announced that the messages of a pair follow that it brings (C-20), and it."""


class RouteSearch(Protocol):
    """The registry, as a Message BUS asks it; each method returns whether it takes that now."""

    def try_ask(self, to: str, intent: Intent, hint: LinkHint | None) -> bool:
        """Look for a route; `MessageBus.take_route` or `no_route` follows."""

    def try_ask_owner(self, entity: str, remote: str) -> bool:
        """Look for the owner of an address that `remote` sends from; `set_owner` follows."""

    def try_report_forged(self, link: str) -> bool:
        """End a link whose peer sends from addresses of others (S1)."""
