"""The objects that this runtime reports (M-32..M-35, M-38..M-41, M-43, M-46, M-47).

Four classes work on the same cores: for the lifecycle of objects, for the admission of their
observers, for objects that are restored from the store, and for their transfer.
"""

from typing import Final, final

import trio

from actors.runtime.sync.context import Spawn, SyncContext
from actors.runtime.sync.messages import Tell
from actors.runtime.sync.registration import SUBSCRIPTION
from actors.runtime.sync.reporter.admissions import Admissions
from actors.runtime.sync.reporter.cores import ReportedCores, reporter_services
from actors.runtime.sync.reporter.lifecycle import ObjectLifecycle, ObjectRestore
from actors.runtime.sync.reporter.observers import OBSERVERS
from actors.runtime.sync.reporter.transfers import ObjectTransfers
from specs.child import parent_of

__all__ = ["ReportedObjects"]


@final
class ReportedObjects:
    """The reporter's end of every object created here.

    Attributes:
        listeners: Their addresses.
        links: The links by which observers are told.
        children: Their children.
        lives: How they begin, change and end.
        admissions: Who observes them.
        revival: How stored ones come back.
        hands: How they get another reporter.
    """

    def __init__(self, context: SyncContext, spawn: Spawn, tell: Tell) -> None:
        self._services = services = reporter_services(context, spawn, tell)
        self._cores = cores = ReportedCores(services)
        self.listeners: Final = services.listeners
        self.links: Final = services.links
        self.children: Final = services.children
        self.lifecycle: Final = ObjectLifecycle(services, cores)
        self.admissions: Final = Admissions(services, cores)
        self.restore: Final = ObjectRestore(services, cores)
        self.transfers: Final = ObjectTransfers(services, cores)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is reported here, nor will be of what was asked for."""
        return not self.reporters

    @property
    def reporters(self) -> set[str]:
        """Who reports something, or is about to; of what rests nobody does."""
        is_resting = self._services.stored.is_resting
        active = [each for url, each in self._cores.all.items() if not is_resting(url)]
        return {*self.lifecycle.creators, *(each.snapshot.reporter for each in active)}

    def owner_of(self, address: str) -> str | None:
        """Return the object an address belongs to: itself or one of its parts."""
        part = address.removesuffix(f"/{SUBSCRIPTION}").removesuffix(f"/{OBSERVERS}")
        url = parent_of(address) or part
        return url if url in self._cores.all else None

    # --- time -----------------------------------------------------------------------------

    def deadline(self) -> float:
        """Return when `time_over` is due."""
        services = self._services
        invited, published = services.invitations.deadline(), services.publications.deadline()
        leased = services.leases.deadline()
        return min(invited, published, services.children.deadline(), leased)

    async def time_over(self) -> None:
        """Do what is due."""
        services, is_observed = self._services, self._cores.is_observed
        await services.invitations.silence_ended()
        await services.children.time_over(is_observed)
        for url, observer in services.leases.due(trio.current_time()):
            await self._cores.lease_over(url, observer)
        repeated = services.publications.due(is_observed)
        if repeated is not None:
            reported = self._cores.all[repeated.url]
            await services.publications.publish(repeated.url, reported, repeated.change)
