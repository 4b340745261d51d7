"""The writes of a reporter to its data object, until they are published (SYN-13, SYN-16).

A write is in the reporter's own value at once; it waits here until the runtime has published
it, in order. If one cannot be published, those behind it are void, too: they were made to a
value that no observer will ever see. The reporter's own value is then the published one, and
the next write, or the next wait for all to be published, fails with the reason.
"""

from collections import deque
from typing import Final, TypeAlias, final

import attrs

from fsm.sync.value.json import Flaw, ObjectSchema, json_size
from fsm.sync.value.smallest_change import smallest_change
from fsm.sync.value.value import changed
from specs.bodies.sync import ChangeObject
from specs.jsonvalue import JsonObject
from specs.limits.sync import VALUE_BYTES, WRITES_WAITING
from specs.reply_code import Code

__all__ = ["Unpublished", "Verdict", "WritesCore", "Written", "flaw_in"]

_FOR_GOOD: Final = frozenset({int(Code.NOT_FOUND), int(Code.GONE)})
"""Codes after which nothing of the object can be written any more."""


@final
@attrs.frozen(slots=True)
class Written:
    """A write is in the value, and waits.

    Attributes:
        number: Its number among the writes of this object; that of the last one if it
            changed nothing.
    """

    number: int


@final
@attrs.frozen(slots=True)
class Unpublished:
    """Why a write was not taken, or not published.

    Attributes:
        code: The reply code.
        why: Half a sentence for people.
    """

    code: int
    why: str


Verdict: TypeAlias = Written | Flaw | Unpublished
"""What becomes of a write; a flaw is against the schema, and nothing has changed."""


def flaw_in(value: JsonObject, schema: ObjectSchema | None) -> Flaw | None:
    """Return what is wrong with a whole value; None: an object can have it.

    Args:
        value: The value.
        schema: The schema of the object; None: it has none.
    """
    size = json_size(value)
    if size > VALUE_BYTES:
        return Flaw("", f"it has {size} bytes, and a value of an object at most {VALUE_BYTES}")
    return None if schema is None else schema.flaw(value)


@final
class WritesCore:
    """The writes of one object.

    Args:
        url: The object.
        data: Its value, as it was published.
        version: Of that value.
        schema: What each value must obey; None: any will do.
    """

    def __init__(
        self, url: str, data: JsonObject, version: int, schema: ObjectSchema | None
    ) -> None:
        self._url = url
        self._schema = schema
        self._value = self._published = data
        self._version = version
        self._most = json_size(data)
        self._waiting: deque[ChangeObject] = deque()
        self._number = self._done = 0
        self._for_writer: Unpublished | None = None
        self._for_flush: Unpublished | None = None
        self._end: Unpublished | None = None

    @property
    def value(self) -> JsonObject:
        """The value with all that was written."""
        return self._value

    @property
    def version(self) -> int:
        """Of what was published last."""
        return self._version

    @property
    def number(self) -> int:
        """Of the last write."""
        return self._number

    @property
    def is_full(self) -> bool:
        """Whether as many writes wait as may."""
        return len(self._waiting) >= WRITES_WAITING

    def is_over(self, number: int) -> bool:
        """Say whether a write does not wait any more: it is published, or void."""
        return self._done >= number

    # ---- writing

    def become(self, new: JsonObject) -> Verdict:
        """Write what makes the value `new`."""
        return self._refusal() or self._write(smallest_change(self._url, self._value, new))

    def make(self, change: ChangeObject) -> Verdict:
        """Write one change, even if it changes nothing."""
        return self._refusal() or self._write(change)

    def _refusal(self) -> Unpublished | None:
        lost, self._for_writer = self._end or self._for_writer, None
        if lost is None and self.is_full:
            return Unpublished(Code.UNAVAILABLE, f"{WRITES_WAITING} writes of it wait already")
        return lost

    def _write(self, change: ChangeObject | None) -> Verdict:
        if change is None:
            return Written(self._number)
        new = changed(self._value, change)
        flaw = self._flaw(new, change)
        if flaw is not None:
            return flaw
        self._value = new
        self._waiting.append(change)
        self._number += 1
        return Written(self._number)

    def _flaw(self, new: JsonObject, change: ChangeObject) -> Flaw | None:
        """Look at what the value would be; its size is counted only when it may be too much."""
        most = self._most + json_size([change.attribute, change.value])
        if most > VALUE_BYTES:
            flaw, most = flaw_in(new, self._schema), json_size(new)
        else:
            flaw = None if self._schema is None else self._schema.flaw(new)
        if flaw is None:
            self._most = most
        return flaw

    # ---- publishing

    def next(self) -> ChangeObject | None:
        """Return what is to be published next; None: nothing waits."""
        return self._waiting[0] if self._waiting else None

    def published(self, version: int) -> int:
        """Note that the next write was published; return its number."""
        self._published = changed(self._published, self._waiting.popleft())
        self._version = version
        self._done += 1
        return self._done

    def failed(self, code: int, why: str, told: frozenset[int]) -> Unpublished | None:
        """Note that the next write was not published; those behind it will not be, either.

        Returns the reason for all that wait for the writes to be published; None: there is none.

        Args:
            code: The reply code.
            why: Half a sentence.
            told: Numbers of writes whose writer learns of it otherwise.
        """
        lost = Unpublished(code, why)
        is_untold = not told.issuperset(range(self._done + 1, self._number + 1))
        if is_untold:
            self._for_writer = self._for_flush = lost
        if code in _FOR_GOOD:
            self._end = lost
        self._waiting.clear()
        self._value, self._done = self._published, self._number
        self._most = json_size(self._value)
        return lost if is_untold else None

    def flushed(self) -> Unpublished | None:
        """Say whether a write was lost since this was asked last; None: none was."""
        lost, self._for_flush = self._for_flush, None
        return lost
