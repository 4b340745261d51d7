"""The MiniBUS: router of one sandbox, and the handle its components hold."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from actors.kit.actor import ActorRef
from actors.kit.delivery import Delivery
from specs.message import Message

__all__ = ["MiniBusPort"]


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

    @abstractmethod
    async def hand_back(self, messages: Sequence[Message], by: str | None = None) -> None:
        """Give back what this stub cannot deliver any more: it is routed again.

        Order is kept and nothing is admitted twice. In the form it was delivered in:
        without the stub's own stamp in `via`.
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
