"""One row of the registry's table of P2P links (REG-04)."""

import math
from enum import Enum
from typing import Final

import attrs

from fsm.effects import RowChanged
from fsm.engine import Entity, Step
from fsm.machines import p2p_entry as entry
from fsm.machines.p2p_connection import State
from fsm.p2p.negotiation import Role, own_is_smaller
from fsm.registry.resolve.effects import (
    Effect,
    LinkDown,
    LinkGone,
    LinkNews,
    LinkUp,
    RequesterPlan,
    Resume,
    Yield,
)
from specs.addresses.address import is_below
from specs.addresses.descriptor import is_other_stub
from specs.bodies.body import Record
from specs.trace import Op

__all__ = ["Deployment", "LinkEntry", "plan_of"]

_TABLE: Final = "p2p"
_WRITER: Final = "registry"


class Deployment(Enum):
    """The state of a requester's stub."""

    PLANNED = "planned"
    ORDERED = "ordered"
    AT_WORK = "at work"


@attrs.define(slots=True)
class LinkEntry:
    """The link to one remote runtime.

    Attributes:
        stub: The own P2P stub: PQ, or PH.
        link: The link's address: PQ, or PC once the handler has named it.
        life: The entity of the entry, which only this class steps.
        plan: How a requester is deployed; None on the handler side.
        url: Address that routes to the link; None until it was live once.
        has_listeners: Whether the listeners of a handler's link stand (I-P17).
        awaits_listeners: Whether its link is live but for them.
        entities: The entities known to live there, in the order they became known (I-R8).
        beside: The other link to the same runtime: our own request that yields to this link,
            or an invitation to a link that replaces this one once it is live (P2P-27).
        deployment: Of a requester: at work once its stub has reported a status.
        yields_due: Orders to yield that its stub has not followed yet.
        until: When its next timer is due.
        fails_at: When it is too late for its link to become live for the first time.
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
    beside: "LinkEntry | None" = None
    deployment: Deployment = Deployment.PLANNED
    yields_due: int = 0
    tries: int = 0
    until: float = math.inf
    fails_at: float = math.inf

    @property
    def is_live(self) -> bool:
        """Whether messages may go by the link."""
        return self.status is State.LIVE and self.url is not None

    @property
    def ends(self) -> "tuple[LinkEntry, ...]":
        """This end of a link, and the one beside it."""
        return (self,) if self.beside is None else (self, self.beside)

    def row_for(self, stub: str) -> "LinkEntry":
        """Return the end of the link for a stub that asks for the row: a handler, its newest."""
        is_beside = self.beside is not None and self.beside.stub == stub
        return self.beside if self.beside is not None and is_beside else self

    @property
    def yielding(self) -> "LinkEntry | None":
        """Our own request that waits until this link is live or has failed."""
        is_own = self.beside is not None and self.beside.role is Role.REQUESTER
        return self.beside if is_own else None

    def is_held(self, stub: str) -> bool:
        """Return whether a handler is to wait for the row: our own request may become live."""
        own = self.yielding
        return own is not None and own.yields_due > 0 and stub == self.stub

    @property
    def is_pending(self) -> bool:
        """Whether our own request is being set up: two such requests make a simultaneous open."""
        setting_up = self.status in {State.CREATED, State.IN_PROGRESS}
        return self.role is Role.REQUESTER and setting_up

    def begun(self, now: float) -> list[Step | RowChanged]:
        """Write the entry, before anything is awaited."""
        was_asked = self.role is Role.HANDLER
        trigger = entry.Trigger.INVITED if was_asked else entry.Trigger.PLANNED
        step = self.life.step(trigger)
        self.fails_at = now + self.life.patience
        return [step, self.changed(Op.ADD)]

    def contested(self, own: str, link: str) -> Step:
        """Take the peer's invitation; the new state says which of both links yields.

        Args:
            own: Address of this runtime, for the tie-break.
            link: Address of the link that the peer invites to.
        """
        facts = {
            entry.Condition.OWN_REQUEST: self.is_pending,
            entry.Condition.OWN_SMALLER: own_is_smaller(own, self.remote),
            entry.Condition.LINK_LIVE: self.is_live,
        }
        given = {fact for fact, is_true in facts.items() if is_true}
        return self.life.step(entry.Trigger.INVITED, f"to {link}", given)

    def went_live(self) -> list[Step | LinkNews]:
        """Route to the link: for the first time, or again."""
        was = self.status
        self._routes()
        if self.life.state is not entry.State.BOUND:
            return [self.life.step(entry.Trigger.LIVE), LinkUp(self.remote, self.link)]
        if was is State.LIVE:
            return []
        return [self.life.step(entry.Trigger.RESTORED), LinkUp(self.remote, self.link)]

    def yields_to(self, winner: "LinkEntry", now: float) -> list[Effect]:
        """Let the winner of a simultaneous open have the entry, and wait beside it.

        A requester that is not deployed yet never will be. One that is being deployed gets the
        order to yield when it is at work.

        Args:
            winner: The peer's link.
            now: Seconds on the host's clock.
        """
        winner.life, winner.entities = self.life, self.entities
        winner.fails_at = now + self.life.patience
        if self.deployment is Deployment.PLANNED:
            return []
        winner.beside = self
        self.yields_due += 1
        is_at_work = self.deployment is Deployment.AT_WORK
        return [Yield(self.stub, self.remote)] if is_at_work else []

    def told_while_yielding(self, value: State) -> list[Effect]:
        """Take a step of its stub while it yields, or is to."""
        is_first, self.deployment = self.deployment is not Deployment.AT_WORK, Deployment.AT_WORK
        self.yields_due -= value is State.YIELDING
        return [Yield(self.stub, self.remote)] if is_first else []

    def resumed(self, now: float) -> list[Effect]:
        """Go on as the entry's link: the link that it yielded to has failed."""
        steps: list[Effect] = [self.life.step(entry.Trigger.RESUMED), self.changed(Op.UPD)]
        self.fails_at = now + self.life.patience
        if self.deployment is Deployment.AT_WORK:
            return [*steps, Resume(self.stub, self.remote)]
        # It was not told to yield yet.
        self.yields_due = 0
        return steps

    def took_over(self, old: "LinkEntry") -> list[Step | LinkNews]:
        """Take the place of a live link; this one is live now."""
        self.life, self.entities = old.life, old.entities
        self._routes()
        step = self.life.step(entry.Trigger.REPLACED, f"by {self.link}")
        return [step, LinkDown(self.remote), LinkUp(self.remote, self.link)]

    def _routes(self) -> None:
        self.status, self.url = State.LIVE, self.link
        self.awaits_listeners = False
        self.tries = 0
        self.until = self.fails_at = math.inf

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
        self.deployment = Deployment.AT_WORK

    def ended(self) -> list[Step | RowChanged | LinkNews]:
        """Take the entry away."""
        return [self.life.step(entry.Trigger.ENDED), self.changed(Op.DEL), LinkGone(self.remote)]

    def changed(self, op: Op) -> RowChanged:
        """Return the present values of the row, for the trace."""
        entities = " ".join(self.entities)
        return RowChanged(op, _TABLE, self.remote, f"{self.status} {self.url} {entities}", _WRITER)


def plan_of(record: Record) -> RequesterPlan | None:
    """Return how to link to a record's runtime; None: it does not take links (RES-08)."""
    if not record.p2p_handler or not record.p2p_requester:
        return None
    if is_other_stub(record.p2p_requester):
        return None
    if not is_below(record.p2p_handler, record.runtime):
        return None
    return RequesterPlan(record.runtime, record.p2p_handler, record.p2p_requester)
