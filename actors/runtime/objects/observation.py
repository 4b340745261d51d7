"""The observation of a data object, and the copy that its observer has (SYN-06, SYN-12, SYN-17).

`Observation` hosts the core of the copy, `ObservedObject` is what the application sees of it.
The store keeps the copy for the next life of the hyperty (SYN-25, M-52).
"""

from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from itertools import islice
from typing import Final, TypeAlias, final
from weakref import WeakSet

import attrs
import trio
from typing_extensions import override

from actors.kit.trace import value_digest
from actors.runtime.objects.children import Children
from actors.runtime.objects.participant import CoreTimer, ObjectError, Participant
from actors.runtime.sync.output import NO_STORE
from fsm.engine import Step
from fsm.machines.sync.observer_copy import State
from fsm.sync.copy import ObserverCore
from fsm.sync.stored import CopyKept, Forgotten
from fsm.sync.value.value import ObjectChange, check_path, describe_change, difference
from specs.bodies.object import Change, ObjectName, Observe, Resume, Snapshot
from specs.errors import BadMessageError
from specs.jsonvalue import Json, JsonObject, frozen_object
from specs.limits.protocol import GOODBYE_TIMEOUT, READ_PAUSE
from specs.limits.sync import CHANGES_KEPT, COPIES_STORED, GONE_READS, REPEAT_LAST
from specs.message import Message, MessageType, reason_in
from specs.reply_code import LAST_SUCCESS, PASSING, Code
from specs.trace import Fact, Kind, Op
from transports.bodies import read_body, write_body
from transports.sockets import open_background


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
"""A condition on a value for `wait_for`: true if the function's result is true."""


@final
class ObservedObject:
    """A copy of a data object that follows each change; made by `observe`.

    Any number of tasks may read it and wait for it. A slow task never holds up others: of the
    states it gets the newest, and of more than `CHANGES_KEPT` changes the difference.

    Attributes:
        url: Address of the object.
        children: What its reporter and its observers have created beside it.
        is_stale: Whether the value may be outdated while the object is read. So it is after a
            restart, with a stored value, and after a lost change.
    """

    def __init__(self, url: str, children: Children, runtime: str = "") -> None:
        self.url: Final = url
        self.children: Final = children
        self._runtime: Final = runtime
        self._data: JsonObject = frozen_object({})
        self._state = ObjectState(0, self._data)
        self._log: Final[deque[ObjectChange]] = deque(maxlen=CHANGES_KEPT)
        self._readers: Final[WeakSet[Changes]] = WeakSet()
        self._end: ObjectError | None = None
        self.is_stale = False
        self._waiting = trio.lowlevel.ParkingLot()

    @override
    def __repr__(self) -> str:
        state = "gone" if self.is_gone else "stale" if self.is_stale else "observed"
        return f"<ObservedObject {self.url} version {self.version} {state} in {self._runtime}>"

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
    def is_gone(self) -> bool:
        """True if no change will follow: the object is deleted, or may not be observed now."""
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
        if holds(state.value):
            await trio.lowlevel.checkpoint()
            return state
        while (later := await self.later_than(state.version)) is not None:
            state = later
            if holds(state.value):
                return state
        raise self._end or ObjectError(self.url, Code.GONE, "it has no observer")

    async def later_than(self, version: int) -> ObjectState | None:
        """Wait for a later version than this one, and return the newest state.

        If cancelled, only the wait ends.

        Returns:
            The newest state; None if no later one will come.
        """
        if self._state.version > version or self._end is not None:
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
        """Set a new value and wake those who wait for it; called by the observation.

        Args:
            version: Version of the value.
            data: The value.
            change: The change that led to it from the version before; None: it was read.
        """
        before, value = self._data, frozen_object(data)
        if change is None or not self._readers:
            self._log.clear()
        else:
            self._log.append(describe_change(before, value, change))
        self._data, self._state = value, ObjectState(version, value)
        self._waiting.unpark_all()

    def end(self, why: ObjectError) -> None:
        """End all waits and iterations; the observation calls it at its end."""
        self._end = why
        self._waiting.unpark_all()


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


_EXPELLED: Final = "its reporter has expelled this hyperty"


