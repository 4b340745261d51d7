"""The links that are answered later; part of the bus's task.

They wait until rows are written, or until what their runtimes left at other nodes has come. The
other side of that is a node that goes down, which still reads the links of sessions that are at
other nodes already.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final, final

import attrs

from actors.node.links.port import Port
from actors.node.session.exchange import Exchange
from fsm.group.kinds import Kind
from fsm.group.moves import GiveUp
from specs.limits.group import GROUP_READ_OUT, GROUP_TERM
from specs.limits.node import HAND_OVER_TIMEOUT


@final
class HeldLinks:
    """Counts for how many writes each link waits.

    Args:
        ports: The links, by number.
    """

    def __init__(self, ports: Mapping[int, Port]) -> None:
        self._ports: Final = ports
        self._waits: Counter[int] = Counter()

    def hold(self, port: Port | None) -> int | None:
        """Have a link wait for one write more; return its number, None if there is no link."""
        if port is None:
            return None
        port.hold()
        self._waits[port.number] += 1
        return port.number

    def release(self, number: int | None) -> None:
        """Note that a link waits for one write less."""
        if number is None:
            return
        self._waits[number] -= 1
        if self._waits[number] <= 0:
            del self._waits[number]
            port = self._ports.get(number)
            if port is not None:
                port.release()

    def release_all(self, numbers: Iterable[int]) -> None:
        """Note that links wait for one write less, each time that one is named."""
        for number in numbers:
            self.release(number)

    def forget(self, number: int) -> None:
        """Note that a link is to be left. Idempotent."""
        self._waits.pop(number, None)

    def clear(self) -> None:
        """Wait for nothing any more: all links are left."""
        self._waits.clear()


@final
@attrs.frozen
class _Awaited:
    """A node that is to hand over what waits there for a runtime.

    Attributes:
        link: Number of the link that is held until then.
    """

    node: str
    link: int | None
    until: float


@final
class LeftBehind:
    """The links of runtimes that have just come from other nodes.

    Args:
        held: The links that are held.
    """

    def __init__(self, held: HeldLinks) -> None:
        self._held: Final = held
        self._awaited: dict[str, _Awaited] = {}

    def begin(self, runtime: str, node: str, link: int | None, now: float) -> None:
        """Note that a link is held until a node has handed over what waits there.

        Args:
            runtime: Address of the runtime.
            node: The node that had its session.
            link: Number of the link; None: there is none.
            now: Seconds on the host's clock.
        """
        self.over(runtime)
        # The other node does not know yet; this one is fenced if it cannot say so.
        self._awaited[runtime] = _Awaited(node, link, now + GROUP_TERM)

    def written(self, key: str, now: float) -> None:
        """Note that a row is written: if it is a session's, the other node can know of it.

        Args:
            key: Key of the row.
            now: Seconds on the host's clock.
        """
        kind, _, runtime = key.partition("/")
        awaited = self._awaited.get(runtime) if kind == Kind.SESSION else None
        if awaited is not None:
            until = min(awaited.until, now + HAND_OVER_TIMEOUT)
            self._awaited[runtime] = attrs.evolve(awaited, until=until)

    def is_from(self, runtime: str, node: str) -> bool:
        """Return whether what a node sends for a runtime was left there.

        Args:
            runtime: Address of the runtime.
            node: The node that sends it.
        """
        awaited = self._awaited.get(runtime)
        return awaited is not None and awaited.node == node

    def over(self, runtime: str) -> None:
        """Note that everything is handed over, or nothing comes any more. Idempotent."""
        awaited = self._awaited.pop(runtime, None)
        if awaited is not None:
            self._held.release(awaited.link)

    def lose(self, node: str) -> None:
        """Note that a node is gone."""
        for runtime, awaited in tuple(self._awaited.items()):
            if awaited.node == node:
                self.over(runtime)

    def deadline(self) -> float:
        """Return when `tick` is due."""
        return min((one.until for one in self._awaited.values()), default=math.inf)

    def tick(self, now: float) -> None:
        """Wait no longer for nodes that take too long.

        Args:
            now: Seconds on the host's clock.
        """
        for runtime, awaited in tuple(self._awaited.items()):
            if awaited.until <= now:
                self.over(runtime)


@final
class ReadOut:
    """The sessions that other nodes have taken up while this one still reads their links.

    Args:
        exchange: The sessions of this node.
    """

    def __init__(self, exchange: Exchange) -> None:
        self._exchange: Final = exchange
        self._given_up: Final[dict[str, tuple[GiveUp, float]]] = {}

    def waits(self, given_up: GiveUp, now: float) -> bool:
        """Return whether a session that another node has taken up stays here for a moment.

        It does while its link is read: what the runtime sent over it was sent before it went.

        Args:
            given_up: The session.
            now: Seconds on the host's clock.
        """
        if not self._exchange.departure.has_begun or not self._is_read(given_up.runtime):
            return False
        self._given_up[given_up.runtime] = (given_up, now + GROUP_READ_OUT)
        return True

    def is_moved(self, runtime: str) -> bool:
        """Return whether a session that is here for a moment is another node's.

        Args:
            runtime: Address of the runtime.
        """
        return runtime in self._given_up

    def over(self, now: float) -> list[GiveUp]:
        """Return the sessions that are waited for no longer.

        Args:
            now: Seconds on the host's clock.
        """
        done = [
            runtime
            for runtime, (_, until) in self._given_up.items()
            if until <= now or not self._is_read(runtime)
        ]
        return [self._given_up.pop(runtime)[0] for runtime in done]

    def _is_read(self, runtime: str) -> bool:
        session = self._exchange.sessions.get(runtime)
        return session is not None and session.port is not None

    def deadline(self) -> float:
        """Return when `over` is due."""
        return next((until for _, until in self._given_up.values()), math.inf)
