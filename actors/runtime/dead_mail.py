"""What becomes of messages in the mailboxes of actors that are gone."""

from typing import final

from typing_extensions import override

from actors.kit.actor import ActorRef
from actors.kit.counters import Counters
from actors.kit.dead_letters import DeadLetters
from actors.kit.delivery import Delivery
from actors.runtime.bus_messages import BusMessage, Lost
from specs.reply_code import Code

__all__ = ["DeadMail"]


@final
class DeadMail(DeadLetters):
    """Counts them all; requests among them are answered 503 by the Message BUS."""

    def __init__(self) -> None:
        self._bus: ActorRef[BusMessage] | None = None
        self._counters = Counters()

    def attach(self, bus: ActorRef[BusMessage], counters: Counters) -> None:
        """Say who answers, and where to count."""
        self._bus = bus
        self._counters = counters

    @override
    def lost(self, actor: str, message: object) -> None:
        self._counters.dead_letter(actor)
        if isinstance(message, Delivery) and self._bus is not None:
            self._bus.try_tell(Lost(message, Code.UNAVAILABLE, "the receiver is gone"))
