"""By which way each runtime that observes an object is told: always by exactly one (I-D12).

The way is that by which its sync manager asked last: the node, or a link. It counts as soon
as an observer there is active. When another link leads to a runtime, or none, it is told by
the node until it asks again.
"""

from typing import Final, TypeAlias, final

import attrs

__all__ = ["KeepIn", "RuntimeWays", "SendOut", "WayEffect"]


@final
@attrs.frozen(slots=True)
class SendOut:
    """Have what is told of an object go out by a link, too."""

    url: str
    link: str


@final
@attrs.frozen(slots=True)
class KeepIn:
    """Have it go out by that link no longer."""

    url: str
    link: str


WayEffect: TypeAlias = SendOut | KeepIn


@final
class RuntimeWays:
    """The links by which the observers of all objects of a runtime are told."""

    def __init__(self) -> None:
        self._asked: Final[dict[str, dict[str, str]]] = {}
        self._used: Final[dict[str, dict[str, str]]] = {}

    def asked(self, url: str, runtime: str, link: str | None) -> None:
        """Note by which link a runtime asked last to observe; None: by the node."""
        if link is None:
            self._asked.get(url, {}).pop(runtime, None)
        else:
            self._asked.setdefault(url, {})[runtime] = link

    def counts(self, url: str, runtime: str) -> list[WayEffect]:
        """Tell a runtime, which has an active observer, by the way it asked by last."""
        there, wanted = self._used.setdefault(url, {}), self._asked.get(url, {}).get(runtime)
        used = there.pop(runtime, None)
        effects: list[WayEffect] = []
        if wanted is not None:
            there[runtime] = wanted
        if used != wanted:
            effects += [KeepIn(url, used)] if used is not None else []
            effects += [SendOut(url, wanted)] if wanted is not None else []
        self._tidy(url)
        return effects

    def direct(self, url: str) -> frozenset[str]:
        """Return the runtimes that are told of an object by a link."""
        return frozenset(self._used.get(url, ()))

    def is_used(self, url: str) -> bool:
        """Say whether anybody has asked by a link to observe an object."""
        return url in self._asked or url in self._used

    def left(
        self, url: str, active: tuple[str, ...], asking: tuple[str, ...] = ()
    ) -> list[WayEffect]:
        """Take it in which runtimes observers of an object are left, or still ask."""
        asked, used = self._asked.get(url, {}), self._used.get(url, {})
        for one in [one for one in asked if one not in {*active, *asking}]:
            del asked[one]
        ended: list[WayEffect] = [
            KeepIn(url, used.pop(one)) for one in tuple(used) if one not in active
        ]
        self._tidy(url)
        return ended

    def forget(self, url: str) -> list[WayEffect]:
        """Take it that an object is gone."""
        return self.left(url, ())

    def _tidy(self, url: str) -> None:
        for table in (self._asked, self._used):
            if url in table and not table[url]:
                del table[url]

    def link_is(self, runtime: str, link: str | None) -> list[WayEffect]:
        """Take it that this link leads to a runtime now, and no other."""
        ended: list[WayEffect] = []
        for url in sorted({*self._asked, *self._used}):
            asked, used = self._asked.get(url, {}), self._used.get(url, {})
            if asked.get(runtime, link) != link:
                del asked[runtime]
            if used.get(runtime, link) != link:
                ended.append(KeepIn(url, used.pop(runtime)))
            self._tidy(url)
        return ended

    def watched(self) -> frozenset[str]:
        """Return the runtimes whose links matter."""
        return frozenset(one for asked in self._asked.values() for one in asked)
