"""The stored objects of local reporters: resting ones, and their resumption (M-51)."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, TypeAlias, final

import attrs

from actors.runtime.sync.context import SyncContext
from fsm.sync import reporter_io as core
from fsm.sync.reporter import ReporterCore
from fsm.sync.stored import ObjectForgotten, asked_for, begun, kept
from specs.bodies.object import Resume
from specs.bodies.sync import DataObject
from specs.errors import BadMessageError
from specs.jsonvalue import JsonObject
from specs.message import Message, refuse
from specs.reply_code import Code
from transports.bodies import write_body

__all__ = ["NOTHING_STORED", "NO_STORE", "Restored", "StoredReports"]

NO_STORE: Final = "this runtime stores nothing: open it with a store"
_BROKEN: Final = "the store cannot be written now; nothing was changed"
_AWAY: Final = "its reporter is away"
NOTHING_STORED: Final = "nothing of that is stored"
_TAKEN: Final = "it is reported already"

_Whole: TypeAlias = Callable[[DataObject], DataObject]
"""Returns an object with its children."""


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

    def __init__(self, context: SyncContext) -> None:
        self._context = context
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
            self._let_go(url)

    def forget(self, url: str) -> None:
        """Store an object no more: it is reported elsewhere."""
        if url in self._seen:
            self._context.gate.keep(url, [ObjectForgotten(url)])
            self._let_go(url)

    def _let_go(self, url: str) -> None:
        del self._seen[url]
        self._context.gate.stored.discard(url)
        self._resting.discard(url)

    # --- present observers ------------------------------------------------------------------

    def is_resting(self, url: str) -> bool:
        """Say whether the reporter of a stored object is away."""
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

    async def refused(self, request: Message, url: str) -> bool:
        """Refuse what cannot be done now with an object; say whether it was.

        Args:
            request: The request to refuse.
            url: Address of the object.
        """
        is_stuck = url in self._seen and self._context.gate.is_broken
        if is_stuck and request.is_request:
            # At once: what is refused need not wait for the disk.
            await self._context.bus.post(refuse(request, Code.UNAVAILABLE, _BROKEN))
        return is_stuck

    async def is_kept_out(self, request: Message, observer: str, reported: ReporterCore) -> bool:
        """Refuse an observer on which only the absent reporter can decide.

        Args:
            request: The request.
            observer: Address of the observer.
            reported: Core of the object.
        """
        url = reported.snapshot.url
        if not self.is_resting(url) or reported.may_read(observer):
            return False
        await self._context.refuse(request, Code.UNAVAILABLE, _AWAY)
        return True

    async def adopt(self, request: Message, reported: ReporterCore, shown: JsonObject) -> None:
        """Store an object that was handed over to its reporter, and its children, too.

        Args:
            request: The request.
            reported: Core of the object.
            shown: The object as it was handed over.

        Raises:
            BadMessageError: Nothing is stored here.
        """
        if not self._context.gate.stores:
            raise BadMessageError(NO_STORE)
        url = reported.snapshot.url
        if url not in self._seen:
            self.begin(reported)
            self._context.gate.keep_children(url, shown)
        await self._context.answer(request, Code.OK)

    async def resume(
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
            await self._context.refuse(request, Code.NOT_FOUND, NOTHING_STORED)
        elif any(one.url not in self._resting for one in found):
            await self._context.refuse(request, Code.CONFLICT, _TAKEN)
        else:
            self._resting.difference_update(one.url for one in found)
            shown = [write_body(whole(one)) for one in found]
            await self._context.answer(request, Code.OK, value=[*shown])
