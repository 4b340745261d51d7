"""The order of messages that come to a Message BUS from outside, by nodes and by links (I-B7)."""

from collections import deque
from collections.abc import Callable
from typing import TypeAlias, final

import attrs

from actors.kit.supervision.mailbox import Reply
from actors.runtime.bus.messages import InFlight
from actors.runtime.hop_trace import HopTrace
from fsm.bus.receiving_order import PairOrderCore
from fsm.p2p.transfer import Behind
from specs.child import object_of
from specs.limits.protocol import REPLY_TIMEOUT
from specs.message import Message
from specs.trace import Op

Take: TypeAlias = Callable[[InFlight, str, float], bool]
"""Handles a message whose turn has come, with its path; says whether it counts as given."""


@final
@attrs.frozen(slots=True, eq=False)
class _CatchingUp:
    """A component waits until a link brings the events of an address."""

    address: str
    link: str
    done: Reply[None]
    until: float


@final
class Arrivals:
    """Hosts the core of pairs at the end that receives; part of the bus."""

    def __init__(self, hops: HopTrace, take: Take) -> None:
        self._hops = hops
        self._take = take
        self._order: PairOrderCore[tuple[InFlight, str]] = PairOrderCore()
        self._catching_up: list[_CatchingUp] = []

    def arrived(self, flight: InFlight, path: str, now: float) -> bool:
        """Handle a message and what waited for it, or let it wait; False: there is no room."""
        due = self._order.arrives(flight.message, path, (flight, path))
        if due is None:
            return False
        if due:
            self._take_in_order(due, now, flight)
        else:
            self._hops.say(Op.QUEUE, flight.message)
        return True

    def is_late(self, message: Message, path: str) -> bool:
        """Return whether a younger message has come by another path."""
        return self._order.is_late(message, path)

    def _take_in_order(
        self, due: list[tuple[InFlight, str]], now: float, direct: InFlight | None = None
    ) -> None:
        """Handle what is due, and what waited for it; all but `direct` have waited."""
        queue = deque(due)
        while queue:
            flight, path = queue.popleft()
            message = flight.message
            if flight is not direct:
                self._hops.say(Op.FLUSH, message)
            if self._take(flight, path, now):
                queue.extend(self._order.given(message, path, now))
        self._report_caught_up(now)

    def announced(self, behind: Behind, link: str, now: float) -> None:
        """Take from a link what the messages of a pair follow."""
        self._take_in_order(self._order.announced(behind, link, now), now)

    def expects(self, address: str, link: str) -> None:
        """Note that a link is going to announce the events of an address."""
        self._order.expects(object_of(address), address, link)

    def catch_up(self, address: str, link: str, done: Reply[None], now: float) -> None:
        """Report when a link brings the events of an address, and all before it has come.

        Args:
            done: Is answered when all earlier events have come.
        """
        self._catching_up.append(_CatchingUp(address, link, done, now + REPLY_TIMEOUT))
        self._report_caught_up(now)

    def _report_caught_up(self, now: float) -> None:
        if not self._catching_up:
            return
        behind: list[_CatchingUp] = []
        for one in self._catching_up:
            is_reached = self._order.is_reached(object_of(one.address), one.address, one.link)
            if is_reached or one.until <= now:
                one.done.send(None)
            else:
                behind.append(one)
        self._catching_up = behind

    def deadline(self) -> float:
        """Return when `tick` is due."""
        due = self._order.deadline()
        return min(due, *(one.until for one in self._catching_up)) if self._catching_up else due

    def tick(self, now: float) -> None:
        """Handle what has waited for so long that what is missing counts as lost."""
        self._take_in_order(self._order.tick(now), now)
