"""The remote runtime of each entity that a link leads to (I-R8), and listed entities (T18).

An entity is bound by its record, or by the other registry's list where a record confirms
it. A message received over a link binds nothing: else a peer could draw another's messages
to itself by using its address once. Only a record moves an entity that is known to live
elsewhere, or binds one of another domain than its runtime's.

A list is a hint: a peer could draw messages meant for others to itself, by listing their
addresses before this runtime has read the records. So an entity whose known record confirms
the list is bound at once. For the rest the records are read, a few at a time. Until then,
and if a record contradicts the list, messages go by the node as if nothing had been listed.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Final, final

from fsm.limits.token_bucket import TokenBucket
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
        entries: The links by remote runtime; the link table owns them, and calls `forget` for
            each that goes.
        jobs: The searches that wait for a link to an entity.
    """

    def __init__(self, entries: Mapping[str, LinkEntry], jobs: ResolveJobs) -> None:
        self._entries: Final = entries
        self._jobs: Final = jobs
        self._remote_of: Final[dict[str, str]] = {}

    def remote_of(self, entity: str) -> str:
        """Return the runtime of an entity; an unknown address itself: it may be a runtime."""
        return self._remote_of.get(entity, entity)

    def entry_of(self, entity: str) -> LinkEntry | None:
        """Return the entry of the runtime on which an entity is known to live."""
        return self._entries.get(self._remote_of.get(entity, ""))

    def bind(self, entity: str, remote: str) -> list[Effect]:
        """Note where an entity lives by its record; it moves if it lived elsewhere.

        If no link leads there, or the link has its maximum of entities, no link leads to the
        entity.

        Args:
            entity: Address of the entity.
            remote: The runtime that its record names.
        """
        entry = self._entries.get(remote)
        if entry is not None and self._put(entity, entry):
            return self._changed(entry)
        is_elsewhere = self._remote_of.get(entity, remote) != remote
        return self.unbind(entity) if is_elsewhere else []

    def listed(self, entities: Iterable[str], entry: LinkEntry) -> list[Effect]:
        """Note the entities at the other end of a link, as far as its registry may name them.

        Args:
            entities: Addresses of the entities.
            entry: The link.
        """
        theirs = [one for one in entities if self._may_say(one, entry)]
        is_new = [one for one in theirs if self._put(one, entry)]
        return self._changed(entry) if is_new else []

    def _may_say(self, entity: str, entry: LinkEntry) -> bool:
        is_elsewhere = self._remote_of.get(entity, entry.remote) != entry.remote
        is_theirs = domain_of(entity) == domain_of(entry.remote)
        is_runtime = entity == entry.remote or entity in self._entries
        return is_theirs and not is_elsewhere and not is_runtime

    def is_open_to(self, entity: str, entry: LinkEntry) -> bool:
        """Return whether an entity may live at the other end of a link, and has no known runtime.

        Args:
            entity: Address of the entity.
            entry: The link.
        """
        return entity not in self._remote_of and self._may_say(entity, entry)

    def unlisted(self, entities: Iterable[str], entry: LinkEntry) -> list[Effect]:
        """Note that entities no longer live at the other end of a link.

        Args:
            entities: Addresses of the entities; those that live elsewhere are ignored.
            entry: The link.
        """
        gone = [one for one in entities if self._remote_of.get(one) == entry.remote]
        return self._drop(gone, entry)

    def unbind(self, entity: str) -> list[Effect]:
        """Forget where an entity lives: it may have come back elsewhere."""
        entry = self.entry_of(entity)
        return [] if entry is None else self._drop([entity], entry)

    def forget(self, entry: LinkEntry) -> None:
        """Forget all entities of a link: its entry goes."""
        for entity in entry.entities:
            self._remote_of.pop(entity, None)

    def clear(self) -> None:
        """Forget everything."""
        self._remote_of.clear()

    def _put(self, entity: str, entry: LinkEntry) -> bool:
        """Bind an entity, if there is room; return whether that is new."""
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

    Memory: the follower of a registry bounds its list; the rate of requests and their time
    limit bound the reads under way.

    Args:
        entities: The known runtimes of entities.
        records: The known records.
        jobs: The open searches, which read records too.
    """

    def __init__(self, entities: LinkEntities, records: RecordCache, jobs: ResolveJobs) -> None:
        self._entities: Final = entities
        self._records: Final = records
        self._jobs: Final = jobs
        self._waiting: Final[dict[tuple[str, str], None]] = {}
        self._reading: Final[set[str]] = set()
        self._pace: Final = TokenBucket(CLAIM_RATE, CLAIM_BURST)
        self._next_at = -math.inf

    def listed(self, there: Iterable[str], entry: LinkEntry, now: float) -> list[Effect]:
        """Bind the entities whose known record confirms the list; read the records of the rest.

        Args:
            there: Addresses that the other registry lists.
            entry: The link to its runtime.
            now: Seconds on the host's clock.
        """
        new = [one for one in there if self._entities.is_open_to(one, entry)]
        known = {one: None for one in new if self._is_borne_out(one, entry, now)}
        self._waiting.update({(entry.remote, one): None for one in new if one not in known})
        return [*self._entities.listed(known, entry), *self.tick(now)]

    def look_up(self, entity: str, entry: LinkEntry, now: float) -> list[Effect]:
        """Read the record of an entity that another runtime speaks for, unless it is known.

        Args:
            entity: Address of the entity.
            entry: The link to the runtime that speaks for it.
            now: Seconds on the host's clock.
        """
        if not is_below(entity, entry.remote) and not self._records.is_known(entity, now):
            self._waiting[entry.remote, entity] = None
        return self.tick(now)

    def _is_borne_out(self, entity: str, entry: LinkEntry, now: float) -> bool:
        record = self._records.find(entity, now)
        return record is not None and record.runtime == entry.remote

    def unlisted(self, gone: Iterable[str], entry: LinkEntry) -> None:
        """Leave the records of entities unread that are no longer listed.

        Args:
            gone: Addresses of the entities.
            entry: The link whose registry listed them.
        """
        for entity in gone:
            self._waiting.pop((entry.remote, entity), None)

    def settles(self, entity: str) -> bool:
        """Return whether a record that has come was read for a claim only: no link is wanted."""
        if entity not in self._reading or self._jobs.is_open(link_key(entity)):
            return False
        self._reading.discard(entity)
        return True

    def forget(self, remote: str) -> None:
        """Leave the listed entities of a runtime unread: its link is gone."""
        for claim in [one for one in self._waiting if one[0] == remote]:
            del self._waiting[claim]

    def clear(self) -> None:
        """Leave everything unread."""
        self._waiting.clear()

    def deadline(self) -> float:
        """Return when `tick` is due."""
        return self._next_at if self._waiting else math.inf

    def tick(self, now: float) -> list[Effect]:
        """Read the next records, as fast as the limits allow."""
        reads: list[Effect] = []
        while self._waiting and self._next_at <= now:
            _, entity = claim = next(iter(self._waiting))
            del self._waiting[claim]
            if entity not in self._reading and not self._jobs.is_open(link_key(entity)):
                self._next_at = now + self._pace.spend(now)
                self._reading.add(entity)
                reads.append(ReadRecord(entity))
        return reads
