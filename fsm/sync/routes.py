"""The routes of an object's changes, at the reporter's end and at an observer's runtime.

There is exactly one route to each runtime that observes an object (I-D12): the route of the last
request of its sync manager, which is the node or a link. It is used as soon as an observer there is
active. When the link to a runtime is gone or another one, changes go by the node until it asks
again.

The observers of a runtime get changes by a path at a node, or by the live link to the reporter's
runtime, never by both (P2P-30, SYN-27). A link is used as soon as one is live, unless an observer
excludes links; it is left when it is no longer live, or no longer leads there. One move is made at
a time, and the new route is set before the old one is given up. The reporter uses the route of the
last request it got, so if that is in doubt the request is repeated.
"""

from collections.abc import Callable
from enum import Enum, auto
from typing import Final, Protocol


class Moving(Enum):
    """The result of a move."""

    DONE = auto()
    """The reporter's end uses the new route."""

    REFUSED = auto()
    """The reporter's end still uses the old route."""

    UNSURE = auto()
    """It is unknown which route the reporter's end uses, since no answer came."""


class ObserverRoute:
    """The route by which the changes of one object come to an observing runtime.

    Args:
        move: Has the changes sent by a link, or by the node if it is None. The host then calls
            `moved`.

    Attributes:
        used: The link by which changes come; None: they come by the node.
    """

    def __init__(self, move: Callable[[str | None], None]) -> None:
        self._request_move: Final = move
        self.used: str | None = None
        self._is_open = False
        self._link: str | None = None
        self._barred: str | None = None
        self._preferences: Final[dict[str, bool | None]] = {}
        self._is_moving = False
        self._is_unsure = False

    @property
    def may_use_links(self) -> bool:
        """True if no observer excludes links."""
        return False not in self._preferences.values()

    @property
    def wants_link(self) -> bool:
        """True if a link may be set up for this object alone."""
        return self.may_use_links and True in self._preferences.values()

    @property
    def anybody(self) -> str | None:
        """Return an observer in whose name the route may be changed for all."""
        return next(iter(self._preferences), None)

    def is_wanted_by(self, observer: str) -> bool:
        """Return whether an observer wants the object, and has not left."""
        return observer in self._preferences

    def prefer(self, observer: str, *, p2p: bool | None) -> None:
        """Note the preference of an observer.

        Args:
            observer: Address of the observer.
            p2p: True: by a link only; False: by the node only; None: either.
        """
        self._preferences[observer] = p2p
        self._move()

    def left(self, observer: str) -> None:
        """Note that an observer has left."""
        self._preferences.pop(observer, None)
        self._move()

    def opened(self, link: str | None, barred: str | None = None) -> None:
        """Note the route by which the first observer subscribed.

        Args:
            link: The link; None: the node.
            barred: A link that failed before and is not tried again.
        """
        self._is_open, self.used, self._link = True, link, link or barred
        self._barred = barred
        self._move()

    def asked(self, link: str | None) -> None:
        """Note that another observer subscribed by a route, and was answered.

        If that route is not the one in use, the reporter's end may use it now. During a move it is
        unknown which of the two requests reached the reporter last.
        """
        self._is_unsure = self._is_unsure or self._is_moving or link != self.used
        self._move()

    def link_is(self, link: str | None) -> None:
        """Note which live link leads to the reporter's runtime; None: none does.

        If a link ends during a move to it, and is back before the end of the move, it was lost at
        the reporter's end, too, which sends by the node again.
        """
        if link != self._link:
            self._barred = None
            self._is_unsure = self._is_unsure or self._is_moving
        self._link = link
        self._move()

    def moved(self, link: str | None, how: Moving) -> None:
        """Note the result of a move; changes in the meantime may cause the next one.

        Args:
            link: The link moved to; None: the node.
            how: The result of the move.
        """
        self._is_moving = False
        if how is Moving.DONE:
            self.used = link
        elif link is not None:
            self._barred = link
            self._is_unsure = self._is_unsure or how is Moving.UNSURE
        self._move()

    def _move(self) -> None:
        if self._is_moving or not self._is_open:
            return
        target = self._link if self.may_use_links and self._link != self._barred else None
        if target != self.used or self._is_unsure:
            self._is_moving, self._is_unsure = True, False
            self._request_move(target)


class RoutesPort(Protocol):
    """The calls of the routes to observers to their host; none of them calls the routes."""

    def add_link(self, link: str) -> None:
        """Send the changes of the object over a link, too."""

    def remove_link(self, link: str) -> None:
        """Stop sending the changes of the object over a link."""

    def set_reached(self, *, is_all: bool) -> None:
        """Note whether links reach all runtimes with observers of the object.

        If they do, the node need not be told of the object's children.
        """


class ReportRoutes:
    """The links to the observers of one object that is reported here.

    Args:
        port: The host.
        runtime: Address of the runtime; its own observers need no route.

    Attributes:
        asked: The link by which the last subscription of a runtime came, by runtime.
    """

    def __init__(self, port: RoutesPort, runtime: str = "") -> None:
        self._port: Final = port
        self._runtime = runtime
        self.asked: Final[dict[str, str]] = {}
        self._used: Final[dict[str, str]] = {}
        self._is_reached = False

    def ask(self, runtime: str, link: str | None) -> None:
        """Note the route of a runtime's last subscription; None: the node."""
        if link is None:
            self.asked.pop(runtime, None)
        else:
            self.asked[runtime] = link

    def counts(self, runtime: str) -> None:
        """Use the route of the last subscription for a runtime with an active observer."""
        used, link = self._used.pop(runtime, None), self.asked.get(runtime)
        if link is not None:
            self._used[runtime] = link
        if used is not None and used != link:
            self._port.remove_link(used)
        if link is not None and used != link:
            self._port.add_link(link)

    @property
    def direct(self) -> frozenset[str]:
        """The runtimes that get the changes by a link."""
        return frozenset(self._used)

    @property
    def is_used(self) -> bool:
        """True if a runtime has subscribed by a link."""
        return bool(self.asked or self._used or self._is_reached)

    def reach(self, active: tuple[str, ...]) -> None:
        """Note whether links reach all runtimes with an active observer."""
        direct = self.direct
        is_all = bool(direct) and direct.issuperset(
            each for each in active if each != self._runtime
        )
        self._set_reached(is_all=is_all)

    def _set_reached(self, *, is_all: bool) -> None:
        if is_all != self._is_reached:
            self._is_reached = is_all
            self._port.set_reached(is_all=is_all)

    def left(self, active: tuple[str, ...], asking: tuple[str, ...] = ()) -> None:
        """Note which runtimes still have observers of the object, or requests for it.

        Args:
            active: Runtimes with an active observer.
            asking: Runtimes with a subscription that waits for a decision.
        """
        for each in [each for each in self.asked if each not in {*active, *asking}]:
            del self.asked[each]
        for each in [each for each in self._used if each not in active]:
            self._port.remove_link(self._used.pop(each))

    def forget(self) -> None:
        """Note that the object is gone."""
        self.left(())
        self.reach(())

    def link_is(self, runtime: str, link: str | None) -> None:
        """Note which link leads to a runtime now; None: none does."""
        if self.asked.get(runtime, link) != link:
            del self.asked[runtime]
        if self._used.get(runtime, link) != link:
            self._port.remove_link(self._used.pop(runtime))
            self._set_reached(is_all=False)
