"""Objects reported here that come from another reporter, or go to one (SYN-26)."""

from functools import partial
from typing import Final, final

from actors.runtime.sync.reporter.cores import ReportedCores, ReporterServices
from fsm.sync.delegation import HandedOver
from fsm.sync.reporter import AllowedObservers, ReporterCore
from fsm.sync.reporter_io import DelegatedTo

__all__ = ["ObjectTransfers"]


@final
class ObjectTransfers:
    """Gives objects away and takes them over, once it is decided who reports them.

    Attributes:
        cores: The objects reported here.
        listeners: Their addresses.
    """

    def __init__(self, services: ReporterServices, cores: ReportedCores) -> None:
        self._services = services
        self.cores: Final = cores
        self.listeners: Final = services.listeners

    # --- the end that gives ---------------------------------------------------------------

    def handed(self, reported: ReporterCore) -> HandedOver:
        """Return all that whoever goes on with an object has to know."""
        return self._services.children.handed(reported.handed())

    async def pass_on(self, url: str, to: str) -> None:
        """Let another component of this runtime report an object (SYN-26)."""
        await self.cores.feed(url, DelegatedTo(to))
        reported = self.cores.find(url)
        if reported is not None:
            await self.listeners.pass_on(reported.snapshot)
            self._services.spawn(partial(self._services.registrations.register, reported.snapshot))

    async def give_away(self, url: str) -> None:
        """Forget an object that another runtime reports now (SYN-26)."""
        reported = self.cores.all[url]
        await self._services.invitations.object_gone(url)
        await self.cores.perform(url, None, reported.give())
        await self._services.links.forget(url)
        await self.listeners.close_parts(reported.snapshot)
        self._services.stored.forget(url)
        self.cores.drop(url)
        self._services.publications.removed(url)
        await self.listeners.give_away(url)

    def renew(self, url: str) -> None:
        """Claim an object, and set its paths, that the node has forgotten."""
        self._services.spawn(partial(self._services.registrations.renewals.renew, url))

    # --- the end that takes ---------------------------------------------------------------

    async def take_over(self, handed: HandedOver, reporter: str) -> None:
        """Report an object that was handed over, with its next version (SYN-26)."""
        thing = handed.thing
        guests = AllowedObservers(handed.authorised, handed.expelled, is_public=handed.public)
        reported = ReporterCore(thing, guests)
        self.cores.add(thing.url, reported)
        await self.listeners.open_parts(thing)
        await self.cores.perform(thing.url, None, reported.take(handed.watchers, reporter))
        self._services.spawn(partial(self._services.registrations.take_over, reported.snapshot))
