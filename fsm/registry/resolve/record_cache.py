"""The registry's cache of records read elsewhere (RES-03, REG-13)."""

import math
from collections import OrderedDict
from typing import Final, final

import attrs

from specs.bodies.body import Record
from specs.limits.protocol import NEGATIVE_CACHE, REPLY_TIMEOUT

__all__ = ["RecordCache"]

_CAPACITY: Final = 4096
"""Records remembered; the one that was told the longest ago goes first."""


@attrs.frozen(slots=True)
class _Entry:
    """One answer; a record of None says that there was none.

    Attributes:
        is_told: Whether it was reported without a request: answers under way may be older.
    """

    record: Record | None
    until: float
    is_told: bool = False


@final
class RecordCache:
    """Records by entity; a missing record is remembered for a moment."""

    def __init__(self) -> None:
        self._entries: OrderedDict[str, _Entry] = OrderedDict()

    def is_known(self, entity: str, now: float) -> bool:
        """Return whether there is an answer, even a negative one, so that no request is needed.

        Args:
            entity: Address of the record.
            now: Seconds on the host's clock.
        """
        entry = self._entries.get(entity)
        return entry is not None and now < entry.until

    def find(self, entity: str, now: float) -> Record | None:
        """Return the record, if one is remembered.

        Args:
            entity: Address of the record.
            now: Seconds on the host's clock.
        """
        entry = self._entries.get(entity)
        return entry.record if entry is not None and now < entry.until else None

    def good_until(self, entity: str) -> float:
        """Return until when the answer about an entity counts."""
        entry = self._entries.get(entity)
        return -math.inf if entry is None else entry.until

    def put(self, entity: str, record: Record | None, now: float) -> None:
        """Remember an answer, unless a newer report came a moment ago.

        Args:
            entity: Address of the record.
            record: The record; None: there is none.
            now: Seconds on the host's clock.
        """
        there = self._entries.get(entity)
        if there is not None and there.is_told and now < there.until:
            return
        life = NEGATIVE_CACHE if record is None else record.expires
        self._keep(entity, _Entry(record, now + life))

    def away(self, entity: str, now: float) -> None:
        """Note that a record is not live; answers to earlier requests no longer count.

        Args:
            entity: Address of the record.
            now: Seconds on the host's clock.
        """
        self._keep(entity, _Entry(None, now + REPLY_TIMEOUT, is_told=True))

    def forget(self, entity: str) -> None:
        """Forget a record: it has changed, or may have."""
        self._entries.pop(entity, None)

    def _keep(self, entity: str, entry: _Entry) -> None:
        self._entries[entity] = entry
        self._entries.move_to_end(entity)
        if len(self._entries) > _CAPACITY:
            self._entries.popitem(last=False)

    def forget_runtime(self, runtime: str) -> None:
        """Forget all records of a runtime: no link could be set up by them."""
        gone = [e for e, entry in self._entries.items() if _is_of(entry.record, runtime)]
        for entity in gone:
            del self._entries[entity]


def _is_of(record: Record | None, runtime: str) -> bool:
    return record is not None and record.runtime == runtime
