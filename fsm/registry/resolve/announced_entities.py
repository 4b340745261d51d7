"""What registries say lives with them, until its record says so too (I-R8, T18).

A list is a hint: whoever may lie over a link could draw to it what is meant for others, by
listing them before anybody here has read their records. So what a record that is remembered
bears out is bound at once, and for the rest the records are read, a few at a time. Until
then, and if a record says otherwise, messages go by the node as if nothing had been listed.
"""

import math
from collections.abc import Iterable
from typing import Final, final

from fsm.limits.pace import Pace
from fsm.p2p.entry import LinkEntry
from fsm.registry.resolve.effects import Effect, ReadRecord
from fsm.registry.resolve.jobs import ResolveJobs, link_key
from fsm.registry.resolve.record_cache import RecordCache
from fsm.registry.resolve.remote_entities import LinkEntities
from specs.addresses.address import is_below
from specs.limits.p2p import CLAIM_BURST, CLAIM_RATE

__all__ = ["LinkClaims"]


@final
class LinkClaims:
    """The listed entities of all links whose records are still to be read.

    Memory: what each registry lists is bounded by whoever follows it; what is being read, by
    the pace and the time an answer may take.

    Args:
        entities: Where entities live as far as that is known.
        records: What was read before.
        jobs: Searches, which read records too.
    """

    def __init__(self, entities: LinkEntities, records: RecordCache, jobs: ResolveJobs) -> None:
        self._entities: Final = entities
        self._records: Final = records
        self._jobs: Final = jobs
        self._waiting: Final[dict[tuple[str, str], None]] = {}
        self._reading: Final[set[str]] = set()
        self._pace: Final = Pace(CLAIM_RATE, CLAIM_BURST)
        self._next_at = -math.inf

    def listed(self, there: Iterable[str], entry: LinkEntry, now: float) -> list[Effect]:
        """Bind what is known by its record to live there; of the rest, read the records."""
        new = [one for one in there if self._entities.is_open_to(one, entry)]
        known = {one: None for one in new if self._is_borne_out(one, entry, now)}
        self._waiting.update({(entry.remote, one): None for one in new if one not in known})
        return [*self._entities.listed(known, entry), *self.tick(now)]

    def look_up(self, entity: str, entry: LinkEntry, now: float) -> list[Effect]:
        """Read the record of one that another runtime speaks for, unless it was read."""
        if not is_below(entity, entry.remote) and not self._records.is_known(entity, now):
            self._waiting[entry.remote, entity] = None
        return self.tick(now)

    def _is_borne_out(self, entity: str, entry: LinkEntry, now: float) -> bool:
        record = self._records.find(entity, now)
        return record is not None and record.runtime == entry.remote

    def unlisted(self, gone: Iterable[str], entry: LinkEntry) -> None:
        """Leave unread what is listed no longer."""
        for entity in gone:
            self._waiting.pop((entry.remote, entity), None)

    def settles(self, entity: str) -> bool:
        """Say whether a record that has come was read for a claim only: no link is wanted."""
        if entity not in self._reading or self._jobs.is_open(link_key(entity)):
            return False
        self._reading.discard(entity)
        return True

    def forget(self, remote: str) -> None:
        """Leave unread what a runtime has listed: its link is gone."""
        for claim in [one for one in self._waiting if one[0] == remote]:
            del self._waiting[claim]

    def clear(self) -> None:
        """Leave everything unread."""
        self._waiting.clear()

    def deadline(self) -> float:
        """Return when `tick` is due."""
        return self._next_at if self._waiting else math.inf

    def tick(self, now: float) -> list[Effect]:
        """Read the next records, as fast as may be."""
        reads: list[Effect] = []
        while self._waiting and self._next_at <= now:
            _, entity = claim = next(iter(self._waiting))
            del self._waiting[claim]
            if entity not in self._reading and not self._jobs.is_open(link_key(entity)):
                self._next_at = now + self._pace.spend(now)
                self._reading.add(entity)
                reads.append(ReadRecord(entity))
        return reads
