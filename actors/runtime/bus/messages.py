"""Messages in the Message BUS of a runtime, their listeners, and permits that limit their number.

A component has a limited number of permits, so that no component crowds out the others (R11). A
message gives its permit back when it is routed, or, if it waits for space at a stub, afterwards. A
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
    """The permits of one component: each permit allows one message in the bus.

    Senders get permits in the order of their calls: a message has its id by then, and the ids of
    one sender rise (I-T7).
    """

    __slots__ = ("_line", "_permits")

    def __init__(self) -> None:
        self._permits = trio.Semaphore(SUBMITTED)
        self._line = trio.StrictFIFOLock()

    def enter_nowait(self) -> bool:
        """Take a permit if one is free and no sender waits; return whether it was taken."""
        if self._line.locked():
            return False
        try:
            self._permits.acquire_nowait()
        except trio.WouldBlock:
            return False
        return True

    async def enter(self) -> None:
        """Wait for a permit. No checkpoint if a permit is free."""
        if not self.enter_nowait():
            # Senders wait one at a time: of two woken tasks, either may run first.
            async with self._line:
                await self._permits.acquire()

    def give_back(self) -> None:
        """Free the permit of a message; called once for each message."""
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
        limit: Name of the limit that is reached.
        value: Value of the limit.
        why: The reason, for people.
        retry_after: Seconds after which there may be space.
    """

    limit: str
    value: float
    why: str
    retry_after: float = RETRY_AFTER


RECEIVER_FULL: Final = Full("MAILBOX", MAILBOX, "the receiver's mailbox is full")


class Listener(Protocol):
    """Interface of a listener in the routing table of a bus."""

    @property
    def name(self) -> str:
        """Name of the receiver, for people and traces."""

    @property
    def is_gone(self) -> bool:
        """True if the listener has ended and never takes messages again."""

    def try_tell(self, message: Delivery) -> bool:
        """Put a message into the receiver's mailbox; return False if the mailbox is full."""


@attrs.define(eq=False)
class LinkListener:
    """A listener that forwards messages by one direct link of a P2P stub.

    Attributes:
        stub: The stub of the link.
        link: Address of the link.
        behind: Announcement that precedes the first message: earlier messages by the node may
            still be outstanding (I-B7). None: the announcement was sent already.
    """

    stub: Listener
    link: str
    behind: Behind | None

    @property
    def name(self) -> str:
        """Name of the stub, for people and traces."""
        return self.stub.name

    @property
    def is_gone(self) -> bool:
        """True if the stub has ended."""
        return self.stub.is_gone

    def takes(self, message: Message) -> bool:
        """Return whether the link may carry a message; changes of children by creators may not."""
        return not is_of_creator(message)

    def try_tell(self, message: Delivery) -> bool:
        """Give a message to the stub, to be sent by this link; return whether it had space."""
        is_delivered = self.stub.try_tell(Delivery(message.message, self.link, behind=self.behind))
        self.behind = None if is_delivered else self.behind
        return is_delivered


class Deliveries:
    """The listeners of one bus, and the delivery of messages into their mailboxes; it never waits.

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
            behind: Announcement that the link of a stub sends before the message.
            purpose: Purpose of the delivery.

        Returns:
            True if a listener had room; the copies for all others are counted as drops. False if no
            listener had room. None if there is no listener.
        """
        listeners = self.routing.find(route)
        if not listeners:
            return None
        delivery = Delivery(message, route, is_foreign, behind, purpose)
        # Nearly always there is one; a link among several listeners carries only some messages.
        is_shared, full = len(listeners) > 1, 0
        for listener in listeners:
            if is_shared and isinstance(listener, LinkListener) and not listener.takes(message):
                continue
            if not listener.try_tell(delivery):
                full += 1
            elif self._hops.is_on and isinstance(listener, ActorRef):
                # A MiniBUS records it itself, before its own delivery.
                self._hops.record_delivery(message, listener.name)
        if full == len(listeners):
            return False
        for _ in range(full):
            self._hops.record_drop(message, DropReason.OVERFLOW)
        return True

    def listens(self, component: str, route: str) -> bool:
        """Return whether a listener of a component's own address also listens to a route."""
        listeners = self.routing.find(route)
        return any(each in listeners for each in self.routing.find(component))

    def has_reader(self, route: str) -> bool:
        """Return whether a receiver still reads messages of a route."""
        return any(not each.is_gone for each in self.routing.find(route))


# ---- submitted messages


@attrs.frozen(slots=True)
class Turn:
    """An answer for a task of an actor; it waits in the mailbox behind earlier messages."""

    reply: Reply[Message]
    answer: Message

    async def take(self) -> None:
        """Give the answer to the task, and let the task run until it waits again."""
        if self.reply.is_open:
            self.reply.send(self.answer)
            # The task runs beside this one at the first checkpoint, and has run at the second.
            await trio.lowlevel.checkpoint()
            await trio.lowlevel.checkpoint()


def answer_in_turn(reply: Reply[Message], mailbox: ActorRef[Turn], answer: Message) -> None:
    """Put an answer into the mailbox of the requester, behind the earlier messages.

    Otherwise a task of an actor would continue before the actor has handled older messages of the
    same sender. If the mailbox is full, the task gets the answer at once.
    """
    if not mailbox.try_tell(Turn(reply, answer)):
        reply.send(answer)


@attrs.define(slots=True, eq=False)
class InFlight:
    """A message in the bus; a request stays there until its last answer.

    Attributes:
        message: The message as submitted; after the checks, as the checks have changed it.
        by: Address under which the component submits (BUS-12).
        reply: Takes the final answer, once; None: the answer goes to the listener of `from`.
        progress: Takes each provisional answer, if `reply` takes the final one.
        terms: Attempts of a request, and the runtimes whose answers are awaited (BUS-09).
        permit: Permit that the component gets back; None: the message needed none.
        intent: Permitted kinds of routes; None: those of messages of its type.
        origin: The kind of the component.
        is_outgoing: Whether this runtime, or a stub of it, has made the message.
        is_copy: Whether it is a copy of another message, whose answer nobody awaits (BUS-08).
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
    progress: Callable[[Message], object] | None = None

    def answer_intent(self, answer: Message) -> Intent:
        """Return the permitted routes of an answer: only the node, if the request came by the node.

        A request by a link is answered by the link, if the link is still up.
        """
        is_by_node = self.origin is not Origin.P2P_STUB and intent_of(self.message) is Intent.NODE
        return Intent.NODE if is_by_node else intent_of(answer)


Announced: TypeAlias = tuple[Behind, str]
"""An announcement of which messages precede those of a link (C-20), and the link's address."""


class RouteSearch(Protocol):
    """Queries of a Message BUS to the registry; each returns False if its queue is full."""

    def try_ask(self, to: str, intent: Intent, hint: LinkHint | None) -> bool:
        """Start the search for a route; `MessageBus.take_route` or `no_route` gets the result."""

    def try_ask_owner(self, entity: str, remote: str) -> bool:
        """Start the search for the owner of the address that `remote` uses; `set_owner` follows."""

    def try_report_forged(self, link: str) -> bool:
        """Ask the registry to end a link whose peer has used senders that belong to others (S1)."""
