"""The observer's end of a data object: a copy that follows version by version.

Changes are applied strictly in order; a gap, or a change that does not fit the value, makes the
copy stale until the whole object was read (SYN-17, I-D3). Nothing is applied before the snapshot
(I-D5). A read that fails is made again after a pause; a read without an answer when its time is
over.

A last change that is lost leaves no gap, and the loss of the object's end leaves no sign at
all. So the reporter repeats its last change, and a live copy that gets no message for long
reads the object (I-D4). The read brings missed changes, or the answer that the object is
gone, which ends the copy.

Changes can make a value larger than any message that shows it whole. A copy that becomes
larger than the value of an object may be ends: no peer can fill the memory.

The value is frozen (`specs.jsonvalue`): readers get it as it is.
"""

import math
from typing import Final, TypeAlias, assert_never, final

import attrs

from fsm.engine import NOTHING, Entity, Step
from fsm.machines.sync.observer_copy import OBSERVER_COPY, Condition, State, Trigger
from fsm.sync.value.json import json_size
from fsm.sync.value.value import changed, is_applicable
from specs.bodies.sync import Change, DataObject, Snapshot
from specs.jsonvalue import JsonObject, frozen_object
from specs.limits.protocol import EARLY_CHANGES, READ_PAUSE
from specs.limits.sync import GONE_READS, QUIET, REPEAT_LAST, VALUE_BYTES

__all__ = [
    "Applied",
    "Changed",
    "CopyTimeOver",
    "GivenUp",
    "NotFound",
    "ObserveBegun",
    "ObserverCore",
    "ObserverEffect",
    "ObserverGone",
    "ObserverInput",
    "ReadFailed",
    "ReadNeeded",
    "Recalled",
    "SnapshotRead",
    "Unreadable",
    "WithdrawnByReporter",
]

# --- what happens -----------------------------------------------------------------------


@final
@attrs.frozen(slots=True)
class ObserveBegun:
    """The subscription is requested (M-36); changes may come from now on."""


@final
@attrs.frozen(slots=True)
class Recalled:
    """The observer had the object before a restart, at this version (SYN-25, M-52)."""

    version: int
    data: JsonObject


@final
@attrs.frozen(slots=True)
class SnapshotRead:
    """The whole object came: with a subscription's answer, or by a read."""

    snapshot: Snapshot | DataObject


@final
@attrs.frozen(slots=True)
class Changed:
    """A change was published (M-40)."""

    change: Change


@final
@attrs.frozen(slots=True)
class Unreadable:
    """The reporter published something that is no change: what it was has to be read."""

    why: str = ""


@final
@attrs.frozen(slots=True)
class ReadFailed:
    """A read has failed for now: no answer came, or there was no route.

    Attributes:
        read: Number of the read, as `ReadNeeded` gave it.
    """

    read: int
    why: str = ""


@final
@attrs.frozen(slots=True)
class NotFound:
    """A read found no such object: it is gone, or its reporter is not back yet.

    A node that has lost its state knows an object again only when its runtime has come
    back. So only `GONE_READS` such answers in a row end the copy.

    Attributes:
        read: Number of the read, as `ReadNeeded` gave it.
    """

    read: int
    why: str = ""


@final
@attrs.frozen(slots=True)
class GivenUp:
    """The subscription or a read was refused for good, or the observer leaves."""

    why: str = ""


@final
@attrs.frozen(slots=True)
class WithdrawnByReporter:
    """The object was deleted by its reporter (M-47)."""


@final
@attrs.frozen(slots=True)
class CopyTimeOver:
    """The deadline has passed."""


ObserverInput: TypeAlias = (
    ObserveBegun
    | Recalled
    | SnapshotRead
    | Changed
    | Unreadable
    | ReadFailed
    | NotFound
    | GivenUp
    | WithdrawnByReporter
    | CopyTimeOver
)


# --- what is to be done -----------------------------------------------------------------


@final
@attrs.frozen(slots=True)
class Applied:
    """The copy has a new value.

    Attributes:
        data: All of it, frozen.
        change: The change from the version before; None: the whole object came.
    """

    version: int
    data: JsonObject
    change: Change | None = attrs.field(default=None, eq=False)


@final
@attrs.frozen(slots=True)
class ReadNeeded:
    """A change is missing, or may be: read the whole object (M-41).

    Attributes:
        read: Number of the read, for `ReadFailed`.
    """

    read: int


@final
@attrs.frozen(slots=True)
class ObserverGone:
    """The copy has ended: no more changes are applied (I-D7, I-D8)."""

    why: str = ""


ObserverEffect: TypeAlias = Step | Applied | ReadNeeded | ObserverGone

