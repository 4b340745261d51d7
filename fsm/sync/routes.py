"""Routes by which changes of an object are sent: over the message node or over a P2P link.

Each runtime that observes an object gets the changes by exactly one route (I-D12): the route of the
last request of its sync manager. The route is used as soon as an observer in that runtime is
active. When the link to a runtime ends or is replaced, changes are sent over the node until the
runtime subscribes again. `ReportRoutes` holds these routes for the reporter's runtime.

`ObserverRoute` chooses the route for an observing runtime: the node, or the live link to the
reporter's runtime, never both (P2P-30, SYN-27). A link is used as soon as one is live, unless an
observer excludes links; the route goes back to the node when the link ends or no longer leads to
that runtime. Only one change of the route is under way at a time, and the new route is set before
the old one is removed. The reporter uses the route of the last request it got, so if that is in
doubt the request is repeated.
"""

from collections.abc import Callable
from enum import Enum, auto
from typing import Final, Protocol


class Moving(Enum):
    """Result of an attempt to change the route of an object's changes."""

    DONE = auto()
    """The reporter's runtime uses the new route."""

    REFUSED = auto()
    """The reporter's runtime still uses the old route."""

    UNSURE = auto()
    """No answer came, so the route that the reporter's runtime uses is unknown."""


class ObserverRoute:
    """Choice of the route by which the changes of one object come to an observing runtime.

    Args:
        move: Requests that changes are sent over a link, or over the node if the argument is
            None. The host then calls `moved`.

    Attributes:
        used: The link over which changes come; None: they come over the node.
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
        """Return an observer in whose name the route may be changed for all, or None."""
        return next(iter(self._preferences), None)

    def is_wanted_by(self, observer: str) -> bool:
        """Return whether an observer has stated its preference for the object, and has not left."""
        return observer in self._preferences

    def prefer(self, observer: str, *, p2p: bool | None) -> None:
        """Set the preference of an observer between link and node, and change the route if needed.

        Args:
            observer: Address of the observer.
            p2p: True: by a link only; False: by the node only; None: either.
        """
        self._preferences[observer] = p2p
        self._move()

    def left(self, observer: str) -> None:
        """Remove an observer that has left, and change the route if needed."""
        self._preferences.pop(observer, None)
        self._move()

    def opened(self, link: str | None, barred: str | None = None) -> None:
        """Set the route by which the first observer subscribed.

        Args:
            link: The link; None: the node.
            barred: A link that failed before and is not tried again.
        """
        self._is_open, self.used, self._link = True, link, link or barred
        self._barred = barred
        self._move()

    def asked(self, link: str | None) -> None:
        """Take into account that another observer subscribed by a route, and was answered.

        If that route is not the one in use, the reporter's runtime may have switched to it. While
        the route is being changed, it is unknown which of the two requests reached the reporter
        last.
        """
        self._is_unsure = self._is_unsure or self._is_moving or link != self.used
        self._move()

    def link_is(self, link: str | None) -> None:
        """Set the live link that leads to the reporter's runtime; None: no link does.

        A link may end and return while the route is being moved to it. Then the reporter's runtime
        lost the link as well, and sends over the node again.
        """
        if link != self._link:
            self._barred = None
            self._is_unsure = self._is_unsure or self._is_moving
        self._link = link
        self._move()

    def moved(self, link: str | None, how: Moving) -> None:
        """Take the result of a change of the route; circumstances may require another one at once.

        Args:
            link: The link that was to be used; None: the node.
            how: The result.
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
    """Callbacks of `ReportRoutes` to its host; none of them may call the routes."""

    def add_link(self, link: str) -> None:
        """Send the changes of the object over this link, too."""

    def remove_link(self, link: str) -> None:
        """Stop sending the changes of the object over this link."""

    def set_reached(self, *, is_all: bool) -> None:
        """Store whether links reach all runtimes with observers of the object.

        If they do, messages about the object's children need not be sent to the node.
        """


class ReportRoutes:
    """Routes by which a reporter's runtime sends the changes of one object to observing runtimes.

    Args:
        port: The host.
        runtime: Address of the reporter's runtime; observers in it need no route.

    Attributes:
        asked: For each runtime, the link over which its last subscription came.
    """

    def __init__(self, port: RoutesPort, runtime: str = "") -> None:
        self._port: Final = port
        self._runtime = runtime
        self.asked: Final[dict[str, str]] = {}
        self._used: Final[dict[str, str]] = {}
        self._is_reached = False

    def ask(self, runtime: str, link: str | None) -> None:
        """Store the route over which a runtime subscribed last; None: the node."""
        if link is None:
            self.asked.pop(runtime, None)
        else:
            self.asked[runtime] = link

    def counts(self, runtime: str) -> None:
        """Send changes to a runtime with an active observer by the route of its subscription."""
        used, link = self._used.pop(runtime, None), self.asked.get(runtime)
        if link is not None:
            self._used[runtime] = link
        if used is not None and used != link:
            self._port.remove_link(used)
        if link is not None and used != link:
            self._port.add_link(link)

    @property
    def direct(self) -> frozenset[str]:
        """The runtimes that get the changes over a link."""
        return frozenset(self._used)

    @property
    def is_used(self) -> bool:
        """True if any runtime subscribed, or gets changes, over a link."""
        return bool(self.asked or self._used or self._is_reached)

    def reach(self, active: tuple[str, ...]) -> None:
        """Check whether links reach all runtimes with an active observer, and report a change."""
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
        """Remove the routes of all runtimes but those that still observe the object or asked to.

        Args:
            active: Runtimes with an active observer.
            asking: Runtimes with a subscription that waits for a decision.
        """
        for each in [each for each in self.asked if each not in {*active, *asking}]:
            del self.asked[each]
        for each in [each for each in self._used if each not in active]:
            self._port.remove_link(self._used.pop(each))

    def forget(self) -> None:
        """Remove all routes, since the object is deleted."""
        self.left(())
        self.reach(())

    def link_is(self, runtime: str, link: str | None) -> None:
        """Drop routes over older links to a runtime; `link` leads there now, None: no link does."""
        if self.asked.get(runtime, link) != link:
            del self.asked[runtime]
        if self._used.get(runtime, link) != link:
            self._port.remove_link(self._used.pop(runtime))
            self._set_reached(is_all=False)
