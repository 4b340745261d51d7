"""The registry's table of P2P links, one entry per remote runtime (REG-04, RES-05..12).

An entry is written before anything is awaited, so that one set-up is under way per
remote runtime (RES-07, I-P7). Only the stubs' status events move its status (C-19).
On the handler side `live` is preceded by the listeners of the link (I-P17). A lost
link keeps its entry and its entities, and the requester is told to reconnect; when the
tries are over, or on `failed`, everything that belongs to the entry goes.
"""

import math
from typing import final

from fsm.cores.link_claims import LinkClaims
from fsm.cores.link_entities import LinkEntities
from fsm.cores.link_entry import LinkEntry, Role
from fsm.cores.record_cache import RecordCache
from fsm.cores.resolve_effects import (
    Connect,
    Deploy,
    Disconnect,
    Effect,
    LinkDown,
    PeerGone,
    PeerKnown,
    RegisterLink,
    RemovePath,
    RequesterPlan,
    RoutesChanged,
    SetPath,
    Undeploy,
    UnregisterLink,
)
from fsm.cores.resolve_inputs import Listed, StatusSeen
from fsm.cores.resolve_jobs import ResolveJobs, link_key
from fsm.engine import Entity
from fsm.machines import p2p_entry, resolve_job
from fsm.machines.p2p_connection import State
from specs.limits import (
    DIAL_TIMEOUT,
    RECONNECT_BASE,
    RECONNECT_TRIES,
    RETRY_COOL_DOWN,
    SESSION_IDLE,
    SOFT_ERROR_PERIOD,
)
from specs.trace import Op

__all__ = ["LinkTable"]


