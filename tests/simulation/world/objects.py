"""The data objects of a run: who reports, who observes, and what each has at the end."""

import json
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from itertools import count
from typing import Final

import attrs
import trio

from actors.runtime.objects.children import Children
from actors.runtime.objects.observation import ObservedObject
from actors.runtime.objects.participant import ObjectError
from actors.runtime.objects.reported_object import ReportedObject
from specs.bodies.object import ChildWindow
from specs.errors import ProtoflyError
from specs.jsonvalue import JsonObject
from specs.message import MessageType
from specs.reply_code import Code
from tests.simulation.judgement.history import (
    Changed,
    Created,
    Heard,
    Held,
    History,
    Left,
    Observing,
    Removed,
)
from tests.simulation.plans.plan import Act, Deed
from tests.simulation.world.process import RuntimeProcess

_KEPT: Final = 6
"""Elements that the array of an object has at most, or nearly."""


@attrs.define(eq=False)
class _Reported:
    """An object that a life of a runtime reports; `thing` None: it is about to."""

    life: str
    thing: ReportedObject | None = None
    over: trio.Event = attrs.field(factory=trio.Event)


@attrs.define(eq=False)
class _Stand:
    """A life of a runtime observes an object; `copy` None: it is about to.

    Attributes:
        value: What the changes that it was notified of make of the value it had at first.
    """

    copy: ObservedObject | None = None
    value: JsonObject = attrs.field(factory=dict)
    over: trio.Event = attrs.field(factory=trio.Event)


