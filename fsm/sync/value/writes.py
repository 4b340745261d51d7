"""Queue of a reporter's writes to its data object, until they are published (SYN-13..SYN-16).

A write changes the reporter's own value at once; the write waits in a queue until the runtime has
published it, in order. If a write cannot be published, all later writes in the queue are void, too:
they were made to a value that no observer will ever see. The reporter's own value is then the
published one again, and the next write, or the next wait for all to be published, fails with the
reason.

A write is published as the smallest change: the path of an attribute and its new value. A path
cannot name a key that is empty or contains a dot, and a change cannot set null, since a change
without a value removes. In these cases the surrounding value is set, if necessary the whole value.
"""

import json
from collections import deque
from typing import Final, TypeAlias

import attrs

from fsm.sync.value.json import Flaw, ObjectSchema, json_size, text_flaw, unsendable
from fsm.sync.value.value import ADD, ARRAY, apply_change, check_path, same, without
from specs.bodies.object import ChangeObject
from specs.bodies.word import Operation
from specs.errors import BadMessageError
from specs.jsonvalue import Absence, Json, JsonObject, value_at
from specs.limits.protocol import MAX_JSON_KEYS
from specs.limits.sync import VALUE_BYTES, VALUE_DEPTH, WRITES_WAITING
from specs.reply_code import Code

_Path: TypeAlias = tuple[str, ...]


@attrs.frozen(slots=True)
class _Edit:
    """Change of the part of a value at a path.

    Attributes:
        path: Path of the part.
        value: The value that is set; None: the part is removed.
        operation: For lists: the operation on the elements in `value`.
    """

    path: _Path
    value: Json = None
    operation: Operation | None = None


def smallest_change(url: str, old: JsonObject, new: JsonObject) -> ChangeObject | None:
    """Return the smallest change between two values of an object, or None if they are equal.

    If elements were added at the end of a list, or removed, the change names only these elements,
    unless the list itself is shorter.

    Args:
        url: Address of the object.
        old: The present value.
        new: The value after the change.
    """
    if same(old, new):
        return None
    edit = _within_object((), old, new)
    if edit is None:
        return ChangeObject(url, value=new)
    path = ".".join(edit.path)
    if edit.operation is None:
        return ChangeObject(url, path, edit.value)
    return ChangeObject(url, path, edit.value, ARRAY, edit.operation.value)


def _between(path: _Path, old: Json, new: Json) -> _Edit | None:
    """Return the smallest edit at or below a path, or None if no edit expresses the change."""
    if not _can_be_named(path[-1]):
        return None
    edit: _Edit | None = None
    if isinstance(old, dict) and isinstance(new, dict):
        edit = _within_object(path, old, new)
    elif isinstance(old, list) and isinstance(new, list):
        edit = _within_list(path, old, new)
    return edit or _set(path, new)


def _can_be_named(segment: str) -> bool:
    return bool(segment) and "." not in segment


def _set(path: _Path, new: Json) -> _Edit | None:
    return None if new is None or not _can_be_named(path[-1]) else _Edit(path, new)


def _within_object(path: _Path, old: JsonObject, new: JsonObject) -> _Edit | None:
    """Return the edit of the only attribute that differs; None: several differ, or no path fits."""
    differing = [
        key
        for key in {**old, **new}
        if not (key in old and key in new and same(old[key], new[key]))
    ]
    if len(differing) > 1:
        return None
    (key,) = differing
    child_path = (*path, key)
    if key not in old:
        return _set(child_path, new[key])
    if key not in new:
        return _Edit(child_path) if _can_be_named(key) else None
    return _between(child_path, old[key], new[key])


def _within_list(path: _Path, old: list[Json], new: list[Json]) -> _Edit | None:
    if len(old) < len(new):
        is_longer = all(map(same, old, new))
        return _Edit(path, new[len(old) :], Operation.ADD) if is_longer else None
    if len(old) > len(new):
        return _shortening(path, old, new)
    differing = [n for n, is_same in enumerate(map(same, old, new)) if not is_same]
    if len(differing) > 1:
        return None
    (index,) = differing
    return _between((*path, str(index)), old[index], new[index])


def _shortening(path: _Path, old: list[Json], new: list[Json]) -> _Edit | None:
    """Return the edit that removes elements from a list, or None if the list must be set."""
    indices = _missing(old, new)
    if indices is None:
        return None
    elements = [old[index] for index in indices]
    is_one = len(indices) == 1
    if is_one and isinstance(elements[0], dict | list):
        # An index is shorter in JSON than the element itself.
        return _Edit((*path, str(indices[0])))
    # No other elements may be equal to these, since they would be removed, too.
    is_all = len(without(old, elements)) == len(old) - len(elements)
    if is_all and len(json.dumps(elements)) <= len(json.dumps(new)):
        return _Edit(path, elements, Operation.REMOVE)
    return _Edit((*path, str(indices[0]))) if is_one else None


def _missing(old: list[Json], new: list[Json]) -> list[int] | None:
    """Return the indices of elements of `old` whose removal leaves `new`, or None."""
    indices: list[int] = []
    for index, element in enumerate(old):
        place = index - len(indices)
        if place >= len(new) or not same(element, new[place]):
            indices.append(index)
    return indices if len(old) - len(indices) == len(new) else None


_FOR_GOOD: Final = frozenset({int(Code.NOT_FOUND), int(Code.GONE)})
"""Reply codes after which the object can never be written again."""


@attrs.frozen(slots=True)
class Unpublished:
    """Reply code and reason of a write that was refused, or could not be published.

    Attributes:
        code: The reply code.
        why: The reason for people, as half a sentence.
    """

    code: int
    why: str


