"""The allowed observers of an object: its reporter is not asked about them (SYN-04, SYN-11).

Invited and allowed observers are; of a public object all are. An observer that was expelled
is no longer: when it asks again, its reporter decides, even if the object is public
(SYN-18, SYN-21).
"""

from typing import Final, final

from specs.limits.sync import MAX_GUESTS

__all__ = ["ALLOWED", "PUBLIC", "AllowedObservers"]

ALLOWED: Final = "invited"
PUBLIC: Final = "public"


@final
class AllowedObservers:
    """The allowed observers of one object.

    Args:
        allowed: Observers allowed from the beginning; at most `MAX_GUESTS` are taken.
        expelled: Observers that are not allowed although the object is public; as many at most.
        is_public: Whether all other observers are allowed.
    """

    def __init__(
        self,
        allowed: tuple[str, ...] = (),
        expelled: tuple[str, ...] = (),
        *,
        is_public: bool = False,
    ) -> None:
        self._allowed = dict.fromkeys(allowed[:MAX_GUESTS])
        self._is_public = is_public
        self._expelled = dict.fromkeys(expelled[:MAX_GUESTS])
        self._shut_out: dict[str, None] = {}
        self._news: dict[str, None] = {}

    def __len__(self) -> int:
        return len(self._allowed)

    @property
    def is_public(self) -> bool:
        """Whether all observers are allowed but those that were expelled."""
        return self._is_public

    @property
    def allowed(self) -> tuple[str, ...]:
        """The observers that were invited or allowed, in that order."""
        return tuple(self._allowed)

    @property
    def expelled(self) -> tuple[str, ...]:
        """The observers that were expelled from a public object, in that order."""
        return tuple(self._expelled)

    def said_of(self, observer: str) -> bool | None:
        """Return whether an observer was allowed (True) or expelled (False); None: neither."""
        if observer in self._allowed:
            return True
        return False if observer in self._expelled else None

    def news(self) -> tuple[str, ...]:
        """Return the observers that were allowed or expelled since the last call."""
        said, self._news = tuple(self._news), {}
        return said

    def welcome(self, observer: str) -> str:
        """Return why an observer is allowed; empty: its reporter is to be asked."""
        if observer in self._allowed:
            return ALLOWED
        return PUBLIC if self._is_public and observer not in self._expelled else ""

    def allow(self, observer: str) -> bool:
        """Allow an observer; False: there is no room for one more."""
        if observer not in self._allowed and len(self) >= MAX_GUESTS:
            return False
        self._news[observer] = None
        self._shut_out.pop(observer, None)
        self._allowed[observer] = None
        self._expelled.pop(observer, None)
        return True

    def expel(self, observer: str) -> None:
        """Withdraw the allowance of an observer.

        Beyond `MAX_GUESTS` the observers that were expelled first are forgotten.
        """
        self._allowed.pop(observer, None)
        self._news[observer] = None
        _note(self._shut_out, observer)
        if self._is_public:
            _note(self._expelled, observer)

    def may_renew(self, observer: str) -> bool:
        """Return whether an observer whose subscription ended may renew it without a new decision.

        An observer that was expelled may not: it may not know of that yet.
        """
        return observer not in self._shut_out

    def asks_anew(self, observer: str) -> None:
        """Note that an observer subscribes anew: it knows that its subscription has ended."""
        self._shut_out.pop(observer, None)


def _note(expelled: dict[str, None], observer: str) -> None:
    expelled[observer] = None
    if len(expelled) > MAX_GUESTS:
        del expelled[next(iter(expelled))]
