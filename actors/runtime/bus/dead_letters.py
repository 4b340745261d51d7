"""What becomes of messages in the mailboxes of actors that are gone (OBS-06)."""

from typing import final

from typing_extensions import override

from actors.kit.actor import ActorRef
from actors.kit.counters import Counters
from actors.kit.dead_letters import DeadLetters
from actors.kit.delivery import Delivery
from actors.runtime.bus.messages import BusMessage, Lost, Submitted
from specs.reply_code import Code, DropReason

__all__ = ["DeadMail"]


@final
class DeadMail(DeadLetters):
    """Counts them all; requests among them are answered 503 by the Message BUS.

    When that is gone, too, whoever asks is told so by its end; each message is a drop.
    """

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
        match message:
            case Delivery(inner):
                lost = Lost(message, Code.UNAVAILABLE, "the receiver is gone")
                if self._bus is None or not self._bus.try_tell(lost):
                    self._counters.drop(DropReason.NO_TARGET, inner, actor)
            case Submitted(inner) | Lost(Delivery(inner)):
                self._counters.drop(DropReason.NO_TARGET, inner, actor)
            case _:
                pass
