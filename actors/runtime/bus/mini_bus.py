"""The MiniBUS: the router of one sandbox, and the port of its components."""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from actors.kit.supervision.actor import ActorRef, Delivery, Purpose
from actors.runtime.hop_trace import HopTrace
from fsm.bus.listeners import ANY, RoutingCore
from fsm.p2p.transfer import Behind
from specs.addresses.address import is_inbox
from specs.limits.protocol import EVENTS_WAITING, STUB_QUEUE
from specs.message import Message

Progress: TypeAlias = Callable[[Message], object]
"""Takes a provisional answer to a request, at once and without an exception."""


class MiniBusPort(ABC):
    """The port of a component to its MiniBUS: its only access to the rest of the runtime.

    Attributes:
        url: Address of the component.
    """

    url: str

    @abstractmethod
    async def post(self, message: Message, by: str | None = None) -> None:
        """Give a message to the Message BUS.

        A hyperty with too many messages at the bus waits, except with an answer; a component in a
        sandbox process waits while its pipe has no room.

        Answers to a request, also provisional ones and those of routers (404, 408, 503), are
        delivered to the listener of its `from`.

        Args:
            message: Message whose `from` belongs to the component (BUS-12).
            by: Address of the component under which it is submitted; a P2P handler names the
                connection from which it has read the message. None: `url`.

        If cancelled, the message was not posted.

        Raises:
            ActorStoppedError: The runtime has closed.
        """

    def try_answer(self, answer: Message) -> bool:  # noqa: ARG002 - see below
        """Give an answer to the Message BUS without waiting; return whether it was taken.

        If not, as always in a sandbox process, the caller posts the answer.

        Args:
            answer: Message whose `from` belongs to the component.
        """
        return False

    @abstractmethod
    async def request(self, message: Message, progress: Progress | None = None) -> Message:
        """Post a request and return its one final answer, which may be that of a router.

        Provisional answers prolong the wait. A handler whose answer needs the mailbox of its own
        actor spawns the call.

        Args:
            message: The request.
            progress: Takes each provisional answer; None: nobody wants them.

        If cancelled, a message that the bus has not taken yet is not sent; the answer to one
        that was sent is dropped.

        Raises:
            ActorStoppedError: The runtime has closed.
        """

    async def insist(
        self,
        message: Message,
        attempts: int,  # noqa: ARG002 - see below
        progress: Progress | None = None,
    ) -> Message:
        """Post a request, and send it again while no answer comes (MSG-07).

        All attempts are the same message with the same id: a receiver that has handled it does
        not handle it again, but repeats its answer. If the Message BUS is in another process,
        the message is sent once.

        Args:
            message: The request.
            attempts: How often it is sent at most; each attempt waits for `REPLY_TIMEOUT`
                seconds.
            progress: As of `request`.

        If cancelled, a message that was sent is still repeated, and its answer is dropped.

        Raises:
            ActorStoppedError: The runtime has closed.
        """
        return await self.request(message, progress)

    @abstractmethod
    async def hand_back(self, messages: Sequence[Message], by: str | None = None) -> None:
        """Return messages to the bus that this stub cannot deliver any more: they are routed again.

        The order is kept, and the checks are not repeated. A call without messages reports that the
        link `by` has ended without outstanding messages.

        Args:
            messages: The messages as they were delivered: without the stamp of the stub in
                `via`.
            by: Address of the link; None: `url`.

        If cancelled, nothing was returned.

        Raises:
            ActorStoppedError: The runtime has closed.
        """

    async def room(self, count: int, *, is_first: bool = False) -> None:  # noqa: B027 - see below
        """Report to the Message BUS how many more messages this node stub takes.

        From the first call on, the bus gives the stub no more messages than reported: further ones
        wait in the bus, and their senders with them. In a sandbox process the call does nothing,
        and the bus does not limit the messages.

        Args:
            count: The number of messages.
            is_first: Whether the stub has just started, so that all earlier messages are gone.

        If cancelled, the report is lost.

        Raises:
            ActorStoppedError: The runtime has closed.
        """

    @abstractmethod
    async def announce(self, behind: Behind, by: str) -> None:
        """Report to the bus which messages of a sender and receiver precede those of a link (C-20).

        Args:
            behind: The announcement of the peer.
            by: Address of the link.

        If cancelled, the announcement is lost.

        Raises:
            ActorStoppedError: The runtime has closed.
        """

    @abstractmethod
    async def add_listener(self, address: str, ref: ActorRef[Delivery]) -> None:
        """Deliver messages for `address` to `ref`, from the return of this call on.

        In a sandbox the row is in the MiniBUS only. For a core component (sync manager,
        address allocation) the row is in the Message BUS, and the component may then send from
        the address and from those below it.

        Args:
            address: The address.
            ref: The actor that gets the messages.

        If cancelled, the listener has been added.

        Raises:
            ActorStoppedError: The runtime has closed; of a core component only.
        """

    @abstractmethod
    async def remove_listener(self, address: str, ref: ActorRef[Delivery]) -> None:
        """Stop the deliveries of `add_listener` at once. Idempotent.

        Args:
            address: The address.
            ref: The actor that got the messages.

        The call does not wait.

        Raises:
            ActorStoppedError: The runtime has closed; of a core component only.
        """


