"""What is published of the objects reported here, when again, and to whom (M-40, M-47, I-D4)."""

from collections.abc import Iterable
from typing import final

import trio

from actors.runtime.sync.context import SyncContext
from actors.runtime.sync.presence.registration import CHANGES, SUBSCRIPTION
from actors.runtime.sync.reporter.link_observers import ToldByLink
from fsm.sync.repeats import IsObserved, RepeatedChange, RepeatsCore
from fsm.sync.reporter import ReporterCore
from fsm.sync.reporter_io import Denied, Granted
from specs.bodies.sync import Change, DataObject
from specs.message import MessageType
from transports.bodies import write_body

__all__ = ["Publications"]


@final
class Publications:
    """Publishes changes to the runtimes that observe, and the last one again."""

    def __init__(self, context: SyncContext, links: ToldByLink) -> None:
        self._context = context
        self._links = links
        self._repeats = RepeatsCore()
        self._was_observed: set[str] = set()

    def __len__(self) -> int:
        """How many objects were observed that are still reported here."""
        return len(self._was_observed)

    def deadline(self) -> float:
        """Return when a change is due again."""
        return self._repeats.deadline()

    def due(self, is_observed: IsObserved) -> RepeatedChange | None:
        """Return the change that is to be published again now."""
        return self._repeats.due(trio.current_time(), is_observed)

    def decided(self, url: str, told: Granted | Denied) -> None:
        """Take note that an observer is let in, or is not."""
        self._repeats.observed(url, trio.current_time())
        self._was_observed |= {url} if isinstance(told, Granted) else set()

    def written(self, written: DataObject, change: Change) -> None:
        """Take note of a new version."""
        self._context.written(written)
        self._repeats.published(written, change, trio.current_time())

    async def publish(self, url: str, reported: ReporterCore, change: Change) -> None:
        """Tell all who observe an object what has changed."""
        runtimes = frozenset(reported.runtimes)
        # Also after the last observer has left: the node knows that nobody is there (SC-32).
        if runtimes or url in self._was_observed:
            body, to = write_body(change), f"{url}/{CHANGES}"
            update = self._context.request(MessageType.UPDATE, to, body, url)
            await self._context.publish(update, runtimes, self._links.direct(url))

    async def publish_end(self, url: str, runtimes: Iterable[str]) -> None:
        """Tell all who observed an object that it is gone (M-47)."""
        sender = f"{url}/{SUBSCRIPTION}"
        gone = self._context.request(MessageType.DELETE, f"{url}/{CHANGES}", {}, sender)
        await self._context.publish(gone, frozenset(runtimes), self._links.direct(url))

    def given_away(self, url: str) -> None:
        """Forget an object that another runtime reports now."""
        self.removed(url)

    def removed(self, url: str) -> None:
        """Forget an object that is deleted: nothing is said as it any more."""
        self._repeats.forget(url)
        self._was_observed.discard(url)
        self._context.ids.forget(url, f"{url}/{SUBSCRIPTION}")
