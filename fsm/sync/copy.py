"""Observer's copy of a data object, which follows the published changes version by version.

Changes are applied strictly in order; a gap, or a change that does not fit the value, makes the
copy stale until the whole object was read (SYN-17, I-D3). No change is applied before the snapshot
(I-D5). A read that fails is repeated after a pause; a read without an answer, when its time limit
has passed.

The loss of the last change leaves no gap, and the loss of the reporter's runtime is not announced.
So the reporter repeats its last change, and a live copy that gets no message for a long time reads
the object (I-D4). The read brings missed changes, or the answer that the object is gone, which ends
the copy.

Many small changes can make a value larger than any message that contains the whole value. A copy
ends if it becomes larger than the value of an object may be, so no peer can fill the memory.

The value is frozen (`specs.jsonvalue`): readers get the value itself, not a copy of it.
"""

import math
from typing import Final, Protocol

from fsm.engine import NOTHING, Entity, Step
from fsm.machines.sync.observer_copy import OBSERVER_COPY, Condition, State, Trigger
from fsm.sync.value.json import json_size
from fsm.sync.value.value import apply_change, is_applicable
from specs.bodies.object import Change, DataObject, Snapshot
from specs.jsonvalue import JsonObject, frozen_object
from specs.limits.protocol import EARLY_CHANGES, READ_PAUSE
from specs.limits.sync import GONE_READS, QUIET, REPEAT_LAST, VALUE_BYTES

_OBJECT_BYTES: Final = 6
"""Number of bytes of JSON around a key and its value: quotes, colon, comma, and brackets."""


class CopyPort(Protocol):
    """Callbacks of `ObserverCore` to its host; none of them may call the core."""

    def step(self, step: Step) -> None:
        """Trace a transition of the copy's state machine."""

    def show(self, version: int, data: JsonObject, change: Change | None) -> None:
        """Pass a new value, which is frozen, to the observer.

        Args:
            version: Version of the value.
            data: The whole value.
            change: The change from the version before; None: the whole object came.
        """

    def read(self, number: int) -> None:
        """Read the whole object from the reporter (M-41), since a change may be missing.

        Args:
            number: Number of the read, for `read_failed` and `not_found`.
        """

    def end(self, why: str) -> None:
        """Tell the observer that the copy has ended: no more changes are applied (I-D7, I-D8)."""


