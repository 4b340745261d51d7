"""A link as a listener of what is told in its runtime to whoever follows it (P2P-25, P2P-30)."""

from collections.abc import Callable
from typing import Protocol, final

import attrs
import trio

from actors.kit.delivery import Delivery
from fsm.cores.branch import BranchCore, Taken

__all__ = ["LinkListener", "Listener"]


class Listener(Protocol):
    """Whoever is in a bus's table."""

    @property
    def name(self) -> str:
        """Name of who gets it, for people and traces."""

    @property
    def is_gone(self) -> bool:
        """Whether nobody will ever read there again."""

    def try_tell(self, message: Delivery) -> bool:
        """Put a message where it is read, if there is room; tell whether there was."""


@final
@attrs.frozen
class LinkListener:
    """Sends what it is given out by one link of a stub, whatever it was found under.

    Attributes:
        stub: Whoever the link's address leads to.
        branch: What waits until all that went by the node has arrived.
        waits: Told when something begins to wait: then `flush` is due at a time.
    """

    stub: Listener
    link: str
    branch: BranchCore = attrs.field(eq=False)
    waits: Callable[["LinkListener"], None] = attrs.field(eq=False)

    @property
    def name(self) -> str:
        """Name of the stub's place."""
        return self.stub.name

    @property
    def is_gone(self) -> bool:
        """Whether the stub is gone for good."""
        return self.stub.is_gone

    def try_tell(self, message: Delivery) -> bool:
        """Give a message to the stub, for this link, behind what waits."""
        match self.branch.take(message.message, trio.current_time()):
            case Taken.GOES:
                return self.stub.try_tell(Delivery(message.message, self.link))
            case Taken.WAITS:
                self.waits(self)
                return True
            case Taken.FULL:
                return False

    def flush(self, now: float) -> list[Delivery]:
        """Give the stub what waits no longer; return what it has no room for."""
        due = (Delivery(message, self.link) for message in self.branch.due(now))
        return [delivery for delivery in due if not self.stub.try_tell(delivery)]
