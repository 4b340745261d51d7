"""What the bus holds of a connection: a way to write that never waits."""

from collections.abc import Iterable, Mapping
from enum import Enum, auto, unique
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, final

from actors.kit.supervision.actor import ActorRef
from actors.node.links.acceptor import Acceptor
from actors.node.links.outbox import Outbox
from fsm.session.node_session_io import Liveness, Parcel
from fsm.session.outbox_budget import OutboxBudget
from specs.link_end import LinkEnd
from transports.errors import CloseReason

if TYPE_CHECKING:
    from specs.identity import Identity

__all__ = ["Nudge", "Port"]

_ENDS: Final[Mapping[CloseReason, LinkEnd]] = MappingProxyType(
    {
        CloseReason.DONE: LinkEnd.CLOSED,
        CloseReason.GOING_AWAY: LinkEnd.GOING_AWAY,
        CloseReason.REFUSED: LinkEnd.REFUSED,
        CloseReason.TOO_LARGE: LinkEnd.TOO_LARGE,
        CloseReason.INTERNAL: LinkEnd.BROKEN,
        CloseReason.SLOW_CONSUMER: LinkEnd.SLOW_CONSUMER,
    }
)
"""What a farewell means where nothing more is known."""


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
        end: Why the link is left; None: it is not. The first reason counts.
        runtime: Whose session the link has; None: it has none yet.
        identity: Who vouched for that session; None: nobody did.
    """

    __slots__ = (
        "_connection", "_outbox", "door", "end", "farewell", "identity", "name", "number",
        "runtime",
    )  # fmt: skip

    def __init__(
        self,
        number: int,
        name: str,
        door: Acceptor,
        outbox: Outbox,
        connection: ActorRef[Nudge],
    ) -> None:
        self.number = number
        self.name = name
        self.door = door
        self.farewell = CloseReason.DONE
        self.end: LinkEnd | None = None
        self.runtime: str | None = None
        self.identity: Identity | None = None
        self._outbox = outbox
        self._connection = connection

    @property
    def liveness(self) -> Liveness:
        """How it is noticed that the peer is gone."""
        return self.door.liveness

    @property
    def held(self) -> Iterable[Parcel]:
        """What waits to be written, in order, what is being written included."""
        return self._outbox

    @property
    def framed(self) -> int:
        """Bytes of the frames that are being written."""
        return self._outbox.framed

    @property
    def waiting(self) -> int:
        """Messages that wait to be written."""
        return len(self._outbox)

    def count_in(self, budget: OutboxBudget) -> None:
        """Count what waits in a budget from now on."""
        self._outbox.count_in(budget)

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

    def granted(self, runtime: str) -> None:
        """Tell that the peer has the session of a runtime: its handshake is over."""
        self.runtime = runtime
        self._connection.try_tell(Nudge.GRANTED)

    def finish(self, farewell: CloseReason, end: LinkEnd | None = None) -> None:
        """Write what is left, then say goodbye."""
        self._end_by(farewell, end)
        self._leave()

    def cut(self, farewell: CloseReason, end: LinkEnd | None = None) -> list[Parcel]:
        """Leave at once, and give back what was not written."""
        self._end_by(farewell, end)
        unsent = self._outbox.close()
        self._leave()
        return unsent

    def ended(self, end: LinkEnd, farewell: CloseReason | None = None) -> None:
        """Note why the link is left, if nothing is noted yet."""
        if self.end is None:
            self.end = end
            self.farewell = farewell or self.farewell

    def _end_by(self, farewell: CloseReason, end: LinkEnd | None) -> None:
        self.farewell = farewell
        self.end = self.end or end or _ENDS[farewell]

    def _nudge(self) -> None:
        if self._outbox.is_idle:
            self._outbox.is_idle = False
            self._connection.try_tell(Nudge.WRITE)

    def _leave(self) -> None:
        if not self._outbox.is_leaving:
            self._outbox.is_leaving = True
            self._connection.try_tell(Nudge.LEAVE)
