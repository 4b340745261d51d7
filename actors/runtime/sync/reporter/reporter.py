"""The objects that this runtime reports (M-32..M-35, M-38..M-41, M-43, M-46, M-47).

What can be done with them stands in four places: how they begin and end, who observes them,
how they come back from the store, and how they change hands. All of it goes by the same cores.
"""

from typing import Final, final

import trio

from actors.runtime.sync.context import Spawn, SyncContext
from actors.runtime.sync.messages import Tell
from actors.runtime.sync.registration import SUBSCRIPTION
from actors.runtime.sync.reporter.admissions import Admissions
from actors.runtime.sync.reporter.cores import ReportedCores, reporter_parts
from actors.runtime.sync.reporter.lifecycle import ObjectLives, Revival
from actors.runtime.sync.reporter.observers import OBSERVERS
from actors.runtime.sync.reporter.transfers import ObjectHands
from specs.child import parent_of

__all__ = ["ReportedObjects"]


@final
class ReportedObjects:
    """The reporter's end of every object created here.

    Attributes:
        doors: Their addresses.
        links: The links by which observers are told.
        children: Their children.
        lives: How they begin, change and end.
        admissions: Who observes them.
        revival: How stored ones come back.
        hands: How they get another reporter.
    """

    def __init__(self, context: SyncContext, spawn: Spawn, tell: Tell) -> None:
        self._parts = parts = reporter_parts(context, spawn, tell)
        self._cores = cores = ReportedCores(parts)
        self.doors: Final = parts.doors
        self.links: Final = parts.links
        self.children: Final = parts.children
        self.lives: Final = ObjectLives(parts, cores)
        self.admissions: Final = Admissions(parts, cores)
        self.revival: Final = Revival(parts, cores)
        self.hands: Final = ObjectHands(parts, cores)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is reported here, nor will be of what was asked for."""
        return not self.reporters

    @property
    def reporters(self) -> set[str]:
        """Who reports something, or is about to; of what rests nobody does."""
        is_resting = self._parts.stored.is_resting
        active = [each for url, each in self._cores.all.items() if not is_resting(url)]
        return {*self.lives.creators, *(each.snapshot.reporter for each in active)}

    def owner_of(self, address: str) -> str | None:
        """Return the object an address belongs to: itself or one of its parts."""
        part = address.removesuffix(f"/{SUBSCRIPTION}").removesuffix(f"/{OBSERVERS}")
        url = parent_of(address) or part
        return url if url in self._cores.all else None

    # --- time -----------------------------------------------------------------------------

    def deadline(self) -> float:
        """Return when `time_over` is due."""
        parts = self._parts
        invited, published = parts.invitations.deadline(), parts.publications.deadline()
        leased = parts.leases.deadline()
        return min(invited, published, parts.children.deadline(), leased)

    async def time_over(self) -> None:
        """Do what is due."""
        parts, is_observed = self._parts, self._cores.is_observed
        await parts.invitations.silence_ended()
        await parts.children.time_over(is_observed)
        for url, observer in parts.leases.due(trio.current_time()):
            await self._cores.lease_over(url, observer)
        repeated = parts.publications.due(is_observed)
        if repeated is not None:
            reported = self._cores.all[repeated.url]
            await parts.publications.publish(repeated.url, reported, repeated.change)
