"""What the bus holds of a connection: a way to write that never waits."""

from collections.abc import Iterable
from enum import Enum, auto, unique
from typing import final

from actors.kit.actor import ActorRef
from actors.node.door import Door
from actors.node.outbox import Outbox
from fsm.cores.node_session_terms import Liveness, Parcel
from transports.errors import Farewell

__all__ = ["Nudge", "Port"]


@final
@unique
class Nudge(Enum):
    """What a connection is told; what there is to write stands in its outbox."""

    WRITE = auto()
    GRANTED = auto()
    LEAVE = auto()


@final
class Port:
    """The bus's end of one connection.

    Attributes:
        number: Never used twice in a node.
        name: Name of the link.
        door: How the link writes the protocol.
        farewell: How the link is closed when it is to be left.
    """

    __slots__ = ("_connection", "_outbox", "door", "farewell", "name", "number")

    def __init__(
        self,
        number: int,
        name: str,
        door: Door,
        outbox: Outbox,
        connection: ActorRef[Nudge],
    ) -> None:
        self.number = number
        self.name = name
        self.door = door
        self.farewell = Farewell.DONE
        self._outbox = outbox
        self._connection = connection

    @property
    def liveness(self) -> Liveness:
        """How it is noticed that the peer is gone."""
        return self.door.liveness

    def put(self, parcel: Parcel) -> bool:
        """Have a parcel written; False: the peer reads too slowly, or is gone."""
        if not self._outbox.put(parcel):
            return False
        self._nudge()
        return True

    def refill(self, parcels: Iterable[Parcel]) -> None:
        """Have what waited for the session written before anything else."""
        self._outbox.refill(parcels)
        self._nudge()

    def granted(self) -> None:
        """Tell that the peer has a session: its handshake is over."""
        self._connection.try_tell(Nudge.GRANTED)

    def finish(self, farewell: Farewell) -> None:
        """Write what is left, then say goodbye."""
        self.farewell = farewell
        self._leave()

    def cut(self, farewell: Farewell) -> list[Parcel]:
        """Leave at once, and give back what was not written."""
        self.farewell = farewell
        unsent = self._outbox.close()
        self._leave()
        return unsent

    def _nudge(self) -> None:
        if self._outbox.is_idle:
            self._outbox.is_idle = False
            self._connection.try_tell(Nudge.WRITE)

    def _leave(self) -> None:
        if not self._outbox.is_leaving:
            self._outbox.is_leaving = True
            self._connection.try_tell(Nudge.LEAVE)
