"""Who may observe an object without its reporter being asked (SYN-04, SYN-11, SYN-18, SYN-21).

Who was invited or allowed may, and of a public object everybody. Whoever was expelled has
lost that: when it asks again, its reporter decides, even if the object is public.
"""

from typing import Final, final

from specs.limits.sync import MAX_GUESTS

__all__ = ["ALLOWED", "PUBLIC", "AllowedObservers"]

ALLOWED: Final = "invited"
PUBLIC: Final = "public"


@final
class AllowedObservers:
    """The allowances of one object.

    Args:
        allowed: Who may from the beginning; at most `MAX_GUESTS` are taken.
        expelled: Who may not although everybody may; as many at most.
        is_public: Whether everybody may.
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
        """Whether everybody may, who was not expelled."""
        return self._is_public

    @property
    def allowed(self) -> tuple[str, ...]:
        """Who was invited or allowed, in that order."""
        return tuple(self._allowed)

    @property
    def expelled(self) -> tuple[str, ...]:
        """Who was expelled although everybody may, in that order."""
        return tuple(self._expelled)

    def said_of(self, observer: str) -> bool | None:
        """Say whether an observer was allowed, or expelled; None: neither."""
        if observer in self._allowed:
            return True
        return False if observer in self._expelled else None

    def news(self) -> tuple[str, ...]:
        """Return of whom something was said since this was asked last."""
        said, self._news = tuple(self._news), {}
        return said

    def welcome(self, observer: str) -> str:
        """Say why an observer may observe unasked; nothing: its reporter is to be asked."""
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
        """Withdraw what an observer was allowed.

        Of too many that were expelled the first are forgotten.
        """
        self._allowed.pop(observer, None)
        self._news[observer] = None
        _note(self._shut_out, observer)
        if self._is_public:
            _note(self._expelled, observer)

    def may_renew(self, observer: str) -> bool:
        """Say whether one that observes no more may go on, without asking like a new one.

        Whoever was expelled may not: it may not know of that yet.
        """
        return observer not in self._shut_out

    def asks_anew(self, observer: str) -> None:
        """Take it that an observer asks like a new one: it knows what has become of it."""
        self._shut_out.pop(observer, None)


def _note(expelled: dict[str, None], observer: str) -> None:
    expelled[observer] = None
    if len(expelled) > MAX_GUESTS:
        del expelled[next(iter(expelled))]
