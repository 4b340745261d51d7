"""The route to each runtime that observes an object: always exactly one (I-D12).

It is the route of the last request of its sync manager: the node, or a link. It counts as
soon as an observer there is active. When another link leads to a runtime, or none, changes
go by the node until it asks again.
"""

from typing import Final, TypeAlias, final

import attrs

__all__ = ["KeepIn", "RuntimeWays", "SendOut", "WayEffect"]


@final
@attrs.frozen(slots=True)
class SendOut:
    """Send the changes of an object over a link, too."""

    url: str
    link: str


@final
@attrs.frozen(slots=True)
class KeepIn:
    """Send the changes of an object over that link no longer."""

    url: str
    link: str


WayEffect: TypeAlias = SendOut | KeepIn


@final
class RuntimeWays:
    """The links to the observers of all objects of a runtime."""

    def __init__(self) -> None:
        self._asked: Final[dict[str, dict[str, str]]] = {}
        self._used: Final[dict[str, dict[str, str]]] = {}

    def asked(self, url: str, runtime: str, link: str | None) -> None:
        """Note the route of a runtime's last subscription.

        Args:
            url: Address of the object.
            runtime: Address of the runtime.
            link: The link it came by; None: the node.
        """
        if link is None:
            self._asked.get(url, {}).pop(runtime, None)
        else:
            self._asked.setdefault(url, {})[runtime] = link

    def counts(self, url: str, runtime: str) -> list[WayEffect]:
        """Use the route of the last subscription for a runtime, which has an active observer.

        Args:
            url: Address of the object.
            runtime: Address of the runtime.
        """
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
        """Return the runtimes that get the changes of an object by a link."""
        return frozenset(self._used.get(url, ()))

    def is_used(self, url: str) -> bool:
        """Return whether a runtime has subscribed to an object by a link."""
        return url in self._asked or url in self._used

    def left(
        self, url: str, active: tuple[str, ...], asking: tuple[str, ...] = ()
    ) -> list[WayEffect]:
        """Note which runtimes still have observers of an object, or requests for it.

        Args:
            url: Address of the object.
            active: Runtimes with an active observer.
            asking: Runtimes with a subscription that waits for a decision.
        """
        asked, used = self._asked.get(url, {}), self._used.get(url, {})
        for one in [one for one in asked if one not in {*active, *asking}]:
            del asked[one]
        ended: list[WayEffect] = [
            KeepIn(url, used.pop(one)) for one in tuple(used) if one not in active
        ]
        self._tidy(url)
        return ended

    def forget(self, url: str) -> list[WayEffect]:
        """Note that an object is gone."""
        return self.left(url, ())

    def _tidy(self, url: str) -> None:
        for table in (self._asked, self._used):
            if url in table and not table[url]:
                del table[url]

    def link_is(self, runtime: str, link: str | None) -> list[WayEffect]:
        """Note which link leads to a runtime now.

        Args:
            runtime: Address of the runtime.
            link: The link; None: none does.
        """
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
