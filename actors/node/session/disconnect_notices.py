"""Which parts of the node still have to hear that a runtime has left."""

from collections import deque
from collections.abc import Iterable
from typing import Final, final

from actors.node.messages import Component, RuntimeLeft

__all__ = ["PAUSE", "Departures"]

PAUSE: Final = 0.05
"""Seconds until a part with a full mailbox is tried again."""


@final
class Departures:
    """News for parts of the node, kept until each has room for them; part of the bus's task."""

    def __init__(self) -> None:
        self._news: deque[tuple[Component, RuntimeLeft]] = deque()

    @property
    def is_settled(self) -> bool:
        """Whether everybody knows everything."""
        return not self._news

    def tell(self, components: Iterable[Component], left: RuntimeLeft) -> None:
        """Have parts of the node told that a runtime has left."""
        self._news.extend((component, left) for component in components)

    def settle(self) -> None:
        """Tell them, in order, as far as they take it in."""
        while self._news:
            component, left = self._news[0]
            if not component.try_tell(left):
                return
            self._news.popleft()
