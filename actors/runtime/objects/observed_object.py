"""A data object as a hyperty that observes it sees it: always the newest value there is."""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Final, TypeAlias, final
from weakref import WeakSet

import attrs
import trio

from actors.runtime.objects.children import Children
from actors.runtime.objects.error import ObjectError
from fsm.sync.value.difference import ObjectChange, described, difference
from specs.bodies.sync import Change
from specs.jsonvalue import Json, JsonObject
from specs.limits.sync import CHANGES_KEPT
from specs.reply_code import Code
from specs.schema.frozen_json import frozen_object

__all__ = ["Changes", "Holds", "ObjectState", "ObservedObject", "States"]


@final
@attrs.frozen
class ObjectState:
    """A data object as it was at one version.

    Attributes:
        version: Rises by one with each change; 0: nothing came yet.
        value: Nothing in it can be changed in place, on no level; a copy made by
            `copy.deepcopy` can.
    """

    version: int
    value: Mapping[str, Json]


Holds: TypeAlias = Callable[[Mapping[str, Json]], object]
"""Says, by what counts as true, whether a value is what one waits for."""


@final
class ObservedObject:
    """A copy of somebody's object that follows each change; made by `observe`.

    Any number of tasks may read it and wait for it. For who is slow nothing piles up: of
    the states it gets the newest, of the changes, beyond `CHANGES_KEPT`, the difference.

    Attributes:
        url: The object's address.
        children: What its reporter and those who observe it have created beside it.
    """

    def __init__(self, url: str, children: Children) -> None:
        self.url: Final = url
        self.children: Final = children
        self._data: JsonObject = frozen_object({})
        self._state = ObjectState(0, self._data)
        self._log: Final[deque[ObjectChange]] = deque(maxlen=CHANGES_KEPT)
        self._readers: Final[WeakSet[Changes]] = WeakSet()
        self._end: ObjectError | None = None
        self._is_stale = False
        self._waiting = trio.lowlevel.ParkingLot()

    @property
    def state(self) -> ObjectState:
        """The newest version and its value, together."""
        return self._state

    @property
    def version(self) -> int:
        """Of the value."""
        return self._state.version

    @property
    def value(self) -> Mapping[str, Json]:
        """The newest value; nothing in it can be changed in place."""
        return self._state.value

    @property
    def is_stale(self) -> bool:
        """Whether the value may be an old one, and the object is being asked for.

        So it is after a restart, with what was stored, and where a change is missing.
        """
        return self._is_stale

    def doubt(self, *, is_stale: bool) -> None:
        """Say whether the value may be an old one; called by who observes."""
        self._is_stale = is_stale

    @property
    def is_gone(self) -> bool:
        """Whether nothing new will come: it was deleted, or shut to us."""
        return self._end is not None

    def changes(self) -> "Changes":
        """Go through the changes that come from now on: `async for change in copy.changes()`.

        Whoever keeps up gets each one as it was made. Who is more than `CHANGES_KEPT`
        behind, or where the object had to be read, gets what the newest value differs in
        from the one it has seen last. All in order, applied to the value as it was when this
        was called, always give a value that the object had.

        The loop ends when the object is deleted or its reporter shuts us out.
        """
        reader = Changes(self)
        self._readers.add(reader)
        return reader

    def states(self) -> "States":
        """Go through the states that come from now on: `async for state in copy.states()`.

        Who is slow gets the newest, and sees by `version` that some were passed over. The
        loop ends as that of `changes` does.
        """
        return States(self)

    async def wait_for(self, holds: Holds) -> ObjectState:
        """Wait until the value is what `holds` says; return it. The present one counts.

        A value that was passed over is not asked about.

        Raises:
            ObjectError: The object is gone, and it never was.
        """
        state = self._state
        while not holds(state.value):
            later = await self.later_than(state.version)
            if later is None:
                raise self._end or ObjectError(self.url, Code.GONE, "nobody observes it")
            state = later
        await trio.lowlevel.checkpoint()
        return state

    async def later_than(self, version: int) -> ObjectState | None:
        """Wait for a later version than this; None: there will be none."""
        await trio.lowlevel.checkpoint()
        while self._state.version <= version:
            if self._end is not None:
                return None
            await self._waiting.park()
        return self._state

    def since(self, seen: ObjectState) -> Iterable[ObjectChange]:
        """Return what was changed since a state that was the newest once, in order."""
        known = self.version - len(self._log)
        if known <= seen.version:
            return islice(self._log, seen.version - known, None)
        return difference(dict(seen.value), self._data, self.version)

    def show(self, version: int, data: JsonObject, change: Change | None = None) -> None:
        """Show a new value; called by who observes.

        Args:
            version: Of the value.
            data: The value.
            change: What made it of the version before; None: it was read.
        """
        before, value = self._data, frozen_object(data)
        if change is None or not self._readers:
            self._log.clear()
        else:
            self._log.append(described(before, value, change))
        self._data, self._state = value, ObjectState(version, value)
        self._waiting.unpark_all()

    def end(self, why: ObjectError) -> None:
        """Say that nothing will come any more; called by who observes."""
        self._end = why
        self._waiting.unpark_all()

    def check(self) -> None:
        """Raise why nothing comes, if nothing ever came.

        Raises:
            ObjectError: The reason.
        """
        if self._end is not None and not self.version:
            raise self._end


@final
class Changes:
    """The changes of an observed object, in order."""

    def __init__(self, copy: ObservedObject) -> None:
        self._copy = copy
        self._seen = copy.state
        self._found: deque[ObjectChange] = deque()

    def __aiter__(self) -> "Changes":
        return self

    async def __anext__(self) -> ObjectChange:
        await trio.lowlevel.checkpoint()
        while not self._found:
            state = await self._copy.later_than(self._seen.version)
            if state is None:
                raise StopAsyncIteration
            self._found.extend(self._copy.since(self._seen))
            self._seen = state
        return self._found.popleft()


@final
class States:
    """The states of an observed object, each newer than the one before."""

    def __init__(self, copy: ObservedObject) -> None:
        self._copy = copy
        self._seen = copy.version

    def __aiter__(self) -> "States":
        return self

    async def __anext__(self) -> ObjectState:
        state = await self._copy.later_than(self._seen)
        if state is None:
            raise StopAsyncIteration
        self._seen = state.version
        return state