class Objects:
    """Does the acts of data objects, as applications do them: by `report` and `observe`."""

    def __init__(self, runtimes: Mapping[str, RuntimeProcess], history: History) -> None:
        self._runtimes = runtimes
        self._history = history
        self._numbers = count(1)
        self._stood = Counter[tuple[str, str]]()
        self._reported: dict[str, _Reported] = {}
        self._stands: dict[tuple[str, str], _Stand] = {}
        # The last object of each runtime, and the address of the hyperty that reported it.
        self._last: dict[str, tuple[str, str]] = {}
        self._orphans: set[str] = set()

    async def do(self, runtime: RuntimeProcess, act: Act) -> None:
        """Do an act, in the name of the runtime's life of now."""
        match act.deed:
            case Deed.CREATE:
                await self._create(runtime)
            case Deed.OBSERVE:
                await self._observe(runtime, act.whom)
            case Deed.CHANGE:
                await self._change(runtime, act)
            case Deed.CHILD:
                await self._write_children(runtime, act)
            case Deed.LEAVE:
                await self._leave(runtime, act.whom)
            case Deed.DELETE:
                self._delete(runtime)
            case _:
                raise ValueError(act.deed)

    def held(self) -> list[Held]:
        """Return what everybody has now: who reports an object, and who has a copy of it."""
        at, found = trio.current_time(), []
        for one in self._reported.values():
            if one.thing is not None and one.life == self._life_of(one):
                notices = at, one.life, one.thing.url, one.thing.version, _text(one.thing.value)
                children = _shown(one.thing.children)
                found.append(Held(*notices, is_reporter=True, children=children))
        for (life, url), stand in self._stands.items():
            if stand.copy is not None and not stand.copy.is_gone and url not in self._orphans:
                children = _shown(stand.copy.children)
                notices = at, life, url, stand.copy.version, _text(stand.value)
                found.append(Held(*notices, children=children))
        return found

    def _life_of(self, reported: _Reported) -> str:
        return self._runtimes[reported.life.partition(".")[0]].life

    def _object_of(self, name: str) -> ReportedObject | None:
        reported = self._reported.get(name)
        is_there = reported is not None and reported.life == self._runtimes[name].life
        return reported.thing if reported is not None and is_there else None

    # --- reporters

    async def _create(self, runtime: RuntimeProcess) -> None:
        there = self._reported.get(runtime.name)
        if there is not None and there.life == runtime.life:
            return
        mine = self._reported[runtime.name] = _Reported(runtime.life)
        first, stored = {"n": 0, "log": []}, runtime.air.plan.stored
        window = ChildWindow(last=kept) if (kept := runtime.air.plan.window) else None
        terms = {"name": "o", "store": stored, "children": window}
        try:
            async with runtime.worker.report("comm", first, **terms) as mine.thing:
                self._note_orphan(runtime, mine.thing.url)
                await mine.over.wait()
                if stored:
                    await _deleted(mine.thing)
        except ProtoflyError:
            pass  # it gets no address, or was taken down
        finally:
            if self._reported.get(runtime.name) is mine:
                del self._reported[runtime.name]

    def _note_orphan(self, runtime: RuntimeProcess, url: str) -> None:
        """Note the last object of a runtime if its hyperty, which alone can resume it, is gone.

        A node that forgets its records while a runtime is away allocates the hyperty a new address.
        The runtime goes on to show the stored object to its observers.
        """
        last, reporter = self._last.get(runtime.name, (url, runtime.address))
        if last != url and reporter != runtime.address:
            self._orphans.add(last)
        self._last[runtime.name] = url, runtime.address

    async def _change(self, runtime: RuntimeProcess, act: Act) -> None:
        for _ in range(act.count):
            thing = self._object_of(runtime.name)
            if thing is not None:
                try:
                    version = await _changed(thing, next(self._numbers))
                except ProtoflyError:
                    return  # it was deleted meanwhile
                self._history.note(Changed(trio.current_time(), thing.url, version))
            await trio.sleep(act.pause)

    def _delete(self, runtime: RuntimeProcess) -> None:
        reported = self._reported.get(runtime.name)
        if self._object_of(runtime.name) is not None and reported is not None:
            del self._reported[runtime.name]
            reported.over.set()

    # --- children

    def _children_of(self, runtime: RuntimeProcess, whom: str) -> Children | None:
        thing = self._object_of(whom)
        if thing is None or runtime.name == whom:
            return None if thing is None else thing.children
        stand = self._stands.get((runtime.life, thing.url))
        return None if stand is None or stand.copy is None else stand.copy.children

    async def _write_children(self, runtime: RuntimeProcess, act: Act) -> None:
        """Create children, each second changed and each third deleted at once."""
        for _ in range(act.count):
            thing, children = self._object_of(act.whom), self._children_of(runtime, act.whom)
            if thing is not None and children is not None:
                # No answer in time, too many, or nobody observes any more.
                with suppress(ProtoflyError):
                    await self._write_child(runtime, thing.url, children)
            await trio.sleep(act.pause)

    async def _write_child(self, runtime: RuntimeProcess, url: str, children: Children) -> None:
        """Create a child; the reporter of a window also deletes the oldest of anybody at times."""
        number, life, window = next(self._numbers), runtime.life, runtime.air.plan.window
        child = await children.create(str(number))
        if not window:
            self._history.note(Created(trio.current_time(), life, url, child.id))
        elif number % 5 == 0 and self._object_of(runtime.name) is not None:
            await next(iter(children.values())).delete()
        if number % 2:
            await child.update(f"{number}/{next(self._numbers)}")
        if number % 3 == 0:
            self._history.note(Removed(trio.current_time(), life, url, child.id))
            await child.delete()

    # --- observers

    async def _observe(self, runtime: RuntimeProcess, whom: str) -> None:
        thing = self._object_of(whom)
        key = runtime.life, "" if thing is None else thing.url
        if thing is None or key in self._stands:
            return
        stand = self._stands[key] = _Stand()
        self._stood[key] += 1
        self._history.note(Observing(trio.current_time(), *key, self._stood[key]))
        try:
            async with (
                runtime.worker.observe(thing.url) as stand.copy,
                trio.open_nursery() as nursery,
            ):
                nursery.start_soon(self._hear, runtime, key, stand, nursery.cancel_scope)
                await stand.over.wait()
                nursery.cancel_scope.cancel()
        except ProtoflyError:
            pass  # refused, or not there
        finally:
            del self._stands[key]

    async def _hear(
        self, runtime: RuntimeProcess, key: tuple[str, str], stand: _Stand, scope: trio.CancelScope
    ) -> None:
        """Follow an object by its changes alone; a busy hyperty takes none of them."""
        stand.value = dict(stand.copy.value)
        async for change in stand.copy.changes():
            await runtime.air.rest(runtime.name)
            stand.value = change.apply_to(stand.value)
            at = trio.current_time()
            self._history.note(Heard(at, *key, change.version, change.path))
        scope.cancel()

    async def _leave(self, runtime: RuntimeProcess, whom: str) -> None:
        """Leave by the sync manager, so that its answer is seen; then the copy is let go."""
        thing = self._object_of(whom)
        key = runtime.life, "" if thing is None else thing.url
        stand = self._stands.get(key)
        if thing is None or stand is None or stand.copy is None or stand.over.is_set():
            return
        manager, notices = f"{runtime.runtime.url}/sm", {"resource": thing.url}
        answer = await runtime.worker.ask(manager, MessageType.UNSUBSCRIBE, notices)
        # The answer may be late: who has observed it again meanwhile has not left.
        if answer.code == Code.OK and self._stands.get(key) is stand:
            self._history.note(Left(trio.current_time(), *key))
        stand.over.set()


async def _deleted(thing: ReportedObject) -> None:
    """Delete a stored object, once its disk can be written."""
    while True:
        try:
            await thing.delete()
        except ObjectError as refused:
            if refused.code not in {Code.TIMEOUT, Code.UNAVAILABLE}:
                return
            await trio.sleep(1)
        else:
            return


async def _changed(thing: ReportedObject, number: int) -> int:
    """Change an object in one of the ways there are; return its version."""
    match number % 4:
        case 0:
            return await thing.set("last.by", number)
        case 1:
            return await thing.add("log", number, number % 3)
        case 2:
            log = thing.value.get("log")
            old = log[:-_KEPT] if isinstance(log, list) else []
            return await thing.discard("log", *old, number % 3)
        case _:
            return await thing.set("n", number)


def _shown(children: Children) -> str:
    return _text({name: child.value for name, child in children.items()})


def _text(value: Mapping) -> str:
    return json.dumps(dict(value), sort_keys=True)
