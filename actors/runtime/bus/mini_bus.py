"""The MiniBUS: router of one sandbox, and the handle its components hold."""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from typing import assert_never, final

from typing_extensions import override

from actors.kit.supervision.actor import Actor, ActorRef
from actors.kit.supervision.delivery import Delivery, Purpose
from actors.runtime.bus.messages import ListenerAdded, ListenerRemoved, Lost, MiniBusMessage
from actors.runtime.hop_trace import Hops
from fsm.bus.listeners import Router, RoutingCore
from fsm.p2p.control import Behind
from specs.limits.protocol import STUB_QUEUE
from specs.message import Message
from specs.reply_code import Code, DropReason
from specs.trace import Op

__all__ = ["MiniBus", "MiniBusPort"]


class MiniBusPort(ABC):
    """What a component holds of its MiniBUS: all it can do to the rest of the runtime.

    Attributes:
        url: The component's own address.
    """

    url: str

    @abstractmethod
    async def post(self, message: Message, by: str | None = None) -> None:
        """Hand a message to the Message BUS; waits while that is full.

        A request's answers, provisional ones and the router's own (404, 408, 503)
        included, come to the listener of its `from`.

        Args:
            message: Its `from` must belong to the component (BUS-12).
            by: Under which of its addresses the component submits; a P2P handler
                names the connection it read the message from.

        Cancelled: the message was not posted.
        """

    @abstractmethod
    async def request(self, message: Message) -> Message:
        """Post a request and return its one final answer, a synthetic one included.

        Provisional answers only prolong the wait. Not for use in `handle` when the
        answer needs the caller's own mailbox: spawn it.

        Cancelled: the answer, when it comes, is dropped.
        """

    async def insist(self, message: Message, attempts: int) -> Message:  # noqa: ARG002 - see below
        """Do as `request`, but have the message sent again while nobody answers (MSG-07).

        It is the same message, with the same id: whoever has done it does not do it again,
        but says again what came of it. Where the Message BUS is in another process, it is
        sent once.

        Args:
            message: As for `request`.
            attempts: How often it is sent at most; each attempt has its own time.
        """
        return await self.request(message)

    @abstractmethod
    async def hand_back(self, messages: Sequence[Message], by: str | None = None) -> None:
        """Give back what this stub cannot deliver any more: it is routed again.

        Order is kept and nothing is admitted twice. In the form it was delivered in:
        without the stub's own stamp in `via`. No messages: nothing is on its way by the
        link `by`, which has ended.
        """

    @abstractmethod
    async def announce(self, behind: Behind, by: str) -> None:
        """Tell the bus what the messages of a pair, read from a link, follow (C-20).

        Args:
            behind: As the peer announced it.
            by: The link's address.
        """

    @abstractmethod
    async def add_listener(self, address: str, ref: ActorRef[Delivery]) -> None:
        """Deliver to `ref` what comes for `address`; returns when that holds.

        In a sandbox the row is the MiniBUS's only. For a core component (sync
        manager, address allocation) it is the Message BUS's, and the address and
        what is below it become the component's to send from.
        """

    @abstractmethod
    async def remove_listener(self, address: str, ref: ActorRef[Delivery]) -> None:
        """End it; nothing is delivered after this returned. Repeated is fine."""


@final
class MiniBus(Actor[MiniBusMessage]):
    """The router of one sandbox: everything that comes for its components (BUS-04).

    What comes before the first component listens waits for it. The way out is the
    components' ports: it always leads to the Message BUS (BUS-05).
    """

    def __init__(self, lost: Callable[[Lost], bool], hops: Hops) -> None:
        """Construct it.

        Args:
            lost: Tells the Message BUS what no component has room for, or listens to.
            hops: Takes the evidence.
        """
        self._routing: RoutingCore[ActorRef[Delivery]] = RoutingCore(Router.MINI_BUS)
        self._lost = lost
        self._hops = hops
        self._early: deque[Delivery] = deque()

    @override
    async def handle(self, message: MiniBusMessage) -> None:
        match message:
            case Delivery():
                self._deliver(message)
            case ListenerAdded(address, listener, writer, done):
                self._hops.rows(self._routing.add(address, listener, writer))
                done.send(None)
                while self._early:
                    self._deliver(self._early.popleft())
            case ListenerRemoved(address, listener, writer, done):
                self._hops.rows(self._routing.remove(address, listener, writer))
                done.send(None)
            case _:
                assert_never(message)

    def _deliver(self, delivery: Delivery) -> None:
        message = delivery.message
        if not self._routing and len(self._early) < STUB_QUEUE:
            self._early.append(delivery)
            return
        listeners = self._routing.find_routed(delivery.route, message.to)
        had_room = False
        for listener in listeners:
            if listener.try_tell(delivery):
                had_room = True
                if delivery.purpose is not Purpose.ANNOUNCE:
                    self._hops.say(Op.DELIVER, message, listener=listener.name)
        if not had_room and delivery.purpose is not Purpose.ANNOUNCE:
            self._lose(_undelivered(delivery, listeners))

    def _lose(self, lost: Lost) -> None:
        # Whoever waits for an answer is told 408 if not even the bus has room.
        if not self._lost(lost) and not lost.delivery.message.is_request:
            self._hops.dropped(lost.delivery.message, DropReason.OVERFLOW)


def _undelivered(delivery: Delivery, listeners: Sequence[ActorRef[Delivery]]) -> Lost:
    """Say why nobody took a message."""
    if not listeners:
        return Lost(delivery, Code.NOT_FOUND, "target not found")
    if all(one.is_gone for one in listeners):
        return Lost(delivery, Code.UNAVAILABLE, "the receiver is gone")
    return Lost(delivery, Code.TOO_LARGE, "the receiver's mailbox is full")
