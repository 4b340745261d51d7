"""What a runtime left at another node comes first; part of the bus's task."""

import math
from typing import Final, final

import attrs

from actors.node.group.held_links import HeldLinks
from specs.limits.node import HAND_OVER_TIMEOUT

__all__ = ["LeftBehind"]


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
        self._awaited[runtime] = _Awaited(node, link, now + HAND_OVER_TIMEOUT)

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
        return next((one.until for one in self._awaited.values()), math.inf)

    def tick(self, now: float) -> None:
        """Wait no longer for nodes that take too long.

        Args:
            now: Seconds on the host's clock.
        """
        for runtime, awaited in tuple(self._awaited.items()):
            if awaited.until <= now:
                self.over(runtime)
