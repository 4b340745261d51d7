"""The configuration of a message node: its services, policies and routes to other domains."""

import secrets
import ssl
from collections.abc import Callable, Container, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, final

import attrs
from typing_extensions import override

from actors.http.config import HttpConfig
from actors.keys.signing import SigningKey
from actors.kit.arguments import as_domain, as_path_or_none, type_checked
from actors.kit.ids import IdSource
from actors.kit.otlp import check_collector
from actors.node.connectors.back_ends import BackEnds
from actors.node.limits import DEFAULT_LIMITS, NodeLimits
from actors.node.login.provider import Login
from actors.node.policy_hook import PERMIT_ALL, Policy
from actors.pipe.plan import SandboxError, Spawn, TokenSource, nothing
from actors.policy.store import PolicyConfig
from fsm.registry.node_rights import Names, Observation
from specs.limits.protocol import SPAN_SAMPLE, STUB_IDLE
from transports.link import Link

if TYPE_CHECKING:
    from actors.catalogue.client import CatalogueAccess
    from transports.engine.contract import Engine


@final
@attrs.frozen
class Endpoint:
    """Address of the message node of another domain, and the login for it.

    Attributes:
        url: The only URL that is dialled, such as ws://127.0.0.1:4123/link.
        login: Returns the token that opens a session there; called for each session, as a login
            token opens one session.
    """

    url: str
    login: TokenSource = nothing


@final
@attrs.frozen
class ForeignPlan:
    """Configuration of the routes to other domains: nodes, catalogues and logins.

    Attributes:
        domains: By name; may be filled while the node runs.
        catalogues: Catalogues that describe the stubs of other domains (MN-19); None: only
            `domains` are reached.
        logins: Sources of the tokens that open sessions at nodes that catalogues describe.
        idle: Seconds without a message after which the stub of a domain is released (PFY-03).
    """

    domains: Mapping[str, Endpoint]
    spawn: Spawn
    catalogues: "CatalogueAccess | None" = None
    logins: Mapping[str, TokenSource] = MappingProxyType({})
    idle: float = STUB_IDLE

    def with_clock(self, offset: float) -> "ForeignPlan":
        """Return a copy of the plan with a clock that tells when catalogue descriptors expire.

        Args:
            offset: Seconds from the Trio clock to the epoch.
        """
        if self.catalogues is None:
            return self
        return attrs.evolve(self, catalogues=attrs.evolve(self.catalogues, clock_offset=offset))

    def reach(self, own: str) -> Container[str]:
        """Return the domains to which messages can be sent.

        Args:
            own: The domain of the node, which is excluded.
        """
        return self.domains.keys() if self.catalogues is None else _Others(own)


@attrs.frozen
class _Others(Container[str]):
    """Set of all domain names except the node's own."""

    own: str

    @override
    def __contains__(self, domain: object) -> bool:
        return isinstance(domain, str) and bool(domain) and domain != self.own


def _no_room(_label: str) -> AbstractAsyncContextManager[Link]:
    raise SandboxError("this node makes no sandboxes")


NOWHERE: Final = ForeignPlan(MappingProxyType({}), _no_room)
"""The configuration of a node that reaches no other domain."""


OBJECT_SCHEMES: Final = frozenset({"comm", "connection", "ctxt"})
"""Address schemes of the data objects with built-in schemas (ADR-02, C-48)."""


