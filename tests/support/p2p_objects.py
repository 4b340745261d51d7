"""The two Connection objects of a link, as both runtimes see them, without any I/O."""

from collections.abc import Callable
from typing import Protocol, TypeAlias, final

import attrs

from fsm.p2p.peer_identity import UNSIGNED, Believed
from specs.addresses.address import runtime_of
from specs.bodies.object import ConnectionData
from specs.identity import SenderIdentity
from tests.support.link_calls import Call, tell

End: TypeAlias = tuple[str, str]
"""A runtime and the address of its end of a link."""


class Signal(Protocol):
    """Queues what a runtime has the other one hear."""

    def __call__(self, source: str, work: Callable[..., None], *args: object) -> None: ...


@final
class Objects:
    """Who has made which, what is in it, and who observes it.

    Attributes:
        urls: The object of each end that has made one.
    """

    def __init__(self, feed: Callable[[End, Call], None], signal: Signal) -> None:
        self.urls: dict[End, str] = {}
        self._feed, self._signal = feed, signal
        self._data: dict[str, ConnectionData] = {}
        self._standing: dict[str, Believed] = {}
        self._owner: dict[str, End] = {}
        self._observer: dict[str, End] = {}

    def create(self, end: End) -> None:
        url = f"{end[1]}/object"
        self.urls[end], self._owner[url] = url, end
        self._data[url] = ConnectionData(owner=end[1])
        self._feed(end, tell.object_created())

    def answer(self, url: str, code: int, why: str) -> None:
        """Tell who has invited to it what came of that."""
        self._feed(self._owner[url], tell.invitation_answered(code, why))

    def observe(self, url: str, observer: End) -> None:
        self._observer[url] = observer
        source, _ = self._owner[url]
        self._signal(source, self._feed, observer, self._seen(url))

    def update(self, end: End, **changes: object) -> None:
        url = self.urls[end]
        self._data[url] = attrs.evolve(self._data[url], **changes)
        self._tell(end, self._seen(url))

    def sign(self, end: End) -> None:
        """Let who observes the object of this end believe it."""
        self._standing[self.urls[end]] = Believed(SenderIdentity(end[0]), f"of {end[0]}")

    def unsign(self, end: End) -> None:
        self._standing.pop(self.urls[end], None)

    def _seen(self, url: str) -> Call:
        return tell.peer_object_seen(self._data[url], self._standing.get(url, UNSIGNED))

    def delete(self, end: End) -> None:
        """Tell who observes the object of this end, if there is one, that it is gone."""
        if end in self.urls:
            self._tell(end, tell.peer_object_deleted())

    def _tell(self, end: End, reported: Call) -> None:
        url = self.urls[end]
        if url in self._observer:
            self._signal(end[0], self._feed, self._observer[url], reported)


def believed(data: ConnectionData) -> Call:
    """An offer or answer that is proven to be of the runtime of its owner."""
    identity = SenderIdentity(runtime_of(data.owner))
    return tell.peer_object_seen(data, Believed(identity, f"of {identity.runtime}"))
