"""Which entity lives in which remote runtime (I-R8): what the links lead to.

An entity is bound by what its record says, or by the other registry's list where a record
bears it out (`link_claims`). What was received over a link binds nothing: else a peer could
draw another's messages to itself by using its name once. Only a record moves an entity that
is known to live elsewhere, or binds one of another domain than its runtime's: nobody answers
for the entities of others.

What registries say lives with them, until its record says so too (I-R8, T18).

A list is a hint: whoever may lie over a link could draw to it what is meant for others, by
listing them before anybody here has read their records. So what a record that is remembered
bears out is bound at once, and for the rest the records are read, a few at a time. Until
then, and if a record says otherwise, messages go by the node as if nothing had been listed.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Final, final

from fsm.limits.token_bucket import Pace
from fsm.machines import resolve_job
from fsm.registry.resolve.effects import Effect, ReadRecord, RoutesChanged
from fsm.registry.resolve.jobs import ResolveJobs, link_key
from fsm.registry.resolve.link_entry import LinkEntry
from fsm.registry.resolve.record_cache import RecordCache
from specs.addresses.address import domain_of, is_below
from specs.limits.p2p import CLAIM_BURST, CLAIM_RATE, MAX_LINK_ENTITIES
from specs.trace import Op

__all__ = ["LinkClaims", "LinkEntities"]


@final
class LinkEntities:
    """The entities of all links; they live as long as the entries do.

    Args:
        entries: The links by remote runtime; another's, who tells of each that goes.
        jobs: What waits for a link to an entity.
    """

    def __init__(self, entries: Mapping[str, LinkEntry], jobs: ResolveJobs) -> None:
        self._entries: Final = entries
        self._jobs: Final = jobs
        self._remote_of: Final[dict[str, str]] = {}

    def remote_of(self, entity: str) -> str:
        """Return the runtime on which an entity lives, else the entity: it may be a runtime."""
        return self._remote_of.get(entity, entity)

    def entry_of(self, entity: str) -> LinkEntry | None:
        """Return the entry of the runtime on which an entity is known to live."""
        return self._entries.get(self._remote_of.get(entity, ""))

    def bind(self, entity: str, remote: str) -> list[Effect]:
        """Note where an entity lives by its record; it moves if it lived elsewhere.

        No link may lead there, or one that is bound to enough: then no other does, either.
        """
        entry = self._entries.get(remote)
        if entry is not None and self._put(entity, entry):
            return self._changed(entry)
        is_elsewhere = self._remote_of.get(entity, remote) != remote
        return self.unbind(entity) if is_elsewhere else []

    def listed(self, entities: Iterable[str], entry: LinkEntry) -> list[Effect]:
        """Note what lives at the other end, where that may be believed."""
        theirs = [one for one in entities if self._may_say(one, entry)]
        is_new = [one for one in theirs if self._put(one, entry)]
        return self._changed(entry) if is_new else []

    def _may_say(self, entity: str, entry: LinkEntry) -> bool:
        is_elsewhere = self._remote_of.get(entity, entry.remote) != entry.remote
        is_theirs = domain_of(entity) == domain_of(entry.remote)
        is_runtime = entity == entry.remote or entity in self._entries
        return is_theirs and not is_elsewhere and not is_runtime

    def is_open_to(self, entity: str, entry: LinkEntry) -> bool:
        """Say whether an entity may live at this link's other end, and is not known to."""
        return entity not in self._remote_of and self._may_say(entity, entry)

    def unlisted(self, entities: Iterable[str], entry: LinkEntry) -> list[Effect]:
        """Note what the other end says lives there no longer."""
        gone = [one for one in entities if self._remote_of.get(one) == entry.remote]
        return self._drop(gone, entry)

    def unbind(self, entity: str) -> list[Effect]:
        """Forget where an entity lives: it may have come back elsewhere."""
        entry = self.entry_of(entity)
        return [] if entry is None else self._drop([entity], entry)

    def forget(self, entry: LinkEntry) -> None:
        """Forget all that lives there: its entry goes."""
        for entity in entry.entities:
            self._remote_of.pop(entity, None)

    def clear(self) -> None:
        """Forget everything."""
        self._remote_of.clear()

    def _put(self, entity: str, entry: LinkEntry) -> bool:
        """Bind an entity, if there is room; tell whether that is new."""
        if self._remote_of.get(entity) == entry.remote or len(entry.entities) >= MAX_LINK_ENTITIES:
            return False
        former = self.entry_of(entity)
        if former is not None:
            former.entities.pop(entity, None)
        self._remote_of[entity] = entry.remote
        entry.entities[entity] = None
        return True

    def _drop(self, entities: list[str], entry: LinkEntry) -> list[Effect]:
        if not entities:
            return []
        for entity in entities:
            del self._remote_of[entity]
            entry.entities.pop(entity, None)
        keys = [link_key(entity) for entity in entities]
        row, *changed = self._changed(entry)
        return [row, *self._jobs.settle(keys, resolve_job.Trigger.NONE), *changed]

    @staticmethod
    def _changed(entry: LinkEntry) -> list[Effect]:
        return [entry.changed(Op.UPD), *([RoutesChanged()] if entry.is_live else [])]


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