_OBJECT_BYTES: Final = 6
"""Bytes of JSON around a key and what it leads to: quotes, a colon, a comma, and brackets."""


@final
class ObserverCore:
    """An observer's copy of one data object: one entity of the machine `observer_copy`.

    Inputs after its end are ignored; a new subscription needs another core.

    Args:
        url: Address of the object.
        observer: Address of the observer.
        quiet: Seconds without a message after which a live copy reads; infinity: never.
    """

    def __init__(self, url: str, observer: str, quiet: float = QUIET) -> None:
        self._entity = Entity(OBSERVER_COPY, f"{url}|{observer}")
        self._version = 0
        self._data: JsonObject = frozen_object({})
        self._most = 0
        self._quiet = quiet
        self._early: dict[int, Change] = {}
        self._reads = 0
        self._not_found = 0
        self._until = math.inf
        self._read_at = math.inf

    @property
    def state(self) -> State | None:
        """The state of the copy; None: not begun."""
        state = self._entity.state
        return None if state is None else State(state)

    @property
    def version(self) -> int:
        """Version of the value; 0: there is none yet."""
        return self._version

    @property
    def data(self) -> JsonObject:
        """The value as of the last change applied; frozen."""
        return self._data

    def deadline(self) -> float:
        """Return when to be fed `CopyTimeOver`; infinity: never."""
        return min(self._until, self._read_at)

    def feed(self, happened: ObserverInput, now: float) -> list[ObserverEffect]:
        """Take an input; return the effects, in order.

        Args:
            happened: The input.
            now: Seconds on the host's clock.
        """
        return [] if self.state is State.DELETED else self._feed(happened, now)

    def _feed(self, happened: ObserverInput, now: float) -> list[ObserverEffect]:
        match happened:
            case ObserveBegun() | Recalled():
                return self._begin(happened, now)
            case SnapshotRead(snapshot):
                return self._sync(snapshot, now)
            case Changed() | Unreadable():
                return self._published(happened, now)
            case ReadFailed() | NotFound():
                return self._read_in_vain(happened, now)
            case GivenUp() | WithdrawnByReporter():
                return self._end(happened, now)
            case CopyTimeOver():
                return self._time_over(now)
            case _:
                assert_never(happened)

    def _step(self, trigger: Trigger, now: float, why: str = "") -> Step:
        """Enter a state, and begin its wait."""
        given = {Condition.GAP} if trigger is Trigger.CHANGED else NOTHING
        step = self._entity.step(trigger, why, given)
        self._until = now + self._entity.patience
        self._read_at = math.inf
        return step

    def _begin(self, happened: ObserveBegun | Recalled, now: float) -> list[ObserverEffect]:
        if isinstance(happened, ObserveBegun):
            return [self._step(Trigger.OBSERVE, now)]
        return self._recall(happened.version, happened.data, now)

    def _recall(self, version: int, data: JsonObject, now: float) -> list[ObserverEffect]:
        """Show the stored value, unless a newer one has come already."""
        if self.state is not State.SYNCING:
            return []
        step = self._step(Trigger.RECALLED, now)
        # A copy without subscription may not read: the subscription brings the object.
        self._until = math.inf
        self._become(version, data)
        return [step, Applied(version, self._data)]

    # --- versions -------------------------------------------------------------------------

    def _sync(self, snapshot: Snapshot | DataObject, now: float) -> list[ObserverEffect]:
        # Repeated reads that do not close the gap are spaced.
        pause = READ_PAUSE if self.state is State.STALE else 0.0
        effects: list[ObserverEffect] = [self._step(Trigger.SNAPSHOT, now)]
        self._hear(now)
        if snapshot.version > self._version:
            self._become(snapshot.version, snapshot.data)
            effects.append(Applied(self._version, self._data))
        early, self._early = self._early, {}
        for version in sorted(early):
            if version > self._version and self.state is not State.DELETED:
                effects += self._take(early[version], now, pause)
        return effects

    def _take(self, change: Change, now: float, pause: float = 0.0) -> list[ObserverEffect]:
        version = change.version
        if self.state is not State.LIVE:
            # The state, its wait and the read under way stay as they are.
            self._keep(version, change)
            return [self._entity.step(Trigger.CHANGED)]
        gap = self._gap(change)
        if gap:
            self._keep(version, change)
            step = self._step(Trigger.CHANGED, now, gap)
            self._read_at = now + pause
            return [step] if pause else [step, self._read()]
        step = self._entity.step(Trigger.CHANGED)
        self._hear(now)
        if version <= self._version:
            return [step]
        return [step, *self._apply(change, now)]

    def _gap(self, change: Change) -> str:
        """Return why a change does not lead on from the value; empty: it does, or is late."""
        version, has = change.version, self._version
        if version > has + 1:
            return f"{version} came after {has}"
        is_next = version == has + 1
        return (
            f"{version} does not fit {has}"
            if is_next and not is_applicable(self._data, change)
            else ""
        )

    def _published(self, happened: Changed | Unreadable, now: float) -> list[ObserverEffect]:
        """Take a change, or read what it was: after a pause, so that no peer causes many reads."""
        if isinstance(happened, Changed):
            return self._take(happened.change, now)
        if self.state is not State.LIVE:
            return []
        step = self._step(Trigger.CHANGED, now, happened.why)
        self._read_at = now + READ_PAUSE
        return [step]

    def _become(self, version: int, data: JsonObject) -> None:
        """Take a whole value, which has come in one message."""
        self._version, self._data, self._most = version, frozen_object(data), json_size(data)

    def _apply(self, change: Change, now: float) -> list[ObserverEffect]:
        """Make the value another; it is counted only when it may be too large."""
        data = frozen_object(changed(self._data, change))
        self._most += _most_brought(change)
        if self._most > VALUE_BYTES:
            self._most = json_size(data)
        if self._most > VALUE_BYTES:
            return self._end(GivenUp(f"its value has more than {VALUE_BYTES} bytes"), now)
        self._version, self._data = change.version, data
        return [Applied(change.version, data, change)]

    def _keep(self, version: int, change: Change) -> None:
        """Keep a change that came early; of too many the oldest go.

        Then the newest shows the gap, and the object is read: nothing is lost silently.
        """
        if version > self._version:
            self._early[version] = change
        if len(self._early) > EARLY_CHANGES:
            del self._early[min(self._early)]

    # --- reads and time -------------------------------------------------------------------

    def _hear(self, now: float) -> None:
        """Note that a live copy got a message of its reporter."""
        self._read_at = now + self._quiet
        self._not_found = 0

    @property
    def _is_reading(self) -> bool:
        """True if a stale copy waits for a read, not for the next one to be due."""
        return self._read_at == math.inf

    def _read(self) -> ReadNeeded:
        self._reads += 1
        self._read_at = math.inf
        return ReadNeeded(self._reads)

    def _read_in_vain(self, happened: ReadFailed | NotFound, now: float) -> list[ObserverEffect]:
        does = self._fail if isinstance(happened, ReadFailed) else self._miss
        return does(happened.read, happened.why, now)

    def _fail(self, read: int, why: str, now: float) -> list[ObserverEffect]:
        if self.state is not State.STALE or not self._is_reading or read != self._reads:
            return []
        step = self._step(Trigger.READ_FAILED, now, why)
        self._read_at = now + READ_PAUSE
        return [step]

    def _miss(self, read: int, why: str, now: float) -> list[ObserverEffect]:
        """Look for the object again, at pauses that double, before it counts as gone."""
        if read != self._reads:
            return []
        self._not_found += 1
        if self._not_found >= GONE_READS:
            return self._end(GivenUp(why), now)
        failed = self._fail(read, why, now)
        self._read_at = now + READ_PAUSE * 2.0 ** (self._not_found - 1)
        return failed

    def _time_over(self, now: float) -> list[ObserverEffect]:
        if now < self.deadline():
            return []
        if self.state is State.SYNCING:
            return self._end(GivenUp("no snapshot came in time"), now)
        if self.state is State.LIVE:
            return [self._check(now)]
        if now < self._until:
            return [self._read()]
        return [self._step(Trigger.READ_FAILED, now, "the read was not answered"), self._read()]

    def _check(self, now: float) -> ReadNeeded:
        """Read what may be as it was: the copy stays live, and the read may fail."""
        read = self._read()
        self._read_at = now + min(REPEAT_LAST, self._quiet)
        return read

    def _end(self, happened: GivenUp | WithdrawnByReporter, now: float) -> list[ObserverEffect]:
        self._early = {}
        if isinstance(happened, GivenUp):
            return [self._step(Trigger.GIVEN_UP, now, happened.why), ObserverGone(happened.why)]
        return [self._step(Trigger.DELETED, now), ObserverGone("deleted by its reporter")]


def _most_brought(change: Change) -> int:
    """Return how many bytes a change makes a value larger at most.

    Each segment of a path may be the key of a new object: it is written with brackets then.
    """
    segments = 1 if change.attribute is None else change.attribute.count(".") + 1
    return json_size([change.attribute, change.value]) + _OBJECT_BYTES * segments
