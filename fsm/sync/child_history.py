"""The children of an object at its reporter's end: their order and age, and what has left (SYN-24).

The reporter's end decides alone which children leave the window of the object, and which its
reporter deletes. It numbers the children in the order in which it has accepted them: the oldest
leave first. Observers are told the names of removed children, a moment later and several at a time,
together with the digest of those that remain.

A late observer reads the children that remain, in pages if no message has space for all of them.
"""

import math
from itertools import islice
from typing import Final

import attrs

from fsm.effects import Refused
from fsm.sync.children import ENTRY, ChildOp, ChildSet, children_in, whole_in
from specs.bodies.object import ChildrenEnded, ChildrenSign, ChildWindow
from specs.child import RESOURCES, child_name
from specs.jsonvalue import JsonObject
from specs.limits import sync
from specs.message import MessageType
from specs.reply_code import Code


@attrs.frozen(slots=True)
class _Place:
    """The number of a child, and the time at which it was accepted, in seconds since 1970."""

    number: int
    time: float


class ChildHistory:
    """All children of a reported object.

    Args:
        window: The children that the object keeps; None: all, within the limits of an object.
        epoch: Seconds since 1970 when the host's clock was 0; ages continue after a restart.

    Attributes:
        children: The children; changed by the methods of this class only.
    """

    def __init__(self, window: ChildWindow | None = None, epoch: float = 0.0) -> None:
        self.children: Final = ChildSet(window)
        self._window = window
        self._epoch = epoch
        self._places: dict[str, _Place] = {}
        self._created = self._gone = 0
        self._ended: list[str] = []
        self._report_at = math.inf

    def deadline(self) -> float:
        """Return the time at which a child leaves, or a report is due; infinity: never."""
        oldest = next(iter(self.children), None)
        return self._report_at if oldest is None else min(self._report_at, self._leaves_at(oldest))

    def _leaves_at(self, name: str) -> float:
        """Return when a child becomes too old, on the host's clock."""
        if self._window is None or self._window.seconds is None:
            return math.inf
        return self._places[name].time + self._window.seconds - self._epoch

    def is_report_due(self, now: float) -> bool:
        """Return whether removed children are to be reported now."""
        return now >= self._report_at or len(self._ended) >= sync.ENDED_AT_ONCE

    # --- changes: `now` is the time on the host's clock ---------------------------------------

    def take(self, op: ChildOp, now: float) -> Refused | bool:
        """Apply the operation of a creator, as `ChildSet.take`."""
        is_new = op.name not in self.children
        if self._window is not None and is_new and op.act is MessageType.UPDATE:
            return Refused(Code.GONE, "the child was removed from the object")
        result = self.children.take(op)
        if result is not True or self._window is None:
            return result
        if op.act is MessageType.DELETE:
            del self._places[op.name]
        elif is_new:
            self._created += 1
            self._places[op.name] = _Place(self._created, now + self._epoch)
        return True

    def trim(self, now: float) -> list[str]:
        """Remove the children that leave the window; return their names, the oldest first."""
        ended = self.children.trim()
        while (oldest := next(iter(self.children), None)) and self._leaves_at(oldest) <= now:
            self.children.end(oldest)
            ended.append(oldest)
        self._gone = max([self._gone, *(self._places.pop(name).number for name in ended)])
        self._note(ended, now)
        return ended

    def end(self, name: str, now: float) -> bool:
        """Remove a child that the reporter deletes; return whether it existed."""
        is_present = self.children.end(name)
        if is_present:
            self._places.pop(name, None)
            self._note([name], now)
        return is_present

    def _note(self, ended: list[str], now: float) -> None:
        if ended:
            self._ended += ended
            self._report_at = min(self._report_at, now + sync.WINDOW_PAUSE)

    # --- what observers get -------------------------------------------------------------------

    def report(self) -> ChildrenEnded | ChildrenSign:
        """Return the digest of the children, with the names that observers do not know to be gone.

        At most `ENDED_AT_ONCE` names; the others are due at once.
        """
        sign, most = self.children.sign, sync.ENDED_AT_ONCE
        ended, self._ended = tuple(self._ended[:most]), self._ended[most:]
        if not self._ended:
            self._report_at = math.inf
        if self._window is not None:
            counts = (self._created, self._gone)
            return ChildrenEnded(sign.count, sign.digest, ended, *counts)
        return ChildrenEnded(sign.count, sign.digest, ended) if ended else sign

    def snapshot(self) -> JsonObject:
        """Return all children in the form of a read answer."""
        if self._window is None:
            return {RESOURCES: self.children.shown()}
        return self._page([*self.children])

    def for_store(self) -> JsonObject:
        """Return the children for the store, with the last removed number of each creator."""
        ended: JsonObject = {**self.children.last_ended()}
        return {**self.snapshot(), "ended": ended} if ended else self.snapshot()

    def page(self, after: int) -> JsonObject:
        """Return the children from a number on, as many as one message has space for.

        Args:
            after: Number of the last child before the page.
        """
        names, space = list[str](), sync.PAGE_BYTES
        later = (name for name in self.children if self._places[name].number > after)
        for name in islice(later, sync.CHILDREN_OF_OBJECT + 1):
            kept = self.children.find(name)
            space -= 2 * ENTRY + (0 if kept is None else kept.size)
            if space < 0 or len(names) == sync.CHILDREN_OF_OBJECT:
                return self._page(names, self._places[names[-1]].number)
            names.append(name)
        return self._page(names)

    def _page(self, names: list[str], last: int | None = None) -> JsonObject:
        entries: JsonObject = {}
        for name in names:
            kept, place = self.children.find(name), self._places[name]
            if kept is not None:
                about: JsonObject = {"place": place.number, "time": round(place.time, 3)}
                entries[name] = {"value": kept.value, "version": kept.version, **about}
        counts: JsonObject = {"created": self._created, "gone": self._gone}
        return {
            RESOURCES: entries,
            "window": counts if last is None else {**counts, "next": last},
        }

    def restore(self, stored: JsonObject, now: float) -> None:
        """Take the children that were stored, in the form of `for_store`."""
        listed, counts = stored.get(RESOURCES), stored.get("window")
        entries = listed if isinstance(listed, dict) else {}
        self.children.become(children_in(entries, self._window))
        ended = stored.get("ended")
        for creator in ended if isinstance(ended, dict) else ():
            if number := whole_in(ended, creator):
                self.children.end(child_name(creator, number))
        if self._window is None:
            return
        for name in self.children:
            entry = entries[name]
            place = entry if isinstance(entry, dict) else {}
            self._created = max(self._created + 1, whole_in(place, "place"))
            time = place.get("time")
            since = float(time) if isinstance(time, int | float) else now + self._epoch
            self._places[name] = _Place(self._created, since)
        self._created = max(self._created, whole_in(counts, "created"))
        self._gone = whole_in(counts, "gone")
