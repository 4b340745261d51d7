"""Cache of registry records, and look-up of the owners of addresses (RES-03, REG-13, I-B10, S1).

The Message BUS asks which runtime owns an address from which a peer sends over a link. The record
of the address is read from its domain registry through the node, and the owner is remembered as
long as the record is valid. The owner in a disconnected record counts, too: a runtime that has lost
its node can still send by its links.
"""

import math
from collections import OrderedDict
from typing import Final, TypeAlias

import attrs

from fsm.limits.timers import Alarms
from fsm.registry.resolve.searches import RoutesPort
from specs.bodies.registry import Record
from specs.limits.p2p import OWNERS_KEPT
from specs.limits.protocol import NEGATIVE_CACHE, REGISTRATION_EXPIRES, REPLY_TIMEOUT

_CAPACITY: Final = 4096
"""Number of records remembered; the oldest is forgotten first."""


_Entry: TypeAlias = tuple[Record | None, float, bool]
"""What is known of an entity's record: the record or None; the time until which this is valid;
whether a status report said so. Answers that come after a report may be older than the report.
"""


class RecordCache:
    """Cache of registry records by address; also remembers for a short time that none exists."""

    def __init__(self) -> None:
        self._entries: OrderedDict[str, _Entry] = OrderedDict()

    def is_known(self, entity: str, now: float) -> bool:
        """Return whether the cache knows the record of an address, or that no record exists."""
        return now < self.good_until(entity)

    def find(self, entity: str, now: float) -> Record | None:
        """Return the record of a hyperty or object from the cache, or None."""
        return self._entries[entity][0] if self.is_known(entity, now) else None

    def good_until(self, entity: str) -> float:
        """Return the time until which the cache's knowledge about a hyperty or object is valid."""
        return self._entries[entity][1] if entity in self._entries else -math.inf

    def put(self, entity: str, record: Record | None, now: float) -> None:
        """Store a record, or that none exists, unless a newer status report came shortly before."""
        if self.is_known(entity, now) and self._entries[entity][2]:
            return
        seconds = NEGATIVE_CACHE if record is None else record.expires
        self._keep(entity, (record, now + seconds, False))

    def away(self, entity: str, now: float) -> None:
        """Note a report that a record is not live; answers to earlier requests are ignored."""
        self._keep(entity, (None, now + REPLY_TIMEOUT, True))

    def forget(self, entity: str) -> None:
        """Forget a record that has changed, or may have changed."""
        self._entries.pop(entity, None)

    def _keep(self, entity: str, entry: _Entry) -> None:
        self._entries[entity] = entry
        self._entries.move_to_end(entity)
        if len(self._entries) > _CAPACITY:
            self._entries.popitem(last=False)

    def forget_runtime(self, runtime: str) -> None:
        """Forget all records of a runtime, since a link could not be set up with their data."""
        for entity, (record, *_) in list(self._entries.items()):
            if record is not None and record.runtime == runtime:
                del self._entries[entity]


_Owner: TypeAlias = tuple[str | None, float, float]
"""The owner, or None if no record exists; the time until which it is not read again; the time
until which it is valid.
"""

_NO_OWNER: Final = (None, -math.inf, -math.inf)


@attrs.define(slots=True)
class _Question:
    """The state of reading one record to find the owner of an address.

    Attributes:
        is_first: Whether no record was missing so far; a missing record is read a second time,
            since the registration may still be on its way.
        is_stale: Whether the record may have changed since it was requested.
        again: Time of the second read.
    """

    is_first: bool = True
    is_stale: bool = False
    again: float = math.inf


class AddressOwners:
    """Finds and remembers which runtimes own the addresses from which peers send over links.

    Args:
        port: The host.
        records: The records of remote hyperties and objects that were read for other reasons.
    """

    def __init__(self, port: RoutesPort, records: RecordCache) -> None:
        self._port: Final = port
        self._records: Final = records
        self._known: Final[OrderedDict[str, _Owner]] = OrderedDict()
        self._asked: Final[dict[str, _Question]] = {}
        self._alarms: Final = Alarms[str]()

    def ask(self, entity: str, remote: str, now: float) -> None:
        """Report the owner of an address from which `remote` sends; read the record if needed."""
        owner, fresh_until, until = self._known.get(entity, _NO_OWNER)
        if now < (until if owner == remote else fresh_until):
            self._port.set_owner(entity, owner)
            return
        record = self._records.find(entity, now)
        if record is not None and record.runtime == remote:
            self._keep(entity, remote, now, self._records.good_until(entity))
        elif entity not in self._asked:
            self._asked[entity] = _Question()
            self._port.read_owner(entity)

    def read(self, entity: str, record: Record | None, now: float, *, is_answered: bool) -> None:
        """Handle the result of reading a record; a missing record is read once more.

        If no registry answers, no owner is reported: the Message BUS has a deadline of its own.
        """
        question = self._asked.get(entity)
        if question is None:
            return
        if question.is_stale:
            question.is_stale = False
            self._port.read_owner(entity)
            return
        if record is None and question.is_first:
            question.is_first, question.again = False, now + NEGATIVE_CACHE
            self._alarms.set(entity, question.again)
            return
        del self._asked[entity]
        if is_answered:
            life = NEGATIVE_CACHE if record is None else min(record.expires, REGISTRATION_EXPIRES)
            self._keep(entity, None if record is None else record.runtime, now, now + life)

    def compare(self, entity: str, record: Record | None) -> None:
        """Check the known owner against a record that was read for another reason."""
        if record is not None and self._known.get(entity, (record.runtime,))[0] != record.runtime:
            self.doubt(entity)

    def doubt(self, entity: str) -> None:
        """Forget the owner of a hyperty or object whose record may have changed."""
        question = self._asked.get(entity)
        if question is not None and question.again == math.inf:
            question.is_stale = True
        if self._known.pop(entity, None) is not None:
            self._port.forget_owner(entity)

    def deadline(self) -> float:
        """Return the time at which `tick` must be called next."""
        return self._alarms.deadline()

    def tick(self, now: float) -> None:
        """Read missing records again, and forget owners that are out of date."""
        for entity in self._alarms.due(now):
            question, known = self._asked.get(entity), self._known.get(entity)
            if question is not None and question.again <= now:
                question.again = math.inf
                self._port.read_owner(entity)
            if known is not None and known[2] <= now:
                self.doubt(entity)
            elif known is not None:
                self._alarms.set(entity, known[2])

    def _keep(self, entity: str, owner: str | None, now: float, until: float) -> None:
        self._known[entity] = owner, now + NEGATIVE_CACHE, until
        self._known.move_to_end(entity)
        self._alarms.set(entity, until)
        if len(self._known) > OWNERS_KEPT:
            oldest, _ = self._known.popitem(last=False)
            self._port.forget_owner(oldest)
        self._port.set_owner(entity, owner)
