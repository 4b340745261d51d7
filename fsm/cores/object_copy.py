"""The observer's end of a data object: a copy that follows version by version.

Changes are applied strictly in order; a gap makes the copy stale until the whole
object was read (SYN-17, I-D3). Nothing is applied before the snapshot (I-D5). A read
that fails is made again after a pause, one that nobody answers when its time is over.
"""

import math
from typing import TypeAlias, assert_never, final

import attrs

from fsm.cores.object_value import changed
from fsm.engine import NOTHING, Entity, Step
from fsm.machines.observer_copy import OBSERVER_COPY, Condition, State, Trigger
from specs.body_sync import Change, DataObject, Snapshot
from specs.jsonvalue import JsonObject
from specs.limits import EARLY_CHANGES, READ_PAUSE

__all__ = [
    "Applied",
    "Changed",
    "CopyTimeOver",
    "GivenUp",
    "ObserveBegun",
    "ObserverCore",
    "ObserverEffect",
    "ObserverGone",
    "ObserverInput",
    "ReadFailed",
    "ReadNeeded",
    "SnapshotRead",
    "WithdrawnByReporter",
]


@final
@attrs.frozen(slots=True)
class ObserveBegun:
    """The subscription was asked for (M-36); changes may come from now on."""


@final
@attrs.frozen(slots=True)
class SnapshotRead:
    """The whole object came: with the subscription's answer, or read after a gap."""

    snapshot: Snapshot | DataObject


@final
@attrs.frozen(slots=True)
class Changed:
    """A change was published (M-40)."""

    change: Change


@final
@attrs.frozen(slots=True)
class ReadFailed:
    """A read came to nothing for now: nobody answered, or there was no way.

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
    """The deadline is over."""


ObserverInput: TypeAlias = (
    ObserveBegun
    | SnapshotRead
    | Changed
    | ReadFailed
    | GivenUp
    | WithdrawnByReporter
    | CopyTimeOver
)


@final
@attrs.frozen(slots=True)
class Applied:
    """The copy has a new value."""

    version: int
    data: JsonObject


@final
@attrs.frozen(slots=True)
class ReadNeeded:
    """A change is missing: read the whole object (M-41).

    Attributes:
        read: Number of the read, for `ReadFailed`.
    """

    read: int


@final
@attrs.frozen(slots=True)
class ObserverGone:
    """Nothing will be applied any more (I-D7, I-D8)."""

    why: str = ""


ObserverEffect: TypeAlias = Step | Applied | ReadNeeded | ObserverGone


@final
class ObserverCore:
    """An observer's copy of one data object: one entity of the machine `observer_copy`.

    What comes after its end is ignored; for another story make another core.
    """

    def __init__(self, url: str, observer: str) -> None:
        self._entity = Entity(OBSERVER_COPY, f"{url}|{observer}")
        self._version = 0
        self._data: JsonObject = {}
        self._early: dict[int, Change] = {}
        self._reads = 0
        self._until = math.inf
        self._read_at = math.inf

    @property
    def state(self) -> State | None:
        """Whether the copy is what the reporter has; None: not begun."""
        state = self._entity.state
        return None if state is None else State(state)

    @property
    def version(self) -> int:
        """Of the value; 0: there is none yet."""
        return self._version

    @property
    def data(self) -> JsonObject:
        """The value as of the last change applied."""
        return self._data

    def deadline(self) -> float:
        """Return when to be fed `CopyTimeOver`; infinity: never."""
        return min(self._until, self._read_at)

    def feed(self, happened: ObserverInput, now: float) -> list[ObserverEffect]:
        """Take one input, say what is to be done."""
        return [] if self.state is State.DELETED else self._feed(happened, now)

    def _feed(self, happened: ObserverInput, now: float) -> list[ObserverEffect]:
        match happened:
            case ObserveBegun():
                return [self._step(Trigger.OBSERVE, now)]
            case SnapshotRead(snapshot):
                return self._sync(snapshot, now)
            case Changed(change):
                return self._take(change, now)
            case ReadFailed(read, why):
                return self._fail(read, why, now)
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

    # --- versions -------------------------------------------------------------------------

    def _sync(self, snapshot: Snapshot | DataObject, now: float) -> list[ObserverEffect]:
        # Whoever reads again and again what does not close the gap takes its time.
        pause = READ_PAUSE if self.state is State.STALE else 0.0
        effects: list[ObserverEffect] = [self._step(Trigger.SNAPSHOT, now)]
        if snapshot.version > self._version:
            self._version, self._data = snapshot.version, snapshot.data
            effects.append(Applied(self._version, self._data))
        early, self._early = self._early, {}
        for version in sorted(early):
            if version > self._version:
                effects += self._take(early[version], now, pause)
        return effects

    def _take(self, change: Change, now: float, pause: float = 0.0) -> list[ObserverEffect]:
        version = change.version
        if self.state is not State.LIVE:
            # The state, its wait and the read under way stay as they are.
            self._keep(version, change)
            return [self._entity.step(Trigger.CHANGED)]
        if version > self._version + 1:
            self._keep(version, change)
            step = self._step(Trigger.CHANGED, now, f"{version} came after {self._version}")
            self._read_at = now + pause
            return [step] if pause else [step, self._read()]
        step = self._entity.step(Trigger.CHANGED)
        if version <= self._version:
            return [step]
        self._version, self._data = version, changed(self._data, change)
        return [step, Applied(version, self._data)]

    def _keep(self, version: int, change: Change) -> None:
        """Keep a change that came early; of too many the oldest go.

        Then the newest shows the gap, and the object is read: nothing is lost silently.
        """
        if version > self._version:
            self._early[version] = change
        if len(self._early) > EARLY_CHANGES:
            del self._early[min(self._early)]

    # --- reads and time -------------------------------------------------------------------

    @property
    def _is_reading(self) -> bool:
        """Whether a stale copy waits for a read, not for the next one to be due."""
        return self._read_at == math.inf

    def _read(self) -> ReadNeeded:
        self._reads += 1
        self._read_at = math.inf
        return ReadNeeded(self._reads)

    def _fail(self, read: int, why: str, now: float) -> list[ObserverEffect]:
        if self.state is not State.STALE or not self._is_reading or read != self._reads:
            return []
        step = self._step(Trigger.READ_FAILED, now, why)
        self._read_at = now + READ_PAUSE
        return [step]

    def _time_over(self, now: float) -> list[ObserverEffect]:
        if now < self.deadline():
            return []
        if self.state is State.SYNCING:
            return self._end(GivenUp("no snapshot came in time"), now)
        if now < self._until:
            return [self._read()]
        return [self._step(Trigger.READ_FAILED, now, "nobody answered the read"), self._read()]

    def _end(self, happened: GivenUp | WithdrawnByReporter, now: float) -> list[ObserverEffect]:
        self._early = {}
        if isinstance(happened, GivenUp):
            return [self._step(Trigger.GIVEN_UP, now, happened.why), ObserverGone(happened.why)]
        return [self._step(Trigger.DELETED, now), ObserverGone("deleted by its reporter")]
