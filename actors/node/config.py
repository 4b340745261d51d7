"""The configuration of a message node."""

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
"""Schemes of the data objects with built-in schemas (ADR-02, C-48)."""


@final
@attrs.frozen(kw_only=True)
class NodeConfig:
    """The configuration of one message node.

    Attributes:
        domain: Domain that it serves.
        listen: `host:port` of its listener; port 0 picks a free one.
        registry: File of the domain registry; None: records are in memory only.
        allow_legacy: Whether plain reTHINK stubs are served, too.
        object_schemes: Address schemes that it allocates addresses of, besides hyperties.
        policy: Decides about each message if there are no policy files.
        policies: The policy files by which messages are judged; None: `policy` decides.
        login: Which runtimes log in, and which issuers are trusted; None: no login.
        back_ends: External services that it relays requests to.
        http: Where it serves health, metrics and sessions over HTTP; None: nowhere.
        remarks: Sentences that the log shows the operator when the node is ready.
        clock_offset: Seconds from the Trio clock to the epoch (1970, UTC), for times that outlive
            the process.
        observation: Whether the owner of a data object decides on its observers, or nobody.
        limits: Bounds on memory, rate and work, per peer.
        origins: Web origins whose pages may connect, such as `https://app.example`.
        foreign: Other domains that the node reaches by stubs of its own.
        entropy: Source of random bytes for tokens and addresses.
        ids: Ids of the messages that the node itself sends.
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