@asynccontextmanager
async def open_observation(
    participant: Participant, wanted: Observe
) -> AsyncIterator[ObservedObject]:
    """Observe an object while the context is open; the copy has its value from the beginning.

    When the context is left, the subscription ends, within `GOODBYE_TIMEOUT` seconds.

    Args:
        participant: The hyperty.
        wanted: The object, and how it is observed.

    Yields:
        The copy.

    If cancelled, the subscription ends all the same.

    Raises:
        BadMessageError: The object has no address.
        ObjectError: On entering. 400: there is no store; 401: the hyperty is undeployed; 403: the
            reporter refuses; 404: no such object; 408: no answer in time; 409: the hyperty
            observes it already; 410: the runtime has closed; 413: the store is full.
    """
    url = wanted.resource
    if wanted.store and not participant.runtime.store.stores:
        raise ObjectError(url, Code.MALFORMED, NO_STORE)
    if wanted.store and not participant.runtime.store.has_room(url, participant.url):
        raise ObjectError(url, Code.TOO_LARGE, f"{COPIES_STORED} observed objects are stored")
    copy = ObservedObject(url, Children.of(participant, url), participant.runtime.url)
    observation = _Observation(participant, copy, wanted)
    participant.watch(url, observation.take)
    try:
        async with copy.children.open(), open_background() as nursery:
            nursery.start_soon(observation.run, nursery)
            # There is a value, or a refusal.
            await copy.wait_for(lambda _: copy.version)
            yield copy
    finally:
        # A refused or undeployed hyperty does not observe anyway.
        with suppress(ObjectError), trio.move_on_after(GOODBYE_TIMEOUT, shield=True):
            await participant.ask_manager(MessageType.UNSUBSCRIBE, write_body(ObjectName(url)), url)
        participant.unwatch(url)


