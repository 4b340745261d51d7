"""A data object as an observer has it: a copy with the newest value that is known."""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Final, TypeAlias, final
from weakref import WeakSet

import attrs
import trio

from actors.runtime.objects.children import Children
from actors.runtime.objects.error import ObjectError
from fsm.sync.value.value import ObjectChange, described, difference
from specs.bodies.sync import Change
from specs.jsonvalue import Json, JsonObject, frozen_object
from specs.limits.sync import CHANGES_KEPT
from specs.reply_code import Code

__all__ = ["Changes", "Holds", "ObjectState", "ObservedObject", "States"]


@final
@attrs.frozen
class ObjectState:
    """A data object at one version.

    Attributes:
        version: Version of the object; each change raises it by one; 0: no value has come yet.
        value: The value, immutable on every level; `copy.deepcopy` makes a mutable copy.
    """

    version: int
    value: Mapping[str, Json]


Holds: TypeAlias = Callable[[Mapping[str, Json]], object]
"""A condition on a value: it holds if the result is true."""


@final
class ObservedObject:
    """A copy of a data object that follows each change; made by `observe`.

    Any number of tasks may read it and wait for it. A slow task never holds up others: of the
    states it gets the newest, and of more than `CHANGES_KEPT` changes the difference.

    Attributes:
        url: Address of the object.
        children: What its reporter and its observers have created beside it.
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
        """The newest version with its value."""
        return self._state

    @property
    def version(self) -> int:
        """Version of the newest value; 0: no value has come yet."""
        return self._state.version

    @property
    def value(self) -> Mapping[str, Json]:
        """The newest value, immutable on every level."""
        return self._state.value

    @property
    def is_stale(self) -> bool:
        """Whether the value may be outdated while the object is read.

        So it is after a restart, with a stored value, and after a lost change.
        """
        return self._is_stale

    def doubt(self, *, is_stale: bool) -> None:
        """Set `is_stale`; called by the observation."""
        self._is_stale = is_stale

    @property
    def is_gone(self) -> bool:
        """Whether no change will come any more: the object was deleted, or is not for us."""
        return self._end is not None

    def changes(self) -> "Changes":
        """Iterate over the changes from now on: `async for change in copy.changes()`.

        A task that keeps up gets each change as it was made. After more than `CHANGES_KEPT`
        changes, or where the object was read anew, it gets the difference between the value it
        has seen and the newest. The changes, applied in order to the value at the time of this
        call, always give a value that the object had.

        The iteration ends when the object is deleted or its reporter expels this hyperty. If
        the iterating task is cancelled, no change is lost for the same iterator.
        """
        reader = Changes(self)
        self._readers.add(reader)
        return reader

    def states(self) -> "States":
        """Iterate over the states from now on: `async for state in copy.states()`.

        A slow task gets the newest state; a gap in `version` shows that it missed some. The
        iteration ends as that of `changes` does. If the iterating task is cancelled, the next
        state is still the newest.
        """
        return States(self)

    async def wait_for(self, holds: Holds) -> ObjectState:
        """Wait until a condition holds for the value, and return that state.

        The present value is tested first. Values between two that are seen may be missed.

        Args:
            holds: The condition; it is called with each value that is seen.

        If cancelled, only the wait ends.

        Raises:
            ObjectError: The object is gone, and the condition never held; `code` says why.
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
        """Wait for a later version than this one, and return the newest state.

        If cancelled, only the wait ends.

        Returns:
            The newest state; None if no later one will come.
        """
        await trio.lowlevel.checkpoint()
        while self._state.version <= version:
            if self._end is not None:
                return None
            await self._waiting.park()
        return self._state

    def since(self, seen: ObjectState) -> Iterable[ObjectChange]:
        """Return the changes since a state that was the newest at some time, in order."""
        known = self.version - len(self._log)
        if known <= seen.version:
            return islice(self._log, seen.version - known, None)
        return difference(dict(seen.value), self._data, self.version)

    def show(self, version: int, data: JsonObject, change: Change | None = None) -> None:
        """Show a new value; called by the observation.

        Args:
            version: Version of the value.
            data: The value.
            change: The change that led to it from the version before; None: it was read.
        """
        before, value = self._data, frozen_object(data)
        if change is None or not self._readers:
            self._log.clear()
        else:
            self._log.append(described(before, value, change))
        self._data, self._state = value, ObjectState(version, value)
        self._waiting.unpark_all()

    def end(self, why: ObjectError) -> None:
        """End all waits and iterations; called by the observation."""
        self._end = why
        self._waiting.unpark_all()

    def check(self) -> None:
        """Raise the reason if the object is gone and no value ever came.

        Raises:
            ObjectError: The reason.
        """
        if self._end is not None and not self.version:
            raise self._end


@final
class Changes:
    """An async iterator over the changes of an observed object, in order."""

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
    """An async iterator over the states of an observed object, each newer than the last."""

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
