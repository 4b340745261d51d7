"""One row of the registry's table of P2P links (REG-04)."""

import math
from enum import Enum
from typing import Final

import attrs

from fsm.cores.effects import RowChanged
from fsm.cores.p2p_glare import own_is_smaller
from fsm.cores.resolve_effects import LinkDown, LinkGone, LinkNews, LinkUp, RequesterPlan
from fsm.engine import Entity, Step
from fsm.machines import p2p_entry as entry
from fsm.machines.p2p_connection import State
from specs.address import is_below
from specs.body import Record
from specs.trace import Op

__all__ = ["LinkEntry", "Role", "plan_of"]

_TABLE: Final = "p2p"
_WRITER: Final = "registry"


class Role(Enum):
    """Which end of a link this runtime is."""

    REQUESTER = "requester"
    HANDLER = "handler"


@attrs.define(slots=True)
class LinkEntry:
    """One remote runtime.

    Attributes:
        stub: The own P2P stub: PQ, or PH.
        link: The link's address: PQ, or PC once the handler has named it.
        life: What has become of the entry; the only place that moves it is here.
        plan: How a requester is deployed; None on the handler side.
        url: What routes to it; None until it was live once.
        has_listeners: Whether the listeners of a handler's link stand (I-P17).
        awaits_listeners: Whether its link is live but for them.
        entities: What is known to live there, as it was learnt (I-R8).
        until: When its next timer is due.
    """

    remote: str
    role: Role
    stub: str
    link: str
    life: Entity
    plan: RequesterPlan | None = None
    status: State = State.CREATED
    url: str | None = None
    has_listeners: bool = False
    awaits_listeners: bool = False
    entities: dict[str, None] = attrs.field(factory=dict)
    tries: int = 0
    until: float = math.inf

    @property
    def is_live(self) -> bool:
        """Whether messages may go by it."""
        return self.status is State.LIVE and self.url is not None

    @property
    def is_pending(self) -> bool:
        """Whether we asked for it and it is being set up: two such make a glare."""
        setting_up = self.status in {State.CREATED, State.IN_PROGRESS}
        return self.role is Role.REQUESTER and setting_up

    def begun(self) -> list[Step | RowChanged]:
        """Write the entry, before anything is awaited."""
        was_asked = self.role is Role.HANDLER
        trigger = entry.Trigger.INVITED if was_asked else entry.Trigger.PLANNED
        return [self.life.step(trigger), self.changed(Op.ADD)]

    def contested(self, own: str, link: str) -> Step:
        """Take the other's invitation to `link`: REMOVED, or our own request goes on."""
        facts = {
            entry.Condition.OWN_REQUEST: self.is_pending,
            entry.Condition.OWN_SMALLER: own_is_smaller(own, self.remote),
        }
        given = {fact for fact, is_true in facts.items() if is_true}
        return self.life.step(entry.Trigger.INVITED, f"to {link}", given)

    def went_live(self) -> list[Step | LinkNews]:
        """Route to the link: for the first time, or again."""
        was, self.status, self.url = self.status, State.LIVE, self.link
        self.awaits_listeners = False
        self.tries = 0
        self.until = math.inf
        if self.life.state is entry.State.PLACEHOLDER:
            return [self.life.step(entry.Trigger.LIVE), LinkUp(self.remote, self.link)]
        if was is State.LIVE:
            return []
        return [self.life.step(entry.Trigger.RESTORED), LinkUp(self.remote, self.link)]

    def was_lost(self) -> list[Step | LinkNews]:
        """Keep the entry of a link that is away; of one that was never live, too."""
        was, self.status = self.status, State.DISCONNECTED
        self.awaits_listeners = False
        is_routed = self.life.state is entry.State.BOUND and was is State.LIVE
        if not is_routed:
            return []
        return [self.life.step(entry.Trigger.LOST), LinkDown(self.remote)]

    def sets_up(self, status: State) -> None:
        """Wait for the stub, which has a deadline, while a link is set up or negotiated anew."""
        self.status, self.until = status, math.inf

    def ended(self) -> list[Step | RowChanged | LinkNews]:
        """Take the entry away."""
        return [self.life.step(entry.Trigger.ENDED), self.changed(Op.DEL), LinkGone(self.remote)]

    def changed(self, op: Op) -> RowChanged:
        """Say what the row says now."""
        entities = " ".join(self.entities)
        return RowChanged(op, _TABLE, self.remote, f"{self.status} {self.url} {entities}", _WRITER)


def plan_of(record: Record) -> RequesterPlan | None:
    """Return how to link to a record's runtime; None: it does not take links (RES-08)."""
    if not record.p2p_handler or not record.p2p_requester:
        return None
    if not is_below(record.p2p_handler, record.runtime):
        return None
    return RequesterPlan(record.runtime, record.p2p_handler, record.p2p_requester)