class _Observation:
    """Runs the core of one observed copy: executes its requests, and passes notices to it."""

    _nursery: trio.Nursery

    def __init__(self, participant: Participant, copy: ObservedObject, wanted: Observe) -> None:
        self._reporter: str | None = None
        self._participant, self._copy, self._wanted = participant, copy, wanted
        self._core = ObserverCore(copy.url, participant.url, self)
        self._timer = CoreTimer(self._core.deadline)
        self._refusal: ObjectError | None = None
        self._is_stored = bool(wanted.store)

    async def run(self, nursery: trio.Nursery) -> None:
        """Observe until the object is deleted or observation ends otherwise.

        If cancelled, the copy ends, and what is stored of it remains.
        """
        self._nursery = nursery
        try:
            self._timer.tell(self._core.begin)
            nursery.start_soon(self._subscribe)
            while not self._copy.is_gone:
                if await self._timer.is_over():
                    if not self._copy.version:
                        url = self._copy.url
                        self._refusal = ObjectError(url, Code.TIMEOUT, "no answer in time")
                    self._timer.tell(self._core.time_over)
        finally:
            # The stored copy stays: the observer may come back.
            self._is_stored = False
            self._give_up("the observer leaves")

    def take(self, message: Message) -> None:
        """Handle a message of the object, its reporter or the own sync manager (M-36, M-40).

        Raises:
            BadMessageError: An expulsion, of neither its reporter nor our manager.
        """
        is_expulsion, to_us = message.type is MessageType.UNSUBSCRIBE, self._participant.url
        may_expel = {self._reporter, self._participant.manager}
        if is_expulsion and message.to == to_us and message.from_ not in may_expel:
            raise BadMessageError("only its reporter expels an observer", Code.FORBIDDEN)
        if self._copy.is_gone or self._core.state is None:
            return
        if message.type is MessageType.DELETE:
            self._timer.tell(self._core.delete)
        elif is_expulsion:
            # Its reporter expels the hyperty (M-45, SYN-21).
            self._nursery.start_soon(self._leave)
            self._refuse(ObjectError(self._copy.url, Code.FORBIDDEN, _EXPELLED))
        elif message.to == to_us:
            self._become(message)
        else:
            self._change(message)

    def _change(self, message: Message) -> None:
        try:
            change = read_body(message, Change)
            check_path(change.attribute)
        except BadMessageError as exc:
            why = f"its reporter sent a change that is none: {exc.reason}"
            self._timer.tell(partial(self._core.doubt, why))
            return
        # An older runtime may have handed the object over.
        self._reporter = change.source or self._reporter
        self._timer.tell(partial(self._core.change, change))

    def _become(self, answer: Message, *, is_first: bool = False) -> None:
        """Take over a whole object, from an answer or from the own sync manager."""
        value = answer.body.get("value")
        try:
            whole = attrs.evolve(answer, body=value if isinstance(value, dict) else {})
            snapshot = read_body(whole, Snapshot)
        except BadMessageError as exc:
            # Only this end ends it: the others have to hear of that.
            self._nursery.start_soon(self._leave)
            self._give_up(f"its reporter sent an object that is none: {exc.reason}")
            return
        if is_first:
            self._copy.children.begin(snapshot.children_objects, snapshot.children_window)
        else:
            self._copy.children.check()
        self._reporter = snapshot.reporter or self._reporter
        self._timer.tell(partial(self._core.become, snapshot))

    def _give_up(self, why: str) -> None:
        self._timer.tell(partial(self._core.give_up, why))

    def _refuse(self, refusal: ObjectError) -> None:
        self._refusal = refusal
        self._give_up(refusal.why)

    # --- asking ---------------------------------------------------------------------------

    async def _subscribe(self) -> None:
        hyperty, url = self._participant, self._copy.url
        kept = hyperty.runtime.store.copy(url, hyperty.url) if self._is_stored else None
        if kept is not None:
            with suppress(ObjectError):
                resume = write_body(Resume(store=True))
                await hyperty.ask_manager(MessageType.SUBSCRIBE, resume, url)
            # The value stored before a restart (M-52).
            self._timer.tell(partial(self._core.recall, kept.version, kept.value))
        try:
            answer = await self._subscribe_until_granted(READ_PAUSE if kept else None)
        except ObjectError as refusal:
            if not self._copy.is_gone:
                self._refuse(refusal)
        else:
            if not self._copy.is_gone:
                self._become(answer, is_first=True)

    async def _subscribe_until_granted(self, pause: float | None) -> Message:
        """Subscribe; repeat after a pause while the refusal is temporary.

        An observer with a stored copy can wait for a reporter that is not back yet. A node that has
        lost its state knows no such object until then, so 404 is repeated a few times, too.
        """
        body, url, not_found = write_body(self._wanted), self._copy.url, 0
        while True:
            try:
                return await self._participant.ask_manager(MessageType.SUBSCRIBE, body, url)
            except ObjectError as refusal:
                not_found = not_found + 1 if refusal.code == Code.NOT_FOUND else 0
                is_for_now = 0 < not_found < GONE_READS or refusal.code in PASSING
                if pause is None or not is_for_now:
                    raise
                await trio.sleep(pause)
                pause = min(2 * pause, REPEAT_LAST)

    async def _leave(self) -> None:
        body = write_body(ObjectName(self._copy.url))
        hyperty = self._participant
        await hyperty.post(hyperty.manager, MessageType.UNSUBSCRIBE, body)

    async def _read(self, read: int) -> None:
        """Read the whole object (M-41), and tell the core."""
        hyperty = self._participant
        answer = await hyperty.read(self._copy.url)
        if answer.code == Code.UNAUTHENTICATED:
            # Its subscription may be over, and no message could report it: another is asked for.
            body = write_body(attrs.evolve(self._wanted, resume=True))
            answer = await hyperty.ask(hyperty.manager, MessageType.SUBSCRIBE, body)
        why = reason_in(answer)
        if self._copy.is_gone:
            pass
        elif answer.code <= LAST_SUCCESS and isinstance(answer.body.get("value"), dict):
            self._become(answer)
        elif answer.code in PASSING or answer.code <= LAST_SUCCESS:
            self._timer.tell(partial(self._core.read_failed, read, why))
        elif answer.code == Code.NOT_FOUND:
            self._timer.tell(partial(self._core.not_found, read, why))
        else:
            self._refuse(ObjectError(self._copy.url, answer.code, why))

    # --- the port of the core -----------------------------------------------------------------

    def step(self, step: Step) -> None:
        """Trace a transition of the copy's state machine."""
        self._participant.runtime.tracer.step(self._participant.url, step)
        self._copy.is_stale = step.new == State.STALE

    def show(self, version: int, data: JsonObject, change: Change | None) -> None:
        """Show a new value, and store it."""
        who, url, runtime = self._participant.url, self._copy.url, self._participant.runtime
        if self._is_stored:
            runtime.store.store_soon(CopyKept(url, who, version, data))
        digest = value_digest(data) if runtime.tracer.hops else None
        fact = Fact(k=Kind.OBJ, op=Op.APPLY, key=url, version=version, by=who, digest=digest)
        runtime.tracer.record(who, fact)
        self._copy.show(version, data, change)

    def read(self, number: int) -> None:
        """Read the object in a task."""
        self._nursery.start_soon(self._read, number)

    def end(self, why: str) -> None:
        """End the copy."""
        hyperty, url = self._participant, self._copy.url
        if self._is_stored:
            hyperty.runtime.store.store_soon(Forgotten(CopyKept, (url, hyperty.url)))
        self._copy.end(self._refusal or ObjectError(url, Code.GONE, why))
        self._copy.children.end()
