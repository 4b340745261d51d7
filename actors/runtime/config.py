"""The configuration of a runtime."""

import secrets
import ssl
from collections.abc import Callable, Iterable, Mapping
from os import PathLike
from pathlib import Path
from types import MappingProxyType, NoneType
from typing import TYPE_CHECKING, Final, TypeAlias, final

import attrs

from actors.http.config import HttpConfig
from actors.kit.arguments import (
    as_domain,
    as_path_or_none,
    check_answer_within,
    check_type,
    type_checked,
)
from actors.kit.back_ends.ice import IcePlan
from actors.kit.ids import IdSource
from actors.kit.otlp import check_collector
from actors.policy.store import PolicyConfig
from actors.runtime.bus.interceptor import NO_INTERCEPTORS, Interceptor, StagePlaceError
from actors.runtime.discovery.identity_gui import IdentityGui
from actors.runtime.policy import Judge
from actors.runtime.stubs.credentials import NO_CREDENTIALS, Credentials
from fsm.limits.shares import TOTALS, SandboxTotals
from fsm.p2p.link_policy import WHENEVER_POSSIBLE, LinkPolicy
from fsm.policy.model import PolicySet
from fsm.registry.resolve.topology import Topology
from specs.addresses.address import canonical, runtime, scheme_of
from specs.identity import VouchedBy
from specs.limits.protocol import BODY_BYTES, LEASE, SPAN_SAMPLE, STUB_IDLE, STUB_IDLE_LEAST
from specs.limits.transfer import TRANSFER_BYTES, TRANSFER_MOST
from specs.routing import APPLICATION_STAGES
from transports.link import Kind
from transports.urls import LOOPBACK
from transports.webrtc.extra import NO_WEBRTC, is_webrtc_installed

if TYPE_CHECKING:
    # Signatures and stubs are slow to import, and no option of a command needs them.
    from actors.catalogue.client import CatalogueAccess
    from actors.catalogue.trust_file import Trust
    from actors.runtime.stubs.stub import IceSource


GivenPolicy: TypeAlias = Judge | PolicyConfig | str | PathLike[str] | Iterable[PolicySet]
"""Types of values by which a program may set the policies of a runtime."""
_IS_BODY: Final = attrs.validators.and_(
    attrs.validators.ge(BODY_BYTES), attrs.validators.le(TRANSFER_MOST)
)
_IS_IDLE: Final = attrs.validators.ge(STUB_IDLE_LEAST)

_NO_NODES: Final[Mapping[str, str]] = MappingProxyType({})


def _check_answer_within(_: object, __: object, seconds: float | None) -> None:
    if seconds is not None:
        check_answer_within(seconds)


def _policies(given: GivenPolicy) -> Judge | PolicyConfig:
    match given:
        case Judge() | PolicyConfig():
            return given
        case str() | PathLike():
            return PolicyConfig(files=(Path(given),))
        case _:
            return PolicyConfig(sets=tuple(given))


