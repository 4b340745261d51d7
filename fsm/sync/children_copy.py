"""The children of a data object at a hyperty: a copy that finds its own gaps (SYN-24).

The reporter's end has all children, and publishes a sign of them. A copy that has had the
state of the sign before is ahead of it; but if the same sign is repeated, the reporter's end
lacks something. Otherwise a message may be under way; if it has not come after a pause, the
object is read. Messages that came during the read are applied on top of its result.

A reporter's end gives no signs of children that it never had. So after a child of another
creator a sign must come in time, or the object is read. A reporter that gives no versions of
children gives no signs at all: then what was heard counts.

Of its own children a copy knows better: if the reporter's end does not show them, it sends
them again, a few times; then the reporter's end counts for them, too.
"""

import math
from collections import Counter, deque
from collections.abc import Set as AbstractSet
from typing import Final, Protocol

import attrs

from fsm.sync.children import ChildOp, ChildSet, Kept, children_in
from specs.bodies.object import ChildrenSign
from specs.child import RESOURCES
from specs.jsonvalue import JsonObject
from specs.limits.protocol import READ_PAUSE
from specs.limits.sync import CHILDREN_OF_CREATOR, QUIET, REASSERTIONS, REPEAT_LAST
from specs.message import MessageType

_SIGNS: Final = 256
"""Signs of its own past by which a copy knows that it is not behind (ours)."""

_HEARD: Final = 1000
"""Changes during a read is under way that are kept; then the oldest go (ours)."""


class ChildrenPort(Protocol):
    """What a copy of children asks of its host; no method calls the copy."""

    def changed(self, name: str) -> None:
        """Show that a child came, changed or went."""

    def read(self, number: int) -> None:
        """Read the whole object (M-41): some are missing, or too many are there.

        Args:
            number: Number of the read, for `read_failed`.
        """

    def say_again(self, act: MessageType, name: str) -> None:
        """Send an operation of the own hyperty again, which the reporter's end lacks.

        The new message has a version of its own; the host passes it to `take`.
        """