@final
@attrs.frozen(kw_only=True, field_transformer=type_checked)
class NodeConfig:
    """The configuration of one message node.

    The command `node` shows the text of an attribute as the help of the option of that name.

    Attributes:
        domain: The domain of the node.
        listen: Address for connections of stubs; port 0 picks a free one.
        tls: What connections of stubs are encrypted by; None: they are not.
        registry: File of the domain registry; None: records are in memory only.
        state: File of sessions and used login tokens: after a restart runtimes come back by
            themselves [default: FILE-state beside --registry FILE, else in memory].
        allow_legacy: Serve the wire forms of upstream's stubs.
        names: What runtimes of upstream's forms may call themselves.
        object_schemes: Address schemes that it allocates addresses of, besides hyperties.
        policy: Decides about each message if there are no policy files.
        policies: The policy files by which messages are judged; None: `policy` decides.
        login: Which runtimes log in, and which issuers are trusted; None: no login.
        domain_keys: Keys of the domain; the first one signs what the domain states of its runtimes,
            all are published. Empty: a key is made that ends with the node.
        back_ends: External services that it relays requests to.
        http: Where it serves health, metrics and sessions over HTTP; None: nowhere.
        remarks: Sentences that the log shows the operator when the node is ready.
        clock_offset: Seconds from the Trio clock to the epoch (1970, UTC), for times that outlive
            the process.
        observation: Deliver changes of an object with its owner's consent, or to all subscribers.
        limits: Bounds on memory, rate and work, per peer.
        origins: Web origins whose pages may connect, such as `https://app.example`.
        foreign: Other domains that the node reaches by stubs of its own.
        client_tls: What nodes of other domains are dialled with, by the network of the operating
            system; None: the authorities of the operating system are trusted.
        insecure: Dial nodes on other machines without TLS: others can read and alter messages.
        entropy: Source of random bytes for tokens and addresses.
        ids: Ids of the messages that the node itself sends.
        monitor: Check claims on steps, tables, links and every tenth request of this process while
            it runs; a broken claim is logged and counted.
        otlp: Export spans of messages to the collector of OpenTelemetry at this URL, such as
            http://127.0.0.1:4318, by OTLP over HTTP (extra `otlp`).
        otlp_sample: Export the spans of one message in so many.
        engine: Opens the engine that the nodes of the domain share; None: this is the only node.
        node_name: Name of this node among those of its domain, for logs.

    Raises:
        TypeError: A value is of a wrong kind.
        ValueError: There are an engine and a file for what the engine keeps (`own_files`); `otlp`
            is no HTTP URL, or the extra is not installed; or `otlp_sample` is below 1.
    """

    domain: str = attrs.field(converter=as_domain)
    listen: str = "127.0.0.1:0"
    tls: ssl.SSLContext | None = None
    registry: Path | None = attrs.field(default=None, converter=as_path_or_none)
    state: Path | None = attrs.field(default=None, converter=as_path_or_none)
    allow_legacy: bool = False
    names: Names = Names.STRICT
    object_schemes: frozenset[str] = OBJECT_SCHEMES
    policy: Policy = PERMIT_ALL
    policies: PolicyConfig | None = None
    login: Login | None = None
    domain_keys: tuple[SigningKey, ...] = ()
    back_ends: BackEnds = attrs.field(factory=BackEnds)
    http: HttpConfig | None = None
    remarks: tuple[str, ...] = ()
    clock_offset: float = 0.0
    observation: Observation = Observation.OWNER
    limits: NodeLimits = DEFAULT_LIMITS
    origins: frozenset[str] = frozenset()
    foreign: ForeignPlan = NOWHERE
    client_tls: ssl.SSLContext | None = None
    insecure: bool = False
    entropy: Callable[[int], bytes] = secrets.token_bytes
    ids: IdSource = attrs.field(factory=IdSource)
    monitor: bool = False
    otlp: str | None = attrs.field(default=None, validator=check_collector)
    otlp_sample: int = attrs.field(default=SPAN_SAMPLE, validator=attrs.validators.ge(1))
    engine: "Callable[[], AbstractAsyncContextManager[Engine]] | None" = attrs.field(
        default=None, repr=False
    )
    node_name: str = ""

    def __attrs_post_init__(self) -> None:
        if self.engine is not None and self.own_files:
            files = " and ".join(self.own_files)
            raise ValueError(
                f"the engine keeps records, sessions and used login tokens; leave {files} out"
            )

    @property
    def own_files(self) -> tuple[str, ...]:
        """Names of the fields that configure files whose contents an engine would keep instead.

        Nodes do not see each other's files: with several nodes, a login token could open a session
        at each of them.
        """
        used = None if self.login is None else self.login.used_tokens
        files = {"registry": self.registry, "state": self.state, "used_tokens": used}
        return tuple(name for name, path in files.items() if path is not None)

    @property
    def process_name(self) -> str:
        """Name of the node's process in traces."""
        return ".".join(("node", *filter(None, (self.node_name,)), self.domain))

    @property
    def judged_by(self) -> PolicyConfig | None:
        """The policy files that judge messages; None: the field `policy` decides.

        A node that shares an engine has the policies of its domain, unless the program sets
        `policy`.
        """
        if self.policies is None and self.engine is not None and self.policy is PERMIT_ALL:
            return PolicyConfig()
        return self.policies

    @property
    def state_file(self) -> Path | None:
        """The file of sessions and used tokens; None: both end with the process."""
        if self.state is not None or self.registry is None:
            return self.state
        return self.registry.with_name(f"{self.registry.name}-state")
