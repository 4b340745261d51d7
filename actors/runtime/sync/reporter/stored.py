"""The stored objects of local reporters: resting ones, and their resumption (M-51)."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, TypeAlias, final

import attrs
import trio

from actors.kit.log import get_logger
from actors.runtime.sync.context import SyncContext
from actors.runtime.sync.registration import SUBSCRIPTION, ObjectRegistrations
from fsm.registry.changes import LocalLive
from fsm.sync import reporter_io as core
from fsm.sync.reporter import ReporterCore
from fsm.sync.stored import asked_for, begun, kept
from specs.bodies.object import ObjectBack, Resume
from specs.bodies.sync import DataObject
from specs.limits.protocol import READ_PAUSE
from specs.limits.sync import RESTORE_TRIES, RESTORES_AT_ONCE
from specs.message import Message, MessageType, refuse
from specs.reply_code import LAST_SUCCESS, Code
from transports.bodies import write_body

__all__ = ["NOTHING_STORED", "NO_STORE", "Restored", "StoredReports"]

_log = get_logger("actors.runtime")

NO_STORE: Final = "this runtime stores nothing: open it with a store"
_BROKEN: Final = "the store cannot be written now; nothing was changed"
_AWAY: Final = "its reporter is away"
NOTHING_STORED: Final = "nothing of that is stored"
_TAKEN: Final = "it is reported already"

_Whole: TypeAlias = Callable[[DataObject], DataObject]
"""Returns an object with its children."""

StillObserved: TypeAlias = Callable[[str, str, frozenset[str]], None]
"""Takes the observers of a resumed object that its sync manager has listed."""


@final
@attrs.frozen
class Restored:
    """An object that was stored.

    Attributes:
        shown: The object, with its children.
        managers: The sync managers of its observers.
        effects: What its core says of them.
    """

    shown: DataObject
    reported: ReporterCore
    managers: frozenset[str]
    effects: list[core.ReporterEffect]


@final
class StoredReports:
    """Knows which objects are stored, and of which the reporter is away."""

    def __init__(self, context: SyncContext, registrations: ObjectRegistrations) -> None:
        self._context = context
        self._registrations = registrations
        self._limiter = trio.CapacityLimiter(RESTORES_AT_ONCE)
        self._seen: dict[str, DataObject] = {}
        self._resting: set[str] = set()

    def restore(self) -> Iterator[Restored]:
        """Return what was stored when the runtime began; all of it rests."""
        for url, there in list(self._context.gate.rest.objects.items()):
            reported, effects = there.revived()
            self._seen[url] = there.snapshot
            self._context.gate.stored.add(url)
            self._resting.add(url)
            shown = attrs.evolve(there.snapshot, children_objects=there.children)
            managers = frozenset(one.manager for one in there.observers.values())
            yield Restored(shown, reported, managers, effects)

    # --- what is written ------------------------------------------------------------------

    def begin(self, reported: ReporterCore) -> None:
        """Store an object from now on."""
        url = reported.snapshot.url
        self._seen[url] = reported.snapshot
        self._context.gate.stored.add(url)
        self._context.gate.keep(url, begun(reported))

    def note(
        self, url: str, reported: ReporterCore, effects: Iterable[core.ReporterEffect]
    ) -> None:
        """Have written what is new of an object; before anything is done about the effects.

        Args:
            url: Address of the object.
            reported: Core of the object.
            effects: Effects of the core.
        """
        before = self._seen.get(url)
        if before is None:
            reported.guests.changes()
            return
        self._context.gate.keep(url, kept(before, effects, reported))
        self._seen[url] = reported.snapshot
        if reported.is_deleted:
            self._forget(url)

    def _forget(self, url: str) -> None:
        del self._seen[url]
        self._context.gate.stored.discard(url)
        self._resting.discard(url)

    # --- present observers ------------------------------------------------------------------

    def is_resting(self, url: str) -> bool:
        """Return whether the reporter of a stored object is away."""
        return url in self._resting

    def rest(self, url: str, by: str) -> bool:
        """Take note that a reporter is away; say whether its object waits for it.

        Args:
            url: Address of the object.
            by: Address of the reporter.
        """
        thing = self._seen.get(url)
        if thing is None or thing.reporter != by:
            return False
        self._resting.add(url)
        return True

    def refused(self, request: Message, url: str) -> bool:
        """Refuse what cannot be done now with an object; say whether it was.

        Args:
            request: The request to refuse.
            url: Address of the object.
        """
        is_stuck = url in self._seen and self._context.gate.is_broken
        if is_stuck and request.is_request:
            # At once: what is refused need not wait for the disk.
            self._context.bus.send(refuse(request, Code.UNAVAILABLE, _BROKEN))
        return is_stuck

    def is_kept_out(self, request: Message, observer: str, reported: ReporterCore) -> bool:
        """Refuse an observer on which only the absent reporter can decide.

        Args:
            request: The request.
            observer: Address of the observer.
            reported: Core of the object.
        """
        url = reported.snapshot.url
        if not self.is_resting(url) or reported.may_read(observer):
            return False
        self._context.refuse(request, Code.UNAVAILABLE, _AWAY)
        return True

    def resume(
        self, request: Message, body: Resume, cores: Mapping[str, ReporterCore], whole: _Whole
    ) -> None:
        """Give a reporter what it had, children included (M-51).

        Args:
            request: The request.
            body: Body of the request.
            cores: Cores of reported objects, by address.
            whole: Returns the whole object.
        """
        there = [cores[url].snapshot for url in self._seen]
        found = asked_for(there, request.from_, body.schema, body.name)
        if not found:
            self._context.refuse(request, Code.NOT_FOUND, NOTHING_STORED)
        elif any(one.url not in self._resting for one in found):
            self._context.refuse(request, Code.CONFLICT, _TAKEN)
        else:
            self._resting.difference_update(one.url for one in found)
            shown = [write_body(whole(one)) for one in found]
            self._context.answer(request, Code.OK, value=[*shown])

    # --- after a restart --------------------------------------------------------------------

    async def announce(self, back: Restored, still_observed: StillObserved) -> None:
        """Have an object found and observed again; as often as it takes.

        Args:
            back: The object.
            still_observed: Takes the observers of each sync manager that answers.
        """
        url = back.shown.url
        if not await self._registrations.renewals.renew(url):
            return
        refusal = await self._registrations.register(back.shown)
        if refusal is not None:
            _log.warning("stored object is not registered", url=url, why=refusal.why)
        await self._context.registry.tell(LocalLive(url))
        managers = back.managers - {self._context.bus.url}
        async with trio.open_nursery() as nursery:
            for manager in sorted(managers):
                nursery.start_soon(self._call, url, manager, still_observed)

    async def _call(self, url: str, manager: str, still_observed: StillObserved) -> None:
        """Notify one sync manager, which lists its observers."""
        async with self._limiter:
            pause = READ_PAUSE
            for _ in range(RESTORE_TRIES):
                body, sender = write_body(ObjectBack(url)), f"{url}/{SUBSCRIPTION}"
                answer = await self._context.bus.request(
                    self._context.request(MessageType.SUBSCRIBE, manager, body, sender)
                )
                if answer.code <= LAST_SUCCESS:
                    there = answer.body.get("value")
                    observers = frozenset(map(str, there if isinstance(there, list) else ()))
                    still_observed(url, manager, observers)
                    return
                await trio.sleep(pause)
                pause *= 2
