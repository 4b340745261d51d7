"""What becomes of messages that a peer does not take in (RELIABILITY L1, L2)."""

from itertools import chain
from typing import TYPE_CHECKING, Final, final

import structlog

from actors.node.links.port import Port
from actors.node.session.session import Session
from fsm.session.node_session_io import LinkLost, Parcel, Shed, Wait
from specs.link_end import LinkEnd
from specs.reply_code import Code, DropReason
from transports.errors import Farewell

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from actors.node.session.exchange import Exchange

__all__ = ["Overload"]

_TOO_MUCH: Final = "too many messages wait in the node"

_log = structlog.get_logger("actors.node")


@final
class Overload:
    """Frees the node of peers that do not read; part of the bus's task."""

    def __init__(self, exchange: "Exchange") -> None:
        self._exchange: Final = exchange
        self._is_shedding = False

    def overrun(self, session: Session, port: Port, parcel: Parcel) -> None:
        """Close a link whose outbox is full; what waited there waits for the session now."""
        _log.warning("slow consumer", runtime=session.core.runtime, link=port.name)
        unsent = port.cut(Farewell.SLOW_CONSUMER)
        self._let_go(session, port)
        self.keep(session, [*unsent, parcel])

    def lasting(self, unsent: list[Parcel]) -> list[Parcel]:
        """Return what a link did not write and its session is to get over the next.

        What session control said is left out, it was that link's own business: a token that
        it was to get means the wrong thing over another link, an answer to a ping nothing.
        """
        manager = self._exchange.tables.addresses.session
        kept = [parcel for parcel in unsent if parcel.message.from_ != manager]
        for _ in range(len(unsent) - len(kept)):
            self._exchange.witness.counters.drop(DropReason.SESSION_GONE)
        return kept

    def keep(self, session: Session, parcels: list[Parcel]) -> None:
        """Have messages wait for a session, in order, while there is room."""
        exchange = self._exchange
        for parcel in self.lasting(parcels):
            if exchange.sessions.get(session.core.runtime) is session:
                exchange.feed(session, Wait(parcel))
            else:
                exchange.witness.drop(parcel.message, DropReason.SESSION_GONE)

    def check(self) -> None:
        """Free an eighth of the node's budget if it is exceeded, from whom holds most.

        What is given up is answered, or counted; answers may make others hold more,
        so this goes on until there is room, but is not begun anew by them.
        """
        budget = self._exchange.budget
        if self._is_shedding or not budget.is_exceeded:
            return
        self._is_shedding = True
        while budget.is_exceeded:
            held = budget.used
            for holder in budget.largest_first(self._holders()):
                self._shed(holder)
            if budget.used >= held:
                break
        self._is_shedding = False

    def _holders(self) -> "Iterator[tuple[float, Port | Session]]":
        """Yield what each answers for; those that share messages stand together.

        What is shared is freed only when all who share it have given way: of those who hold
        as much, one group after the other goes, not a part of each.
        """
        holders: list[tuple[Iterable[Parcel], int, Port | Session]] = [
            *((port.held, port.framed, port) for port in self._exchange.ports.values()),
            *((one.core.waiting, 0, one) for one in self._exchange.sessions.values()),
        ]
        groups: dict[int, list[tuple[float, Port | Session]]] = {}
        for held, framed, holder in holders:
            first = next(iter(held), None)
            if first is not None:
                share = framed + self._exchange.budget.share(held)
                groups.setdefault(id(first), []).append((share, holder))
        return chain.from_iterable(groups.values())

    def _shed(self, holder: Port | Session) -> None:
        if isinstance(holder, Session):
            _log.warning("queue shed", runtime=holder.core.runtime)
            self._exchange.feed(holder, Shed())
            return
        _log.warning("link shed", runtime=holder.runtime, link=holder.name)
        session = self._exchange.session_of(holder.number)
        unsent = holder.cut(Farewell.SLOW_CONSUMER, LinkEnd.SHED)
        self._exchange.ports.pop(holder.number, None)
        if session is not None:
            self._let_go(session, holder)
        for parcel in unsent:
            self._exchange.undeliverable(
                parcel.message, Code.TOO_LARGE, _TOO_MUCH, DropReason.OVERFLOW
            )

    def _let_go(self, session: Session, port: Port) -> None:
        self._exchange.let_go(session, port.number)
        self._exchange.feed(session, LinkLost(port.number, "slow consumer"))