class ChildrenCopyCore:
    """A copy of the children of one object.

    Args:
        keeper: The hyperty of this copy: the one creator whose children the copy knows best.
        port: The host.

    Attributes:
        children: All of them; not to be changed.
    """

    def __init__(self, keeper: str, port: ChildrenPort) -> None:
        self.children: Final = ChildSet()
        self._keeper = keeper
        self._port = port
        self._past: dict[ChildrenSign, int] = {}
        self._number = 0
        self._latest = 0
        self._missed: ChildrenSign | None = None
        self._due = math.inf
        self._sign_by = math.inf
        self._is_check = False
        self._is_doubted = False
        self._pause = READ_PAUSE
        self._reads = 0
        self._heard: deque[ChildOp] | None = deque(maxlen=_HEARD)
        self._deleted: dict[str, None] = {}
        self._again: Counter[str] = Counter()
        self._note()

    def deadline(self) -> float:
        """Return when `time_over` is due; infinity: never."""
        return min(self._due, self._sign_by)

    # --- inputs: `now` is the time on the host's clock ------------------------------------

    def take(self, op: ChildOp, now: float, *, is_reported: bool = False) -> None:
        """Take an operation of a creator; also one of the own hyperty, once it is sent.

        Args:
            op: The operation.
            now: Seconds on the host's clock.
            is_reported: Whether the reporter's end vouches for it: the creator was not heard here.
        """
        is_own = op.creator == self._keeper
        if is_reported and is_own:
            # Of its own children a copy takes nobody's word but its hyperty's.
            return
        if self._heard is not None:
            self._heard.append(op)
        if is_own and op.act is MessageType.DELETE:
            self._deleted[op.name] = None
            if len(self._deleted) > CHILDREN_OF_CREATOR:
                self._deleted.pop(next(iter(self._deleted)))
        # One more than fits here the reporter's end has refused, too.
        taken = self.children.take(op)
        if taken is not False and not (is_own or is_reported):
            self._sign_by = min(self._sign_by, now + QUIET)
        self._note()
        self._settle()
        if taken is True:
            self._port.changed(op.name)

    def doubt(self, now: float) -> None:
        """Read at once: messages may have been missed, and no sign will show it."""
        self._due, self._is_check = min(self._due, now), False
        self._is_doubted = True

    # --- signs ----------------------------------------------------------------------------

    def _note(self) -> None:
        """Remember the present state of the copy, the newest last."""
        self._number += 1
        sign = self.children.sign
        self._past.pop(sign, None)
        self._past[sign] = self._number
        if len(self._past) > _SIGNS:
            del self._past[next(iter(self._past))]

    def hear_sign(self, sign: ChildrenSign, now: float) -> None:
        """Take the sign of its children that the reporter's end has published."""
        self._sign_by, self._is_check = math.inf, False
        number = self._past.get(sign, 0)
        is_ahead = number > self._latest
        self._latest = max(self._latest, number)
        if sign == self.children.sign:
            self._missed, self._pause = None, READ_PAUSE
            self._is_doubted = False
            self._again.clear()
        elif is_ahead:
            self._missed = None
        else:
            self._missed = sign
            if self._heard is None:
                self._due = min(self._due, now + self._pause)
        self._settle()

    def _settle(self) -> None:
        """End the wait if the missing children have come."""
        if self._missed == self.children.sign:
            self._sign_by = math.inf
        if self._missed in {None, self.children.sign}:
            self._missed = None
            if self._heard is None and not self._is_doubted:
                self._due = math.inf

    # --- reads ----------------------------------------------------------------------------

    def time_over(self, now: float) -> None:
        """Do what is due."""
        if now < self.deadline():
            return
        # While it is a check, nothing but the silence of the reporter asks for it.
        self._is_check |= now < self._due
        self._sign_by = math.inf
        self._reads += 1
        self._heard = deque(maxlen=_HEARD)
        self._pause = min(2 * self._pause, REPEAT_LAST)
        # Without an answer, it is read again.
        self._due = now + REPEAT_LAST
        self._port.read(self._reads)

    def read_failed(self, read: int, now: float) -> None:
        """Repeat a read later."""
        if read == self._reads and self._heard is not None:
            self._heard = None
            if self._is_check:
                self._sign_by = now + self._pause
            else:
                self._due = now + self._pause

    def become(self, shown: JsonObject | None, now: float) -> None:
        """Take the whole object with all its children.

        Args:
            shown: As `childrenObjects` has them; None: the object did not say.
            now: Seconds on the host's clock.
        """
        since, self._heard = self._heard or (), None
        is_check, self._is_check = self._is_check, False
        self._due, self._is_doubted = math.inf, False
        if shown is None:
            # Its reporter has none, or too many to show them.
            self._due = math.inf if self._missed is None else now + self._pause
            return
        resource = shown.get(RESOURCES)
        there = children_in(resource if isinstance(resource, dict) else None)
        if is_check and not all(kept.version for kept in there.values()):
            return
        self._missed = None
        again = self._find_unknown(there, {op.name for op in since})
        for name in self.children.become(there):
            self._port.changed(name)
        for op in since:
            # What was read may be newer; where it is not, this may be said to be new.
            new = op if op.act is MessageType.DELETE else attrs.evolve(op, act=MessageType.UPDATE)
            if self.children.take(new) is True:
                self._port.changed(op.name)
        self._note()
        for act, name in again:
            self._port.say_again(act, name)

    def _find_unknown(
        self, there: dict[str, Kept], since: AbstractSet[str]
    ) -> list[tuple[MessageType, str]]:
        """Keep, and return, operations of the keeper that the reporter's end does not show."""
        again: list[tuple[MessageType, str]] = []
        for name in self.children.names_of(self._keeper):
            mine, theirs = self.children.find(name), there.get(name)
            is_known = theirs is not None and mine is not None and theirs.version >= mine.version
            if mine is None or is_known or name in since:
                continue
            if self._may_again(name):
                there[name] = mine
                again.append((MessageType.UPDATE, name))
        for name in [name for name in self._deleted if name in there and name not in since]:
            if self._may_again(name):
                del there[name]
                again.append((MessageType.DELETE, name))
        return again

    def _may_again(self, name: str) -> bool:
        self._again[name] += 1
        return self._again[name] <= REASSERTIONS