Verdict: TypeAlias = int | Flaw | Unpublished
"""Result of a write: its number, or the number of the last write if the value did not change.

A `Flaw` means that the value would break the schema, an `Unpublished` that no write is possible;
then nothing has changed.
"""


def flaw_in(value: JsonObject, schema: ObjectSchema | None) -> Flaw | None:
    """Return why a value is no valid value of an object, or None if it is valid.

    Args:
        value: The value.
        schema: The schema of the object; None: it has no schema.
    """
    size = json_size(value)
    if size > VALUE_BYTES:
        return Flaw("", f"it has {size} bytes, and a value of an object at most {VALUE_BYTES}")
    return unsendable(value) or (None if schema is None else schema.flaw(value))


def _unsendable_in(new: JsonObject, change: ChangeObject) -> Flaw | None:
    """Return why no message can hold the part that a change wrote; the rest was checked before."""
    if change.attribute is None:
        return unsendable(new)
    part: Json = new
    steps = tuple(change.attribute.split("."))
    for depth, step in enumerate(steps):
        if depth >= VALUE_DEPTH or (isinstance(part, dict) and len(part) > MAX_JSON_KEYS):
            return unsendable(part, steps[:depth])
        child = value_at(part, step)
        if isinstance(child, Absence):
            return None
        part = child
    added = change.value
    if change.operation == ADD and isinstance(added, list) and len(steps) < VALUE_DEPTH:
        first = len(part) - len(added) if isinstance(part, list) else 0
        flaws = (unsendable(each, (*steps, first + n)) for n, each in enumerate(added))
        return next(filter(None, flaws), None)
    return unsendable(change.value, steps)


def _path_flaw(path: str | None) -> Flaw | None:
    """Return why no change can name a path, or None if one can."""
    if path is None:
        return None
    try:
        check_path(path)
    except BadMessageError as exc:
        return Flaw("", exc.reason)
    return text_flaw(path)


class WritesCore:
    """Queue of the writes to one object: their numbers, and the value after them.

    Args:
        url: Address of the object.
        data: The published value of the object.
        version: Version of that value.
        schema: The schema that each value must obey; None: any value is permitted.

    Attributes:
        value: The value after all writes, including unpublished ones.
        version: Version of the last published change.
        number: Number of the last write.
    """

    def __init__(
        self, url: str, data: JsonObject, version: int, schema: ObjectSchema | None
    ) -> None:
        self._url = url
        self._schema = schema
        self.value = self._published = data
        self.version = version
        self._most = json_size(data)
        # The writes that are not published yet, each with the value after it.
        self._waiting: deque[tuple[ChangeObject, JsonObject]] = deque()
        self.number = self._done = 0
        self._for_writer: Unpublished | None = None
        self._for_flush: Unpublished | None = None
        self._end: Unpublished | None = None

    @property
    def is_full(self) -> bool:
        """True if the queue has the maximum number of waiting writes."""
        return len(self._waiting) >= WRITES_WAITING

    def is_over(self, number: int) -> bool:
        """Return whether a write has left the queue, published or void."""
        return self._done >= number

    # ---- writing

    def become(self, new: JsonObject) -> Verdict:
        """Write a new value: queue the smallest change that makes the value `new`."""
        return self._refusal() or self._write(smallest_change(self._url, self.value, new))

    def make(self, change: ChangeObject) -> Verdict:
        """Queue one change, even if the value stays the same."""
        return self._refusal() or self._write(change)

    def _refusal(self) -> Unpublished | None:
        lost, self._for_writer = self._end or self._for_writer, None
        if lost is None and self.is_full:
            return Unpublished(Code.UNAVAILABLE, f"{WRITES_WAITING} writes of it wait already")
        return lost

    def _write(self, change: ChangeObject | None) -> Verdict:
        if change is None:
            return self.number
        # The path is checked before the change is applied along it.
        if flaw := _path_flaw(change.attribute):
            return flaw
        value = apply_change(self.value, change)
        if flaw := self._flaw(value, change):
            return flaw
        self.value = value
        self._waiting.append((change, value))
        self.number += 1
        return self.number

    def _flaw(self, new: JsonObject, change: ChangeObject) -> Flaw | None:
        """Return why a new value is invalid, or None; the size is computed only when needed."""
        limit = self._most + json_size([change.attribute, change.value])
        if limit > VALUE_BYTES:
            flaw, limit = flaw_in(new, self._schema), json_size(new)
        else:
            flaw = _unsendable_in(new, change)
            if flaw is None and self._schema is not None:
                flaw = self._schema.flaw(new)
        if flaw is None:
            self._most = limit
        return flaw

    # ---- publishing

    def next(self) -> ChangeObject | None:
        """Return the next change to publish, or None if none is waiting."""
        return self._waiting[0][0] if self._waiting else None

    def published(self, version: int) -> int:
        """Remove the first write of the queue, since it was published; return its number."""
        _, self._published = self._waiting.popleft()
        self.version = version
        self._done += 1
        return self._done

    def failed(self, lost: Unpublished, known: frozenset[int]) -> Unpublished | None:
        """Drop all waiting writes, since the first of them could not be published.

        Return the reason if a caller that waits for publication must learn of the loss, or None.

        Args:
            lost: The reason.
            known: Numbers of writes whose writers learn the reason in another way.
        """
        is_incomplete = not known.issuperset(range(self._done + 1, self.number + 1))
        if is_incomplete:
            self._for_writer = self._for_flush = lost
        if lost.code in _FOR_GOOD:
            self._end = lost
        self._waiting.clear()
        self.value, self._done = self._published, self.number
        self._most = json_size(self.value)
        return lost if is_incomplete else None

    def flushed(self) -> Unpublished | None:
        """Return why writes were lost since the last call, or None if none was lost."""
        lost, self._for_flush = self._for_flush, None
        return lost
