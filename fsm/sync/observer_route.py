"""By which way the changes of one object come to the observers of a runtime (P2P-30, SYN-27).

By a path at a node, or by the live link to where the object is reported: never by both. A
link is taken as soon as one is live, unless an observer wants none; it is left when it is
live no longer, or leads there no more. One move is made at a time, and the new way is there
before the old one is given up; what was asked of the reporter last is what it goes by, so
where that is in doubt it is asked again.
"""

from enum import Enum, auto
from typing import Final, final

import attrs

__all__ = ["MoveTo", "Moving", "ObserverWay"]


@final
@attrs.frozen(slots=True)
class MoveTo:
    """An effect: have the changes come by this link; None: by the node. Then say `moved`."""

    link: str | None


@final
class Moving(Enum):
    """How a move went."""

    DONE = auto()
    """The reporter's end goes by it."""

    REFUSED = auto()
    """It does not, and goes by what it went by before."""

    UNSURE = auto()
    """It may or may not go by it: nothing was heard of it."""


@final
class ObserverWay:
    """The way of one object's changes.

    Attributes:
        used: The link by which they come; None: they come by the node.
    """

    def __init__(self) -> None:
        self.used: str | None = None
        self._is_open = False
        self._link: str | None = None
        self._barred: str | None = None
        self._wishes: Final[dict[str, bool | None]] = {}
        self._is_moving = False
        self._is_unsure = False

    @property
    def may_use_links(self) -> bool:
        """Whether no observer is against it."""
        return False not in self._wishes.values()

    @property
    def wants_link(self) -> bool:
        """Whether one may be set up for this object alone."""
        return self.may_use_links and True in self._wishes.values()

    @property
    def is_link_only(self) -> bool:
        """Whether all observers want to hear of the object by a link only (SC-37)."""
        return bool(self._wishes) and all(wish is True for wish in self._wishes.values())

    @property
    def anybody(self) -> str | None:
        """Return an observer, in whose name the way may be changed for all."""
        return next(iter(self._wishes), None)

    def is_wanted_by(self, observer: str) -> bool:
        """Say whether somebody wants to hear of the object, and has not left."""
        return observer in self._wishes

    def wished(self, observer: str, *, p2p: bool | None) -> list[MoveTo]:
        """Note what an observer wants: a link, none, or whatever there is."""
        self._wishes[observer] = p2p
        return self._move()

    def left(self, observer: str) -> list[MoveTo]:
        """Take it that an observer wants nothing any more."""
        self._wishes.pop(observer, None)
        return self._move()

    def opened(self, link: str | None, barred: str | None = None) -> list[MoveTo]:
        """Note by which way the first observer was let in.

        Args:
            link: The link; None: the node.
            barred: The link by which it was not: it is not tried again.
        """
        self._is_open, self.used, self._link = True, link, link or barred
        self._barred = barred
        return self._move()

    def asked(self, link: str | None) -> list[MoveTo]:
        """Note that another observer asked by a way, and was answered.

        If that is not the way in use, the reporter's end may go by it now. While the way
        moves nobody can tell which of the two was asked last.
        """
        self._is_unsure = self._is_unsure or self._is_moving or link != self.used
        return self._move()

    def link_is(self, link: str | None) -> list[MoveTo]:
        """Take it that this link leads to where the object is reported; None: none does.

        One that goes while the way moves to it, and is back before it has, was lost at the
        reporter's end, too: that goes by the node again.
        """
        if link != self._link:
            self._barred = None
            self._is_unsure = self._is_unsure or self._is_moving
        self._link = link
        return self._move()

    def moved(self, link: str | None, how: Moving) -> list[MoveTo]:
        """Take it how a move ended; what has happened meanwhile may lead to the next."""
        self._is_moving = False
        if how is Moving.DONE:
            self.used = link
        elif link is not None:
            self._barred = link
            self._is_unsure = self._is_unsure or how is Moving.UNSURE
        return self._move()

    def _move(self) -> list[MoveTo]:
        if self._is_moving or not self._is_open:
            return []
        aim = self._link if self.may_use_links and self._link != self._barred else None
        if aim == self.used and not self._is_unsure:
            return []
        self._is_moving, self._is_unsure = True, False
        return [MoveTo(aim)]
