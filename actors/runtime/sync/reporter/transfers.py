"""Objects reported here that come from another reporter, or go to one (SYN-26)."""

from functools import partial
from typing import final

from actors.runtime.sync.reporter.cores import ReportedCores, ReporterParts
from fsm.sync.allowed_observers import AllowedObservers
from fsm.sync.delegation import HandedOver
from fsm.sync.reporter import ReporterCore
from fsm.sync.reporter_io import HandedTo, ReporterInput

__all__ = ["ObjectHands"]


@final
class ObjectHands:
    """Gives objects away and takes them over, once it is decided who reports them."""

    def __init__(self, parts: ReporterParts, cores: ReportedCores) -> None:
        self._parts = parts
        self._cores = cores

    def find(self, url: str) -> ReporterCore | None:
        """Return an object that is reported here and not deleted."""
        return self._cores.find(url)

    async def feed(self, url: str, happened: ReporterInput) -> None:
        """Let something happen to an object that nobody is answered for."""
        await self._cores.feed(url, happened)

    # --- the end that gives ---------------------------------------------------------------

    def handed(self, reported: ReporterCore) -> HandedOver:
        """Return all that whoever goes on with an object has to know."""
        return self._parts.children.handed(reported.handed())

    async def pass_on(self, url: str, to: str) -> None:
        """Let another component of this runtime report an object (SYN-26)."""
        await self._cores.feed(url, HandedTo(to))
        reported = self._cores.find(url)
        if reported is not None:
            await self._parts.doors.pass_on(reported.snapshot)
            self._parts.spawn(partial(self._parts.moving.announce, reported.snapshot))

    async def give_away(self, url: str) -> None:
        """Forget an object that another runtime reports now (SYN-26)."""
        reported = self._cores.all[url]
        await self._parts.invitations.object_gone(url)
        await self._cores.perform(url, None, reported.give())
        await self._parts.links.forget(url)
        await self._parts.doors.close_parts(reported.snapshot)
        self._parts.stored.forget(url)
        self._cores.drop(url)
        self._parts.publications.given_away(url)
        await self._parts.doors.give_away(url)

    def renew(self, url: str) -> None:
        """Claim an object, and set its paths, that the node has forgotten."""
        self._parts.spawn(partial(self._parts.places.renew, url))

    # --- the end that takes ---------------------------------------------------------------

    async def expect(self, url: str) -> None:
        """Listen for an object that is about to be reported here."""
        await self._parts.doors.expect(url)

    async def expect_no_more(self, url: str) -> None:
        """End it: the object stays where it was."""
        await self._parts.doors.expect_no_more(url)

    async def take_over(self, handed: HandedOver, reporter: str) -> None:
        """Report an object that was handed over, with its next version (SYN-26)."""
        thing = handed.thing
        guests = AllowedObservers(handed.authorised, handed.expelled, is_public=handed.public)
        reported = ReporterCore(thing, guests)
        self._cores.add(thing.url, reported)
        await self._parts.doors.open_parts(thing)
        await self._cores.perform(thing.url, None, reported.take(handed.watchers, reporter))
        self._parts.spawn(partial(self._parts.moving.open, reported.snapshot))
