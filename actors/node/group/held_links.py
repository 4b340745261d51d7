"""The links that are answered later; part of the bus's task.

They wait until rows are written, or until what their runtimes left at other nodes has come. The
other side of that is a node that goes down, whose sessions wait until other nodes have them.
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
from specs.limits.group import GROUP_HANDOVER, GROUP_LINGER, GROUP_READ_OUT, GROUP_TERM
from specs.limits.node import HAND_OVER_TIMEOUT

__all__ = ["Handover", "HeldLinks", "LeftBehind"]


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
class Handover:
    """Lets runtimes go to other nodes, and what comes for them meanwhile wait and follow.

    Args:
        exchange: The sessions of this node.
    """

    def __init__(self, exchange: Exchange) -> None:
        self._exchange: Final = exchange
        self._awaited: list[str] = []
        self._given_up: Final[dict[str, tuple[GiveUp, float]]] = {}
        self._until = math.inf
        self._is_over = False

    def begin(self, now: float, *, is_possible: bool) -> None:
        """Close all links in order; what peers have sent before they hear of it is still handled.

        Args:
            now: Seconds on the host's clock.
            is_possible: Whether another node can have the sessions.
        """
        exchange = self._exchange
        if is_possible:
            for runtime, session in exchange.sessions.items():
                if session.port is not None and session.core.kept is not None:
                    self._awaited.append(runtime)
        self._until = now + (GROUP_HANDOVER if self._awaited else 0.0)
        for port in exchange.ports.values():
            port.go_away()

    def waits(self, given_up: GiveUp, now: float) -> bool:
        """Return whether a session that another node has taken up stays here for a moment.

        It does while its link is read: what the runtime sent over it was sent before it went.

        Args:
            given_up: The session.
            now: Seconds on the host's clock.
        """
        if math.isinf(self._until) or not self._is_read(given_up.runtime):
            return False
        self._given_up[given_up.runtime] = (given_up, now + GROUP_READ_OUT)
        return True

    def is_moved(self, runtime: str) -> bool:
        """Return whether a session that is here for a moment is another node's.

        Args:
            runtime: Address of the runtime.
        """
        return runtime in self._given_up

    def read_out(self, now: float) -> list[GiveUp]:
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

    def settle(self, now: float) -> bool:
        """End the sessions that are left when time is over.

        Args:
            now: Seconds on the host's clock.

        Returns:
            Whether nothing is waited for any more: also no durable message is given to the engine,
            whose answer the sender's other node is to get.
        """
        awaited = self._awaited
        while awaited and awaited[-1] not in self._exchange.sessions:
            awaited.pop()
            if not awaited:
                # Other nodes may have sent more before they heard where the last one is.
                self._until = min(self._until, now + GROUP_LINGER)
        if not self._is_over and now >= self._until:
            self._is_over = True
            self._exchange.drain()
        durable = self._exchange.durable
        return self._is_over and (durable is None or durable.is_settled)

    def deadline(self) -> float:
        """Return when `read_out` or `settle` is due."""
        due = next((until for _, until in self._given_up.values()), math.inf)
        return due if self._is_over else min(due, self._until)