class ObserverCore:
    """State and value of an observer's copy of one data object (state machine `observer_copy`).

    Inputs after the end of the copy are ignored; a new subscription needs another core.

    Args:
        url: Address of the object.
        observer: Address of the observer.
        port: The host.
        quiet: Seconds without a message after which a live copy reads the object; infinity:
            never.

    Attributes:
        version: Version of the value; 0: no value has come yet.
        data: The value after the last applied change; frozen.
    """

    def __init__(self, url: str, observer: str, port: CopyPort, quiet: float = QUIET) -> None:
        self._entity = Entity(OBSERVER_COPY, f"{url}|{observer}")
        self._port = port
        self._quiet = quiet
        self.version = 0
        self.data: JsonObject = frozen_object({})
        self._most = 0
        self._early: dict[int, Change] = {}
        self._reads = 0
        self._not_found = 0
        self._until = math.inf
        self._read_at = math.inf

    @property
    def state(self) -> State | None:
        """The state of the copy; None: `begin` was not called yet."""
        state = self._entity.state
        return None if state is None else State(state)

    def deadline(self) -> float:
        """Return the time at which `time_over` must be called; infinity: never."""
        return min(self._until, self._read_at)

    def _step(self, trigger: Trigger, now: float, why: str = "") -> None:
        """Make a transition, and set the deadline of the new state."""
        conditions = {Condition.GAP} if trigger is Trigger.CHANGED else NOTHING
        self._port.step(self._entity.step(trigger, why, conditions))
        self._until = now + self._entity.patience
        self._read_at = math.inf

    # --- inputs: `now` is the time on the host's clock ----------------------------------------

    def begin(self, now: float) -> None:
        """Start the copy when its subscription is requested (M-36); changes may come from now."""
        if self.state is not State.DELETED:
            self._step(Trigger.OBSERVE, now)

    def recall(self, version: int, data: JsonObject, now: float) -> None:
        """Use the value stored before a restart (M-52), unless a newer one has come already."""
        if self.state is State.SYNCING:
            self._step(Trigger.RECALLED, now)
            # A copy without subscription may not read: the subscription brings the object.
            self._until = math.inf
            self._become(version, data)

    def become(self, whole: Snapshot | DataObject, now: float) -> None:
        """Take over the whole object from the answer to a subscription or to a read."""
        if self.state is State.DELETED:
            return
        # If a read does not close the gap, the next one follows after a pause.
        pause = READ_PAUSE if self.state is State.STALE else 0.0
        self._step(Trigger.SNAPSHOT, now)
        self._hear(now)
        if whole.version > self.version:
            self._become(whole.version, whole.data)
        early, self._early = self._early, {}
        for version in sorted(early):
            if version > self.version:
                self._take(early[version], now, pause)

    def change(self, change: Change, now: float) -> None:
        """Apply a published change (M-40), or keep the change until earlier ones have come."""
        self._take(change, now)

    def doubt(self, why: str, now: float) -> None:
        """Make a live copy stale and schedule a read, since a published message was no change."""
        if self.state is State.LIVE:
            self._step(Trigger.CHANGED, now, why)
            self._read_at = now + READ_PAUSE

    def read_failed(self, read: int, why: str, now: float) -> None:
        """Schedule another read after a pause, since no answer came or no route was known."""
        # No pause is needed if the next read is scheduled already.
        if self.state is State.STALE and self._read_at == math.inf and read == self._reads:
            self._step(Trigger.READ_FAILED, now, why)
            self._read_at = now + READ_PAUSE

    def not_found(self, read: int, why: str, now: float) -> None:
        """Read the object again, at pauses that double; end the copy after several such answers.

        A node that has lost its state does not know an object until the object's runtime has come
        back. So only `GONE_READS` such answers in a row end the copy.
        """
        if self.state is State.DELETED or read != self._reads:
            return
        self._not_found += 1
        if self._not_found >= GONE_READS:
            self.give_up(why, now)
            return
        self.read_failed(read, why, now)
        self._read_at = now + READ_PAUSE * 2.0 ** (self._not_found - 1)

    def give_up(self, why: str, now: float) -> None:
        """End the copy: the subscription or a read was refused for good, or the observer leaves."""
        self._end(Trigger.GIVEN_UP, now, why, why)

    def delete(self, now: float) -> None:
        """End the copy, since the reporter deleted the object (M-47)."""
        self._end(Trigger.DELETED, now, "", "deleted by its reporter")

    def time_over(self, now: float) -> None:
        """Read the object, or end the copy, if the deadline of its state has passed."""
        if now < self.deadline():
            return
        if self.state is State.SYNCING:
            self.give_up("no snapshot came in time", now)
        elif self.state is State.LIVE:
            # The object may be unchanged: the copy stays live, and the read may fail.
            self._read()
            self._read_at = now + min(REPEAT_LAST, self._quiet)
        else:
            if now >= self._until:
                self._step(Trigger.READ_FAILED, now, "the read was not answered")
            self._read()

    # --- versions -----------------------------------------------------------------------------

    def _take(self, change: Change, now: float, pause: float = 0.0) -> None:
        """Apply a change, or keep one that came early; if a version is missing, schedule a read."""
        version, state = change.version, self.state
        if state is State.DELETED:
            return
        if state is not State.LIVE:
            # The state, its deadline and the read under way do not change.
            self._keep(version, change)
            self._port.step(self._entity.step(Trigger.CHANGED))
            return
        gap = self._gap(change)
        if gap:
            self._keep(version, change)
            self._step(Trigger.CHANGED, now, gap)
            self._read_at = now + pause
            if not pause:
                self._read()
            return
        self._port.step(self._entity.step(Trigger.CHANGED))
        self._hear(now)
        if version > self.version:
            self._apply(change, now)

    def _gap(self, change: Change) -> str:
        """Return why a change cannot be applied to the value; empty: no version is missing."""
        version, present = change.version, self.version
        if version > present + 1:
            return f"{version} came after {present}"
        is_next = version == present + 1
        return (
            f"{version} does not fit {present}"
            if is_next and not is_applicable(self.data, change)
            else ""
        )

    def _become(self, version: int, data: JsonObject) -> None:
        """Replace the value by a whole value that came in one message."""
        self.version, self.data, self._most = version, frozen_object(data), json_size(data)
        self._port.show(version, self.data, None)

    def _apply(self, change: Change, now: float) -> None:
        """Apply a change to the value; end the copy if the value becomes too large."""
        data = frozen_object(apply_change(self.data, change))
        self._most += _most_brought(change)
        if self._most > VALUE_BYTES:
            self._most = json_size(data)
        if self._most > VALUE_BYTES:
            self.give_up(f"its value has more than {VALUE_BYTES} bytes", now)
            return
        self.version, self.data = change.version, data
        self._port.show(change.version, data, change)

    def _keep(self, version: int, change: Change) -> None:
        """Keep a change that came early; if too many are kept, drop the oldest.

        The newest change then reveals the missing version, and the object is read.
        """
        if version > self.version:
            self._early[version] = change
        if len(self._early) > EARLY_CHANGES:
            del self._early[min(self._early)]

    def _hear(self, now: float) -> None:
        """Restart the timer of silence, since a live copy got a message of its reporter."""
        self._read_at = now + self._quiet
        self._not_found = 0

    def _read(self) -> None:
        self._reads += 1
        self._read_at = math.inf
        self._port.read(self._reads)

    def _end(self, trigger: Trigger, now: float, why: str, reason: str) -> None:
        if self.state is not State.DELETED:
            self._early = {}
            self._step(trigger, now, why)
            self._port.end(reason)


def _most_brought(change: Change) -> int:
    """Return an upper bound of the bytes that a change adds to a value.

    Each segment of a path may be the key of a new object, which is written with brackets.
    """
    segments = 1 if change.attribute is None else change.attribute.count(".") + 1
    return json_size([change.attribute, change.value]) + _OBJECT_BYTES * segments
