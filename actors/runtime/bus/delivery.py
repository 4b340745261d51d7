"""Delivery of messages by a Message BUS to its listeners (BUS-01..03).

A listener is a mailbox of the runtime, the MiniBUS of a sandbox, or a link of a stub that follows
an address of the runtime (`LinkListener`, P2P-25, P2P-30).
"""

from typing import Final, Protocol, final

import attrs

from actors.kit.supervision.actor import ActorRef
from actors.kit.supervision.delivery import Delivery, Purpose
from actors.runtime.hop_trace import HopTrace
from fsm.bus.listeners import Router, RoutingCore
from fsm.p2p.transfer import Behind
from specs.child import is_of_creator
from specs.limits.protocol import MAILBOX, RETRY_AFTER
from specs.message import Message
from specs.reply_code import DropReason


@final
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


@final
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


@final
class Deliveries:
    """The listeners of one bus, and the delivery into their mailboxes; it never waits.

    Attributes:
        routing: Listeners of all addresses.
    """

    def __init__(self, hops: HopTrace) -> None:
        self.routing: RoutingCore[Listener] = RoutingCore(Router.MESSAGE_BUS)
        self._hops = hops

    def give(
        self,
        message: Message,
        route: str,
        *,
        is_foreign: bool = False,
        behind: Behind | None = None,
        purpose: Purpose = Purpose.SEND,
    ) -> bool:
        """Give a message to all listeners of a route; return whether one had room.

        If some had, the others' copies are drops. The rest is for the stub of a link.

        Args:
            is_foreign: Whether the route leads out of this runtime.
            purpose: Purpose of the delivery.
        """
        delivery = Delivery(message, route, is_foreign, behind, purpose)
        listeners = self.routing.find(route)
        if len(listeners) == 1:
            # Nearly always: once per message of the runtime.
            return self._put(delivery, listeners[0])
        full = 0
        for listener in listeners:
            if isinstance(listener, LinkListener) and not listener.takes(message):
                continue
            full += not self._put(delivery, listener)
        if full == len(listeners):
            return False
        for _ in range(full):
            self._hops.dropped(message, DropReason.OVERFLOW)
        return True

    def _put(self, delivery: Delivery, listener: Listener) -> bool:
        is_put = listener.try_tell(delivery)
        if is_put and isinstance(listener, ActorRef):
            # A MiniBUS has recorded it, before its own delivery.
            self._hops.delivered(delivery.message, listener.name)
        return is_put

    def listens(self, component: str, route: str) -> bool:
        """Return whether the listener of a component's address listens to another, too."""
        listeners = self.routing.find(route)
        return any(one in listeners for one in self.routing.find(component))

    def is_there(self, route: str) -> bool:
        """Return whether a receiver still reads messages of a route."""
        return any(not one.is_gone for one in self.routing.find(route))
