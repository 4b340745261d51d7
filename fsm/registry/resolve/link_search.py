"""The registry's search for a direct link to an entity (RES-03, RES-06, RES-13).

The record of the entity names its runtime, and says whether a link to it can be set up. The
record is read, or known already, or reported by a registry. The search then waits for the
link, or ends because there will be none.
"""

from typing import final

from fsm.intent import Intent
from fsm.machines.resolve_job import Trigger
from fsm.p2p.link_policy import P2pWish
from fsm.registry.resolve.effects import Effect, ReadRecord
from fsm.registry.resolve.inputs import ResolveConfig
from fsm.registry.resolve.jobs import ResolveJobs, link_key
from fsm.registry.resolve.link_entry import plan_of
from fsm.registry.resolve.link_table import LinkTable
from fsm.registry.resolve.record_cache import RecordCache
from specs.bodies.body import Record
from specs.bodies.word import RecordStatus

__all__ = ["LinkSearch"]


@final
class LinkSearch:
    """The searches for links of one registry, over its tables.

    Args:
        config: The wishes of the runtime for links.
        jobs: The open searches.
        records: The known records of remote entities.
        links: The links that are live or being set up.
    """

    def __init__(
        self, config: ResolveConfig, jobs: ResolveJobs, records: RecordCache, links: LinkTable
    ) -> None:
        self._config = config
        self._jobs = jobs
        self._records = records
        self._links = links
        self._is_closing = False

    def close(self) -> None:
        """Begin no more searches."""
        self._is_closing = True

    def is_open(self, entity: str) -> bool:
        """Return whether a link to an entity is looked for, or being set up."""
        return self._jobs.is_open(link_key(entity))

    def wish(self, entity: str) -> P2pWish:
        """Return the wish for links to a peer, by its address and by its known runtime."""
        entry = self._links.entities.entry_of(entity)
        return self._config.wishes.of(*([entry.remote] if entry is not None else []), entity)

    def seek(self, entity: str, intent: Intent, now: float) -> list[Effect]:
        """Begin to look for a P2P link, if the request may have one and the runtime wants one.

        Args:
            entity: The receiver of the request.
            intent: What the route is wanted for.
            now: Seconds on the host's clock.
        """
        key = link_key(entity)
        wish = self.wish(entity)
        is_due = intent is Intent.REACH and wish is not P2pWish.WHEN_ASKED
        is_wanted = (is_due or intent is Intent.LINK) and wish is not P2pWish.NEVER
        if not is_wanted or self._is_closing or self._jobs.is_open(key):
            return []
        begun = self._jobs.begin(key)
        record = self._records.find(entity, now)
        if record is not None:
            return [*begun, *self._set_up(entity, record, now)]
        if self._records.is_known(entity, now):
            return [*begun, *self._joined(entity, Trigger.ATTACH)]
        return [*begun, *self._jobs.query(key, now), ReadRecord(entity)]

    def told(self, entity: str, record: Record | None, now: float) -> list[Effect]:
        """Take the record of an entity.

        Args:
            entity: Address of the record.
            record: The record; None: there is none, or no registry answered.
            now: Seconds on the host's clock.
        """
        self._records.put(entity, record, now)
        kept = self._records.find(entity, now)
        if self._links.claims.settles(entity):
            return [] if kept is None else self._links.entities.bind(entity, kept.runtime)
        if kept is None:
            return self._joined(entity, Trigger.ATTACH)
        return self._set_up(entity, kept, now)

    def changed(self, entity: str, status: RecordStatus | None, now: float) -> list[Effect]:
        """Take the new status of a record (REG-13): no link is sought to an entity that is away.

        A link that is live stays the route: it needs no registry.

        Args:
            entity: Address of the record.
            status: Its status; None: it may have changed.
            now: Seconds on the host's clock.
        """
        if status is None or status is RecordStatus.LIVE:
            self._records.forget(entity)
            return [] if status is None else self._links.entities.unbind(entity)
        self._records.away(entity, now)
        return self._joined(entity, Trigger.ATTACH)

    def late(self, now: float) -> list[Effect]:
        """Go on without the records that have not come in time."""
        return [each for one in self._jobs.late(now) for each in self.told(one, None, now)]

    def _set_up(self, entity: str, record: Record, now: float) -> list[Effect]:
        plan, begun, bound = plan_of(record), list[Effect](), list[Effect]()
        is_refused = self._config.wishes.of(record.runtime, entity) is P2pWish.NEVER
        if record.runtime != self._config.runtime and not is_refused:
            begun = self._links.plan(plan, now) if plan is not None else []
            bound = self._links.entities.bind(entity, record.runtime)
        joined = self._joined(entity, Trigger.DEPLOY if begun else Trigger.ATTACH)
        return [*joined, *begun, *bound]

    def _joined(self, entity: str, trigger: Trigger) -> list[Effect]:
        """Let the search for a link wait for what there is now; or there is none."""
        key, entry = link_key(entity), self._links.entities.entry_of(entity)
        if entry is None:
            return [*self._jobs.decide(key, Trigger.NONE, "no link to where it lives")]
        steps = self._jobs.decide(key, trigger)
        found = self._jobs.settle([key], Trigger.FOUND) if entry.is_live else []
        return [*steps, *found]
