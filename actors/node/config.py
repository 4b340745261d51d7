"""What a message node is told when it is made."""

import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Final, final

import attrs

from actors.kit.ids import IdSource
from actors.node.connectors.back_ends import BackEnds
from actors.node.foreign.plan import NOWHERE, ForeignPlan
from actors.node.http.config import HttpConfig
from actors.node.limits import DEFAULT_LIMITS, NodeLimits
from actors.node.login.login import Login
from actors.node.policy.config import PolicyConfig
from actors.node.policy_hook import PERMIT_ALL, Policy
from fsm.registry.node_rights import Observation

__all__ = ["OBJECT_SCHEMES", "NodeConfig"]

OBJECT_SCHEMES: Final = frozenset({"comm", "connection", "ctxt"})
"""Schemes of the data objects whose schemas are built in (ADR-02, C-48)."""


@final
@attrs.frozen(kw_only=True)
class NodeConfig:
    """How one message node is to be.

    Attributes:
        domain: The domain it serves.
        listen: `host:port` of its front door; port 0 picks a free one.
        registry: File of the domain registry; None keeps records in memory only.
        allow_legacy: Whether the plain form of upstream's stubs is served too.
        object_schemes: What addresses are allocated for, besides hyperties.
        policy: Who may send what, if there are no policies.
        policies: By which policies messages are judged; None: by `policy`.
        login: Who has to log in, and who vouches for them; None: nobody is asked.
        back_ends: What it relays to.
        http: Where health and metrics are served; None: nowhere.
        remarks: What its operator is to be told once it serves.
        clock_offset: Seconds from the Trio clock to the epoch, for what outlives
            the process.
        observation: Who decides that an object is observed: its owner, or nobody.
        limits: What one peer may make it keep, bear or do.
        origins: Web origins whose pages may connect.
        foreign: The other domains it reaches by stubs of its own.
        entropy: Source of random bytes for tokens and addresses.
        ids: Ids of the messages the node itself makes.
    """

    domain: str
    listen: str = "127.0.0.1:0"
    registry: Path | None = None
    allow_legacy: bool = False
    object_schemes: frozenset[str] = OBJECT_SCHEMES
    policy: Policy = PERMIT_ALL
    policies: PolicyConfig | None = None
    login: Login | None = None
    back_ends: BackEnds = attrs.field(factory=BackEnds)
    http: HttpConfig | None = None
    remarks: tuple[str, ...] = ()
    clock_offset: float = 0.0
    observation: Observation = Observation.OWNER
    limits: NodeLimits = DEFAULT_LIMITS
    origins: frozenset[str] = frozenset()
    foreign: ForeignPlan = NOWHERE
    entropy: Callable[[int], bytes] = secrets.token_bytes
    ids: IdSource = attrs.field(factory=IdSource)
