"""A link as a listener of what is told in its runtime to whoever follows it (P2P-25, P2P-30)."""

from typing import Protocol, final

import attrs

from actors.kit.supervision.delivery import Delivery
from fsm.p2p.transfer import Behind

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
@attrs.define(eq=False)
class LinkListener:
    """Sends what it is given out by one link of a stub, whatever it was found under.

    Attributes:
        stub: Whoever the link's address leads to.
        behind: What the link announces before the first message: what went by the node may
            still be on its way (I-B7). None: it has been announced.
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

    def try_tell(self, message: Delivery) -> bool:
        """Give a message to the stub, for this link."""
        is_told = self.stub.try_tell(Delivery(message.message, self.link, behind=self.behind))
        self.behind = None if is_told else self.behind
        return is_told