@final
class LinkTable:
    """Which remote runtime is reached by which link.

    What waits for a link in `jobs` is told when its entry is live or gone.

    Attributes:
        entities: Who lives at the other ends.
        claims: Who is said to.
    """

    def __init__(self, runtime: str, jobs: ResolveJobs, records: RecordCache) -> None:
        self._runtime = runtime
        self._jobs = jobs
        self._entries: dict[str, LinkEntry] = {}
        self.entities = LinkEntities(self._entries, jobs)
        self.claims = LinkClaims(self.entities, records, jobs)
        self._cooling: dict[str, float] = {}
        self._minted = 0
        self._is_closed = False

    def entries(self) -> tuple[LinkEntry, ...]:
        """Return all entries."""
        return tuple(self._entries.values())

    def entry_by(self, link: str) -> LinkEntry | None:
        """Return the entry of a link, whatever its status."""
        return next((entry for entry in self._entries.values() if entry.link == link), None)

    def live_link(self, entity: str) -> str | None:
        """Return the live link to an entity or to a part of a remote runtime."""
        entry = self._entries.get(self.entities.remote_of(entity))
        return entry.url if entry is not None and entry.is_live else None

    def witness(self, link: str, entity: str, now: float) -> list[Effect]:
        """Have the record read of whom another runtime speaks for, unless that is known."""
        entry = self.entry_by(link)
        return [] if entry is None else self.claims.look_up(entity, entry, now)

    def told(self, said: Listed, now: float) -> list[Effect]:
        """Note what the other registry says lives there, and what does no longer (P2P-25)."""
        entry = self._entries.get(said.remote)
        if entry is None:
            return []
        self.claims.unlisted(said.gone, entry)
        unlisted = self.entities.unlisted(said.gone, entry)
        return [*unlisted, *self.claims.listed(said.there, entry, now)]

    # ---- requester side

    def plan(self, plan: RequesterPlan, now: float) -> list[Effect]:
        """Begin a set-up, unless one exists or failed a moment ago (RES-10, I-P7)."""
        if (
            self._is_closed
            or plan.remote in self._entries
            or now < self._cooling.get(plan.remote, -math.inf)
        ):
            return []
        self._minted += 1
        url = f"{self._runtime}/p2prequester/{self._minted}"
        entry = LinkEntry(plan.remote, Role.REQUESTER, url, url, self._life(plan.remote), plan)
        self._entries[plan.remote] = entry
        return [PeerKnown(url, plan.remote), *entry.begun(), SetPath(url)]

    def _life(self, remote: str) -> Entity:
        return Entity(p2p_entry.P2P_ENTRY, f"{self._runtime}|{remote}")

    def path_set(self, url: str, refusal: str | None, now: float) -> list[Effect]:
        """Deploy the requester once its path is acknowledged (P2P-05, I-P10)."""
        entry = self.entry_by(url)
        if entry is None or entry.plan is None:
            return [RemovePath(url)]
        if refusal is not None:
            return self._remove(entry, now)
        return [Deploy(url, entry.plan)]

    def has_requester(self, url: str) -> bool:
        """Say whether this is a requester of this table."""
        entry = self.entry_by(url)
        return entry is not None and entry.role is Role.REQUESTER

    def gone(self, url: str, now: float) -> list[Effect]:
        """Take it that a stub is not there, or no longer."""
        return [
            effect
            for entry in self.entries()
            if entry.stub == url
            for effect in self._remove(entry, now)
        ]

    def over(self, stub: str, link: str, now: float) -> list[Effect]:
        """Take a stub's word that a link of it has ended for good (I-P19)."""
        entry = self.entry_by(link)
        return [] if entry is None or entry.stub != stub else self._remove(entry, now)

    def forged(self, link: str, now: float) -> list[Effect]:
        """End a link over which its peer sends in the name of others, for a while."""
        entry = self.entry_by(link)
        if entry is None:
            return []
        effects = [Disconnect(entry.stub, entry.remote), *self._remove(entry, now)]
        self._cooling[entry.remote] = now + SOFT_ERROR_PERIOD
        return effects

    # ---- status events

    def status(self, seen: StatusSeen, now: float) -> list[Effect]:
        """Take a link's status event; one of a link that is no entry's only ends it."""
        remote, link = seen.resource, seen.link or seen.stub
        if remote is None or self._is_closed:
            return []
        entry = self._entries.get(remote)
        value = State(seen.value)
        if entry is not None and entry.link == link:
            return self._moved(entry, value, now)
        if value is State.CREATED and seen.stub == link:
            # A requester: another link took its entry while it was being deployed.
            return [Disconnect(seen.stub, remote)]
        if value is State.CREATED:
            return self._invited(remote, seen.stub, link, entry)
        if value in {State.FAILED, State.DISCONNECTED}:
            return self._stray_ended(seen.stub, link)
        # Who was refused by its row, and accepted because that has gone since, is ended.
        return [Disconnect(seen.stub, remote)] if entry is None and seen.stub != link else []

    def _invited(self, remote: str, stub: str, link: str, rival: LinkEntry | None) -> list[Effect]:
        """Take a handler's new link; what is there already gives way or wins by its table.

        If it wins, the handler refuses the invitation: it is told so when it asks for the row.
        """
        entry = LinkEntry(remote, Role.HANDLER, stub, link, self._life(remote))
        effects: list[Effect] = []
        if rival is not None:
            step = rival.contested(self._runtime, link)
            if step.new != p2p_entry.State.REMOVED:
                return [step]
            effects = [step, *self._replaced(rival)]
            entry.entities = rival.entities
        self._entries[remote] = entry
        return [PeerKnown(link, remote), *effects, *entry.begun()]

    @staticmethod
    def _replaced(entry: LinkEntry) -> list[Effect]:
        """Let a new link take the place of an entry, which leaves it its entities.

        What still comes by the old link is taken until its stub says that it has ended.
        """
        effects: list[Effect] = [entry.changed(Op.DEL), LinkDown(entry.remote), RoutesChanged()]
        if entry.role is Role.HANDLER:
            return [*effects, UnregisterLink(entry.link)]
        return [*effects, Disconnect(entry.stub, entry.remote)]

    @staticmethod
    def _stray_ended(stub: str, link: str) -> list[Effect]:
        if stub != link:
            return [PeerGone(link), UnregisterLink(link)]
        return [PeerGone(link), Undeploy(stub), RemovePath(stub)]

    def _moved(self, entry: LinkEntry, value: State, now: float) -> list[Effect]:
        match value:
            case State.LIVE if entry.role is Role.HANDLER and not entry.has_listeners:
                # It is live for us once its listeners stand, unless it is lost before.
                entry.sets_up(State.IN_PROGRESS)
                entry.awaits_listeners = True
                return [RegisterLink(entry.link, entry.stub)]
            case State.LIVE:
                return self._live(entry)
            case State.DISCONNECTED:
                return self._disconnected(entry, now)
            case State.FAILED:
                return self._remove(entry, now)
            case _:
                entry.sets_up(value)
                return [entry.changed(Op.UPD)]

    def registered(self, link: str, refusal: str | None, now: float) -> list[Effect]:
        """Route to a handler's link once both listeners are there (I-P17, I-P18)."""
        entry = self.entry_by(link)
        if entry is None:
            return [UnregisterLink(link)]
        if refusal is not None:
            return [Disconnect(entry.stub, entry.remote), *self._remove(entry, now)]
        entry.has_listeners = True
        return self._live(entry) if entry.awaits_listeners else []

    def _live(self, entry: LinkEntry) -> list[Effect]:
        steps = entry.went_live()
        found = self._settle(entry, resolve_job.Trigger.FOUND)
        return [*steps, entry.changed(Op.UPD), *found, RoutesChanged()]

    def _settle(self, entry: LinkEntry, trigger: resolve_job.Trigger) -> list[Effect]:
        """Tell who waits for this link."""
        return [*self._jobs.settle(map(link_key, sorted(entry.entities)), trigger)]

    def _disconnected(self, entry: LinkEntry, now: float) -> list[Effect]:
        effects: list[Effect] = [*entry.was_lost(), entry.changed(Op.UPD), RoutesChanged()]
        if entry.role is Role.HANDLER:
            entry.until = now + SESSION_IDLE
            return effects
        return [*effects, *self._reconnect(entry, now)]

    def _reconnect(self, entry: LinkEntry, now: float) -> list[Effect]:
        if entry.plan is None or entry.tries >= RECONNECT_TRIES:
            return [Disconnect(entry.stub, entry.remote), *self._remove(entry, now)]
        entry.until = now + DIAL_TIMEOUT + RECONNECT_BASE * 2.0**entry.tries
        entry.tries += 1
        return [Connect(entry.stub, entry.plan.handler)]

    # ---- the end

    def deadline(self) -> float:
        """Return when `tick` is due."""
        untils = [entry.until for entry in self._entries.values()]
        return min([self.claims.deadline(), *untils])

    def tick(self, now: float) -> list[Effect]:
        """Try lost links again, or give them up; look at what was claimed."""
        due = [entry for entry in self.entries() if entry.until <= now]
        tried = [effect for entry in due for effect in self._reconnect(entry, now)]
        return [*tried, *self.claims.tick(now)]

    def close(self) -> list[Effect]:
        """Remove all entries, and take no new ones; others end links and searches."""
        self._is_closed = True
        entries = self.entries()
        self._entries.clear()
        self.entities.clear()
        self.claims.clear()
        handled = [entry for entry in entries if entry.role is Role.HANDLER]
        gone: list[Effect] = [effect for entry in entries for effect in entry.ended()]
        return [*gone, RoutesChanged(), *(UnregisterLink(entry.link) for entry in handled)]

    def _remove(self, entry: LinkEntry, now: float) -> list[Effect]:
        """Remove an entry with all that belongs to it (P2P-28)."""
        del self._entries[entry.remote]
        self._cooling = {one: until for one, until in self._cooling.items() if until > now}
        self._cooling[entry.remote] = now + RETRY_COOL_DOWN
        self.entities.forget(entry)
        self.claims.forget(entry.remote)
        none = self._settle(entry, resolve_job.Trigger.NONE)
        effects: list[Effect] = [*entry.ended(), PeerGone(entry.link), *none, RoutesChanged()]
        if entry.role is Role.HANDLER:
            return [*effects, UnregisterLink(entry.link)]
        return [*effects, Undeploy(entry.stub), RemovePath(entry.stub)]
