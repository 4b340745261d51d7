"""Who waits for the answer to a request, and by which way it may go back."""

from typing import final

import attrs

from actors.kit.actor import Reply
from actors.runtime.bus.messages import Origin
from fsm.intent import Intent, intent_of
from specs.message import Message
from specs.routing import Direction

__all__ = ["Waiter", "intent_for"]


@final
@attrs.frozen(slots=True)
class Waiter:
    """Who is to get the answer to a request.

    Attributes:
        is_ours: Whether a component of this runtime asks, a stub for itself included.
        intent: What might be done for the request; of no matter if it is ours.
        session: The node stub by whose session it came; None: it came otherwise.
        reply: The way back, if a component here awaits the answer in place.
    """

    is_ours: bool
    intent: Intent
    session: str | None = None
    reply: Reply[Message] | None = None

    def way_back(self, response: Message) -> Intent:
        """Return what may be done for the answer: who asked by the node is answered by it."""
        return Intent.NODE if self.intent is Intent.NODE else intent_of(response)


def intent_for(request: Message, direction: Direction, origin: Origin) -> Intent:
    """Return what may be done for a request, or for the answer to one that came from outside."""
    if direction is Direction.OUTGOING:
        return Intent.REACH
    # Whoever asks by a link is answered by it, if it is there still.
    return Intent.KNOWN if origin is Origin.P2P_STUB else intent_of(request)
