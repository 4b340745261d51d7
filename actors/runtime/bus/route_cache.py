"""Messages that wait until the registry knows a way, and the ways it told (BUS-06)."""

from collections import OrderedDict, deque
from enum import Enum, auto
from typing import Final, final

import attrs

from fsm.intent import Intent
from fsm.registry.resolve.effects import Route
from specs.addresses.address import is_below
from specs.limits.protocol import STUB_QUEUE
from specs.message import Message

__all__ = ["Asking", "RouteCache", "Waiting"]

_CAPACITY: Final = 4096
"""Routes remembered; the oldest goes first, and is asked for again."""


class Asking(Enum):
    """What became of a message that had no known route."""

    ASK = auto()
    """It waits, and the registry must be asked."""

    WAIT = auto()
    """It waits behind others, who have asked."""

    FULL = auto()
    """There is no room for it."""


@final
@attrs.frozen(slots=True)
class Waiting:
    """A message, and what may be done for it.

    Attributes:
        route: Its own route; None: it goes by the route that is told.
    """

    message: Message
    intent: Intent
    route: str | None = None


@final
class RouteCache:
    """Per target: what waits, in order of arrival, and the route that was told last."""

    def __init__(self) -> None:
        self._routes: OrderedDict[tuple[str, Intent], Route] = OrderedDict()
        self._waiting: dict[str, deque[Waiting]] = {}

    def find(self, to: str, intent: Intent, now: float) -> str | None:
        """Return the route to take now; None if it must be asked, or others wait for it."""
        route = self._routes.get((to, intent))
        if route is None or to in self._waiting or route.until <= now:
            return None
        return route.url

    def wait(self, message: Message, intent: Intent) -> Asking:
        """Let a message wait for its route."""
        queue = self._waiting.get(message.to)
        if queue is None:
            if len(self._waiting) >= STUB_QUEUE:
                return Asking.FULL
            self._waiting[message.to] = deque([Waiting(message, intent)])
            return Asking.ASK
        if len(queue) >= STUB_QUEUE:
            return Asking.FULL
        queue.append(Waiting(message, intent))
        return Asking.WAIT

    def wait_behind(self, message: Message, route: str) -> Asking | None:
        """Let a message with a route of its own wait behind others to its target.

        Returns:
            What became of it; None: nobody waits, so it may go.
        """
        queue = self._waiting.get(message.to)
        if queue is None:
            return None
        if len(queue) >= STUB_QUEUE:
            return Asking.FULL
        queue.append(Waiting(message, queue[-1].intent, route))
        return Asking.WAIT

    def told(self, route: Route) -> tuple[list[Waiting], Intent | None]:
        """Take a route; return who can go by it, and what must be asked next for the rest."""
        self._routes[route.to, route.intent] = route
        if len(self._routes) > _CAPACITY:
            self._routes.popitem(last=False)
        return self._take(route.to, route.intent)

    def refused(self, to: str, intent: Intent) -> tuple[list[Waiting], Intent | None]:
        """Take it that there is none; return whom to refuse, and what to ask next."""
        self._routes.pop((to, intent), None)
        return self._take(to, intent)

    def forget(self) -> None:
        """Forget every route: the registry's tables changed."""
        self._routes.clear()

    def forget_stub(self, stub: str) -> None:
        """Forget the routes by a stub or by a link of it."""
        gone = [key for key, route in self._routes.items() if is_below(route.url, stub)]
        for key in gone:
            del self._routes[key]

    def _take(self, to: str, intent: Intent) -> tuple[list[Waiting], Intent | None]:
        queue = self._waiting.get(to, deque())
        taken: list[Waiting] = []
        while queue and queue[0].intent is intent:
            taken.append(queue.popleft())
        if queue:
            return taken, queue[0].intent
        self._waiting.pop(to, None)
        return taken, None
