"""The registry's table of P2P links, one entry per remote runtime (REG-04, RES-05..12).

An entry is written before anything is awaited, so that one set-up is under way per
remote runtime (RES-07, I-P7). Only the stubs' status events move its status (C-19).
On the handler side `live` is preceded by the listeners of the link (I-P17). A lost
link keeps its entry and its entities, and the requester is told to reconnect; when the
tries are over, or on `failed`, everything that belongs to the entry goes.
"""

import math
from typing import Final, final

from fsm.cores.link_entry import LinkEntry, Role
from fsm.cores.resolve_effects import (
    Connect,
    Deploy,
    Disconnect,
    Effect,
    RegisterLink,
    RemovePath,
    RequesterPlan,
    RoutesChanged,
    SetPath,
    Undeploy,
    UnregisterLink,
)
from fsm.cores.resolve_inputs import StatusSeen
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
)
from specs.trace import Op

__all__ = ["LinkTable"]

_ENTITIES: Final = 4096
"""Entities bound to one link; more are reached by the node (ours)."""


@final
class LinkTable:
    """Which remote runtime is reached by which link.

    What waits for a link in `jobs` is told when its entry is live or gone.
    """

    def __init__(self, runtime: str, jobs: ResolveJobs) -> None:
        self._runtime = runtime
        self._jobs = jobs
        self._entries: dict[str, LinkEntry] = {}
        self._remote_of: dict[str, str] = {}
        self._cooling: dict[str, float] = {}
        self._minted = 0
        self._is_closed = False

    def entries(self) -> tuple[LinkEntry, ...]:
        """Return all entries."""
        return tuple(self._entries.values())

    def live_link(self, entity: str) -> str | None:
        """Return the live link to an entity or to a part of a remote runtime."""
        remote = self._remote_of.get(entity, entity)
        entry = self._entries.get(remote)
        return entry.url if entry is not None and entry.is_live else None

    def entry_of(self, entity: str) -> LinkEntry | None:
        """Return the entry of the runtime on which an entity is known to live."""
        return self._entries.get(self._remote_of.get(entity, ""))

    def bind(self, entity: str, remote: str) -> list[Effect]:
        """Note where an entity lives; it moves if it lived elsewhere."""
        entry = self._entries.get(remote)
        if entry is None or self._remote_of.get(entity) == remote:
            return []
        if len(entry.entities) >= _ENTITIES:
            return []
        former = self._entries.get(self._remote_of.get(entity, ""))
        if former is not None:
            former.entities.discard(entity)
        self._remote_of[entity] = remote
        entry.entities.add(entity)
        return [entry.changed(Op.UPD), *([RoutesChanged()] if entry.is_live else [])]

    def bind_heard(self, entity: str, link: str) -> list[Effect]:
        """Note that an entity was heard over a link.

        Only a record moves an entity that is known to live elsewhere: else a peer
        could draw another's messages to itself by using its name once.
        """
        found = self._by_link(link)
        if found is None or self._remote_of.get(entity, found.remote) != found.remote:
            return []
        return self.bind(entity, found.remote)

    def unbind(self, entity: str) -> list[Effect]:
        """Forget where an entity lives: it may have come back elsewhere."""
        entry = self.entry_of(entity)
        if entry is None:
            return []
        del self._remote_of[entity]
        entry.entities.discard(entity)
        none = self._jobs.settle([link_key(entity)], resolve_job.Trigger.NONE)
        return [entry.changed(Op.UPD), *none, *([RoutesChanged()] if entry.is_live else [])]

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
        return [*entry.begun(), SetPath(url)]

    def _life(self, remote: str) -> Entity:
        return Entity(p2p_entry.P2P_ENTRY, f"{self._runtime}|{remote}")

    def path_set(self, url: str, refusal: str | None, now: float) -> list[Effect]:
        """Deploy the requester once its path is acknowledged (P2P-05, I-P10)."""
        entry = self._by_link(url)
        if entry is None or entry.plan is None:
            return [RemovePath(url)]
        if refusal is not None:
            return self._remove(entry, now)
        return [Deploy(url, entry.plan)]

    def has_requester(self, url: str) -> bool:
        """Say whether this is a requester of this table."""
        entry = self._by_link(url)
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
        entry = self._by_link(link)
        return [] if entry is None or entry.stub != stub else self._remove(entry, now)

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
        return [*effects, *entry.begun()]

    @staticmethod
    def _replaced(entry: LinkEntry) -> list[Effect]:
        """Let a new link take the place of an entry, which leaves it its entities."""
        effects: list[Effect] = [entry.changed(Op.DEL), RoutesChanged()]
        if entry.role is Role.HANDLER:
            return [*effects, UnregisterLink(entry.link)]
        return [*effects, Disconnect(entry.stub, entry.remote)]

    @staticmethod
    def _stray_ended(stub: str, link: str) -> list[Effect]:
        if stub != link:
            return [UnregisterLink(link)]
        return [Undeploy(stub), RemovePath(stub)]

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
        entry = self._by_link(link)
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
        return min((entry.until for entry in self._entries.values()), default=math.inf)

    def tick(self, now: float) -> list[Effect]:
        """Try lost links again, or give them up."""
        due = [entry for entry in self.entries() if entry.until <= now]
        return [effect for entry in due for effect in self._reconnect(entry, now)]

    def close(self) -> list[Effect]:
        """Remove all entries, and take no new ones; others end links and searches."""
        self._is_closed = True
        entries, self._entries, self._remote_of = self.entries(), {}, {}
        handled = [entry for entry in entries if entry.role is Role.HANDLER]
        gone: list[Effect] = [effect for entry in entries for effect in entry.ended()]
        return [*gone, RoutesChanged(), *(UnregisterLink(entry.link) for entry in handled)]

    def _remove(self, entry: LinkEntry, now: float) -> list[Effect]:
        """Remove an entry with all that belongs to it (P2P-28)."""
        del self._entries[entry.remote]
        self._cooling = {one: until for one, until in self._cooling.items() if until > now}
        self._cooling[entry.remote] = now + RETRY_COOL_DOWN
        for entity in entry.entities:
            self._remote_of.pop(entity, None)
        none = self._settle(entry, resolve_job.Trigger.NONE)
        effects: list[Effect] = [*entry.ended(), *none, RoutesChanged()]
        if entry.role is Role.HANDLER:
            return [*effects, UnregisterLink(entry.link)]
        return [*effects, Undeploy(entry.stub), RemovePath(entry.stub)]

    def _by_link(self, link: str) -> LinkEntry | None:
        return next((entry for entry in self._entries.values() if entry.link == link), None)
