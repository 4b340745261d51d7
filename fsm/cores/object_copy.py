"""The observer's end of a data object: a copy that follows version by version.

Changes are applied strictly in order; a gap makes the copy stale until the whole
object was read (SYN-17, I-D3). Nothing is applied before the snapshot (I-D5).
"""

from collections import deque
from enum import Enum, unique
from typing import TypeAlias, assert_never, final

import attrs

from fsm.cores.object_value import changed
from specs.body_sync import Change, DataObject
from specs.jsonvalue import JsonObject
from specs.limits import STUB_QUEUE

__all__ = [
    "Applied",
    "Changed",
    "ObserverCore",
    "ObserverEffect",
    "ObserverGone",
    "ObserverInput",
    "ReadNeeded",
    "SnapshotRead",
    "WithdrawnByReporter",
]


@final
@attrs.frozen(slots=True)
class SnapshotRead:
    """The whole object came: with the subscription's answer, or read after a gap."""

    snapshot: DataObject


@final
@attrs.frozen(slots=True)
class Changed:
    """A change was published (M-40)."""

    change: Change


@final
@attrs.frozen(slots=True)
class WithdrawnByReporter:
    """The object was deleted by its reporter (M-47)."""


ObserverInput: TypeAlias = SnapshotRead | Changed | WithdrawnByReporter


@final
@attrs.frozen(slots=True)
class Applied:
    """The copy has a new value."""

    version: int
    data: JsonObject


@final
@attrs.frozen(slots=True)
class ReadNeeded:
    """A change is missing: read the whole object (M-41)."""


@final
@attrs.frozen(slots=True)
class ObserverGone:
    """The object is no more; nothing will be applied (I-D8)."""


ObserverEffect: TypeAlias = Applied | ReadNeeded | ObserverGone


@unique
class _Copy(Enum):
    SYNCING = "syncing"
    LIVE = "live"
    STALE = "stale"
    DELETED = "deleted"


@final
class ObserverCore:
    """The observer's copy of one data object."""

    def __init__(self) -> None:
        self._copy = _Copy.SYNCING
        self._version = 0
        self._data: JsonObject = {}
        self._early: deque[Change] = deque(maxlen=STUB_QUEUE)

    @property
    def data(self) -> JsonObject:
        """The value as of the last change applied."""
        return self._data

    def feed(self, happened: ObserverInput) -> list[ObserverEffect]:
        """Take one input, say what is to be done."""
        if self._copy is _Copy.DELETED:
            return []
        match happened:
            case SnapshotRead(snapshot):
                return self._sync(snapshot)
            case Changed(change):
                return self._take(change)
            case WithdrawnByReporter():
                self._copy = _Copy.DELETED
                return [ObserverGone()]
            case _:
                assert_never(happened)

    def _sync(self, snapshot: DataObject) -> list[ObserverEffect]:
        effects: list[ObserverEffect] = []
        if self._copy is _Copy.SYNCING or snapshot.version > self._version:
            self._version, self._data = snapshot.version, snapshot.data
            effects.append(Applied(self._version, self._data))
        self._copy = _Copy.LIVE
        early, self._early = self._early, deque(maxlen=STUB_QUEUE)
        for change in early:
            effects += self._take(change)
        return effects

    def _take(self, change: Change) -> list[ObserverEffect]:
        version = change.version or 0
        if self._copy is not _Copy.LIVE:
            self._early.append(change)
            return []
        if version <= self._version:
            return []
        if version > self._version + 1:
            self._copy = _Copy.STALE
            self._early.append(change)
            return [ReadNeeded()]
        self._version, self._data = version, changed(self._data, change)
        return [Applied(version, self._data)]