@final
@attrs.frozen(kw_only=True, field_transformer=type_checked)
class RuntimeConfig:
    """The configuration of one runtime.

    The text of an attribute is also the help of its option of the command `runtime`.

    Attributes:
        domain: The domain of the runtime.
        name: The name of the runtime in its domain.
        node: The domain's message node, such as ws://127.0.0.1:4123/link. None: the domain has
            none, but a registry, or a stub that its own catalogue describes.
        registry: The registry of a domain without a node, such as http://127.0.0.1:4567.
        tls: What nodes are dialled with, by the network of the operating system; None: the
            authorities of the operating system are trusted.
        insecure: Dial nodes on other machines without TLS: others can read and alter messages.
        nodes: URLs of the nodes of other domains, by domain.
        catalogues: Catalogues that have descriptors of domains not in `nodes`; None: such domains
            cannot be reached.
        descriptor: Catalogue address of this runtime's descriptor, which names the stubs of its
            direct links; its domain needs --catalogue and --trust. None: it uses those that ship.
        sandboxes: What all sandbox processes may use together: those of hyperties, and of stubs
            whose code comes from a catalogue.
        kinds: Kinds of direct links, best first; empty: no direct links (P2P-01).
        p2p_host: Host on which links by websocket and tcp are accepted, no wildcard. A private
            address or a name is offered only to peers that --p2p-peer names.
        links: To which runtimes direct links are wanted, and whether messages wait for them.
        ice: Servers of STUN and TURN for direct links by WebRTC; None: those that the domain's node
            names, if any.
        ice_relay_only: Direct links by WebRTC use only TURN servers: no peer learns an address of
            this machine.
        p2p_require: Who has to vouch for the other end of a direct link; else messages go by the
            node. Default: domain where this runtime logs in, else none.
        trust: Other domains and identity providers that are believed about peers; None: those of
            `catalogues`.
        topology: Send messages for other domains to their node (triangle), or to the own one.
        stub_idle: Release the connection to another domain after so many seconds without use.
        user: Address of the user who owns the hyperties, such as user://a.example/bob [default: the
            user of the login].
        credentials: Where the token for a login at a node comes from.
        identity_gui: How the application shows login pages, and asks its user who that is; None: it
            has no display (ADR-03).
        identity: File of the runtime's key, made if it is not there; tokens may be bound to it
            [default: FILE-identity beside --store FILE, else in memory].
        store: File that keeps stored data objects over the end of the process.
        lease: Seconds for which a subscription to an object reported here is granted; an observer
            that does not renew it in time is removed.
        policy: Decides whether a message may pass: policies, in a file or folder, as read by
            `read_policies`, or with more options as a `PolicyConfig`; or a `Policy` of the
            application. The default has no policies, and permits every message.
        interceptors: Stages of the application in the pipelines of the bus, in their order
            (BUS-11).
        publish_status: Notify runtimes that subscribe to the status of this one when it is live or
            leaves.
        largest_body: Bytes of JSON that the body of a request or an answer of a hyperty may have;
            over `BODY_BYTES` it travels in chunks. More is refused with 413.
        stop_on_failure: Whether the runtime ends when a hyperty is given up, as it crashes too
            often; its error is then raised by the context of the runtime.
        entropy: Source of random bytes for secrets, nonces and jitter.
        ids: Ids of all messages of the runtime. A process starts them at its wall clock, so that
            no id repeats after a restart.
        clock_offset: Seconds from the Trio clock to the epoch (1970, UTC), for the times at which
            data objects were created.
        answer_within: Seconds that handlers of requests may take, 600 at most, unless their class
            or the request names a time; None: as long as they like, but requesters wait for
            15 seconds only.
        monitor: Check claims on steps, tables, links and every tenth request of this process while
            it runs; a broken claim is logged and counted.
        otlp: Export spans of messages to the collector of OpenTelemetry at this URL, such as
            http://127.0.0.1:4318, by OTLP over HTTP (extra `otlp`).
        otlp_sample: Export the spans of one message in so many.
        http: Where it serves health, readiness and metrics over HTTP; None: nowhere.

    Raises:
        TypeError: A value is of a wrong type.
        StagePlaceError: An interceptor is neither before nor after policy.
        BadUrlError: `user` is no address.
        ValueError: `kinds` has `webrtc`, but the extra is not installed; `user` is no address of a
            user; `largest_body` is below `BODY_BYTES` or above `TRANSFER_MOST`; `stub_idle` is
            below `STUB_IDLE_LEAST`; `otlp` is no HTTP URL, or the extra is not installed; or
            `otlp_sample` is below 1.
    """

    domain: str = attrs.field(converter=as_domain)
    name: str
    node: str | None = None
    registry: str | None = None
    tls: ssl.SSLContext | None = None
    insecure: bool = False
    nodes: Mapping[str, str] = _NO_NODES
    catalogues: "CatalogueAccess | None" = attrs.field(default=None)
    descriptor: str | None = None
    sandboxes: SandboxTotals = TOTALS
    kinds: tuple[Kind, ...] = attrs.field(default=())
    p2p_host: str = LOOPBACK
    links: LinkPolicy = WHENEVER_POSSIBLE
    ice: IcePlan | None = None
    ice_relay_only: bool = False
    p2p_require: VouchedBy | None = None
    trust: "Trust | None" = attrs.field(default=None)
    topology: Topology = Topology.TRIANGLE
    stub_idle: float = attrs.field(default=STUB_IDLE, validator=_IS_IDLE)
    user: str | None = attrs.field(default=None)
    credentials: Credentials = NO_CREDENTIALS
    identity_gui: IdentityGui | None = None
    identity: Path | None = attrs.field(default=None, converter=as_path_or_none)
    store: Path | None = attrs.field(default=None, converter=as_path_or_none)
    lease: int = LEASE
    policy: Judge | PolicyConfig = attrs.field(default=PolicyConfig(), converter=_policies)
    interceptors: tuple[Interceptor, ...] = attrs.field(default=NO_INTERCEPTORS)
    publish_status: bool = False
    largest_body: int = attrs.field(default=TRANSFER_BYTES, validator=_IS_BODY)
    stop_on_failure: bool = False
    entropy: Callable[[int], bytes] = secrets.token_bytes
    clock_offset: float = 0.0
    ids: IdSource = attrs.field(factory=IdSource)
    answer_within: float | None = attrs.field(default=None, validator=_check_answer_within)
    monitor: bool = False
    otlp: str | None = attrs.field(default=None, validator=check_collector)
    otlp_sample: int = attrs.field(default=SPAN_SAMPLE, validator=attrs.validators.ge(1))
    http: HttpConfig | None = None

    @kinds.validator
    def _check_kinds(self, _: object, kinds: tuple[Kind, ...]) -> None:
        if Kind.WEBRTC in kinds and not is_webrtc_installed():
            raise ValueError(f"{NO_WEBRTC}; pip install '.[webrtc]' in a checkout")

    @catalogues.validator
    @trust.validator
    def _check_late(self, field: "attrs.Attribute[object]", value: object) -> None:
        if value is not None:
            from actors.catalogue.client import CatalogueAccess  # noqa: PLC0415 - see above
            from actors.catalogue.trust_file import Trust  # noqa: PLC0415

            kind = CatalogueAccess if field.name == "catalogues" else Trust
            check_type(value, (kind, NoneType), f"RuntimeConfig.{field.name}")

    @user.validator
    def _check_user(self, _: object, user: str | None) -> None:
        if user is not None and scheme_of(canonical(user)) != "user":
            raise ValueError(f"{user!r} is no user such as user://a.example/bob")

    @interceptors.validator
    def _check_places(self, _: object, interceptors: tuple[Interceptor, ...]) -> None:
        for each in interceptors:
            if each.place not in APPLICATION_STAGES:
                raise StagePlaceError(each.name, each.place)

    @property
    def ice_source(self) -> "IceSource":
        """The source of STUN and TURN servers for data channels."""
        from actors.runtime.stubs.stub import IceSource  # noqa: PLC0415 - see above

        return IceSource(self.ice, self.ice_relay_only, self.clock_offset)

    @property
    def dialled(self) -> dict[str, str]:
        """URLs of the nodes that are configured, by domain; that of the own domain is the last."""
        own = {} if self.node is None else {self.domain: self.node}
        return {**{as_domain(name): url for name, url in self.nodes.items()}, **own}

    @property
    def servers(self) -> tuple[str, ...]:
        """URLs of all nodes and registries that are configured."""
        registry = () if self.registry is None else (self.registry,)
        return (*self.dialled.values(), *registry)

    @property
    def identity_file(self) -> Path | None:
        """The file of the runtime's key; None: the key ends with the process."""
        if self.identity is not None or self.store is None:
            return self.identity
        # A session of the store belongs to the key that it was opened with.
        return self.store.with_name(f"{self.store.name}-identity")

    @property
    def link_requirement(self) -> VouchedBy:
        """Lowest level of vouching that is required for the other end of a direct link."""
        if self.p2p_require is not None:
            return self.p2p_require
        return VouchedBy.NONE if self.credentials is NO_CREDENTIALS else VouchedBy.DOMAIN

    @property
    def believed(self) -> "Trust | None":
        """Domains and identity providers that are believed; None: only the own domain is."""
        if self.trust is not None or self.catalogues is None:
            return self.trust
        return self.catalogues.trust

    @property
    def runtime(self) -> str:
        """Address of the runtime, R.

        Raises:
            BadUrlError: Domain or name cannot be part of an address.
        """
        return runtime(self.domain, self.name)