class MiniBus:
    """The router of one sandbox: it delivers the messages for its components (BUS-04).

    Calls never wait. Messages that come before their first listener are kept for the listener.
    Components send by their ports, which always lead to the Message BUS (BUS-05).

    Attributes:
        name: Name, for people and traces.
    """

    def __init__(self, name: str, hops: HopTrace, bus: HopTrace | None = None) -> None:
        """Construct it.

        Args:
            name: Name, for people and traces.
            hops: Takes the records of deliveries to components.
            bus: Takes the record of a delivery by the Message BUS, which precedes the others; None:
                the Message BUS is in another process.
        """
        self.name: Final = name
        self._routing: RoutingCore[ActorRef[Delivery]] = RoutingCore(has_any=True)
        self._hops = hops
        self._bus = bus
        self._early: deque[Delivery] = deque()
        self._is_closed = False

    @property
    def is_gone(self) -> bool:
        """True if no component of the sandbox will read messages any more."""
        readers = self._routing.find(ANY)
        return self._is_closed or (bool(readers) and all(reader.is_gone for reader in readers))

    def try_tell(self, delivery: Delivery) -> bool:
        """Put a message into the mailboxes of its receivers; return whether one had room."""
        listeners = self._routing.find_routed(delivery.route, delivery.message.to)
        if listeners or self._is_closed or len(self._early) >= STUB_QUEUE:
            receivers = self._put(delivery, listeners)
            if not receivers:
                return False
        else:
            self._early.append(delivery)
            receivers = []
        if self._bus is not None and self._bus.is_on and delivery.purpose is not Purpose.ANNOUNCE:
            self._bus.record_delivery(delivery.message, self.name)
        if self._hops.is_on:
            self._record(delivery, receivers)
        return True

    def _put(
        self, delivery: Delivery, listeners: tuple[ActorRef[Delivery], ...]
    ) -> list[ActorRef[Delivery]]:
        # No answers slow down the senders of events, so part of the room is reserved for requests.
        is_event = is_inbox(delivery.message.to)
        receivers: list[ActorRef[Delivery]] = []
        for listener in listeners:
            is_full = is_event and listener.waiting >= EVENTS_WAITING
            if not is_full and listener.try_tell(delivery):
                receivers.append(listener)
        return receivers

    def _record(self, delivery: Delivery, receivers: list[ActorRef[Delivery]]) -> None:
        if delivery.purpose is not Purpose.ANNOUNCE:
            for receiver in receivers:
                self._hops.record_delivery(delivery.message, receiver.name)

    def add(self, address: str, listener: ActorRef[Delivery], writer: str) -> tuple[Delivery, ...]:
        """Add a receiver of messages to an address (BUS-02).

        Args:
            address: The address; `*`: all addresses without a listener of their own.
            listener: The receiver.
            writer: Name of the component that adds it, for the trace.

        Returns:
            Messages that waited for this listener and have no room in its mailbox now.
        """
        self._hops.rows(self._routing.add(address, listener, writer))
        waiting, self._early = self._early, deque()
        rejected: list[Delivery] = []
        for delivery in waiting:
            listeners = self._routing.find_routed(delivery.route, delivery.message.to)
            receivers = self._put(delivery, listeners)
            self._record(delivery, receivers)
            if not receivers:
                (rejected if listeners else self._early).append(delivery)
        return tuple(rejected)

    def remove(self, address: str, listener: ActorRef[Delivery], writer: str) -> None:
        """Remove a receiver. Idempotent.

        Args:
            address: The address.
            listener: The receiver.
            writer: Name of the component that removes it, for the trace.
        """
        self._hops.rows(self._routing.remove(address, listener, writer))

    def close(self) -> tuple[Delivery, ...]:
        """Close the router; return the messages that wait for a first listener."""
        self._is_closed = True
        waiting, self._early = tuple(self._early), deque()
        return waiting
