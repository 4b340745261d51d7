"""One row of the registry's table of P2P links (REG-04)."""

import math
from enum import Enum

import attrs

from fsm.cores.resolve_effects import RequesterPlan
from fsm.machines.p2p_connection import State

__all__ = ["LinkEntry", "Role"]


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
        url: What routes to it; None until it was live once.
        plan: How a requester is deployed; None on the handler side.
        entities: What is known to live there (I-R8).
        until: When its next timer is due.
    """

    remote: str
    role: Role
    stub: str
    link: str
    plan: RequesterPlan | None = None
    status: State = State.CREATED
    url: str | None = None
    entities: set[str] = attrs.field(factory=set)
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
