"""Stubs of other domains, fetched from catalogues when first needed (PFY-01, CAT-03, STB-10, S16).

Descriptors in the configuration come first, and are not fetched. All others are fetched, verified
and judged by `actors.catalogue`; this module makes the stub: either a shipped stub, which a
declarative profile points at the domain's node (PFY-01, STB-01), or code in a sandbox. Fetched
code never runs in this process. `StubMakers` has the factories of both.
"""

import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from types import MappingProxyType
from typing import Final, TypeAlias

import attrs
import orjson
from typing_extensions import override

from actors.catalogue.client import CatalogueAccess, CatalogueClient, Found
from actors.catalogue.errors import CatalogueFileError, RefusedDescriptorError
from actors.keys.key_set import BadKeysError, read_keys
from actors.kit.counters import Counters, Outcome, Tally
from actors.kit.guarded_network import GuardedNetwork
from actors.kit.http_client import PlainUrlError, check_plain, dial_public
from actors.kit.log import get_logger
from actors.kit.supervision.actor import Actor, Delivery
from actors.kit.trace import Tracer
from actors.pipe.code import importable
from actors.runtime.config import RuntimeConfig
from actors.runtime.own_identity import OwnIdentity
from actors.runtime.p2p.stub import LINK_STUBS, link_stub
from actors.runtime.stubs import catalogue, node_stub
from actors.runtime.stubs.credentials import NO_CREDENTIALS
from actors.runtime.stubs.node_stub import NodeStub, NodeStubMessage
from actors.runtime.stubs.stub import StubContext, StubFactory
from actors.runtime.stubs.upstream_wires import PlainWire, SessionWire, dialect_for
from actors.runtime.stubs.wire import StubOptionError
from fsm.catalogue.descriptor import Here, Level, Reach, Reason, Refused
from fsm.limits.shares import MIB
from fsm.machine_list import MACHINES, fingerprints
from fsm.machines.handler_controller import HANDLER_CONTROLLER
from fsm.machines.p2p_connection import LINK_DIALLING, P2P_CONNECTION
from fsm.machines.p2p_entry import P2P_ENTRY
from specs.addresses.address import CatalogueType, Entry, read_entry
from specs.descriptor import HypertyDescriptor, RuntimeDescriptor, StubDescriptor
from specs.errors import BadUrlError
from specs.jsonvalue import JsonObject
from specs.limits.protocol import SANDBOX_MEMORY
from specs.reply_code import Code
from specs.trace import Fact, Op
from specs.trace import Kind as FactKind
from transports.link import Kind


def _upstream(
    dialect: str, wire: type[PlainWire | SessionWire], context: StubContext
) -> Actor[NodeStubMessage]:
    """Make a stub that speaks upstream's protocol: its plain form, or its form with sessions.

    Raises:
        StubOptionError: The profile has an unknown option.
    """
    spoken = dialect_for(dialect, context.config.options)
    return NodeStub(context, lambda: wire(context, spoken))


def _rest(context: StubContext) -> Actor[NodeStubMessage]:
    """Make the stub that speaks `protofly.v1` over HTTP.

    Raises:
        StubOptionError: The profile has an unknown option.
    """
    # The module is slow to import, and only needed for nodes with REST.
    from actors.runtime.stubs.rest_wire import RestPast, RestWire, link_of  # noqa: PLC0415

    link, past = link_of(context), RestPast()
    return NodeStub(context, lambda: RestWire(context, link, past))


def _client_server(kind: str, context: StubContext) -> Actor[Delivery]:
    """Make a stub that translates messages for a server: HTTP with JSON, or a registry with REST.

    Raises:
        StubOptionError: The profile has an unknown option, or names no server.
    """
    # The module is slow to import, and only needed for domains with servers.
    from actors.runtime.stubs import client_server  # noqa: PLC0415

    kinds = {
        "http-json": client_server.HttpJsonStub,
        "rest-registry": client_server.RestRegistryStub,
    }
    return kinds[kind](context)


SHIPPED: Final[Mapping[str, StubFactory]] = MappingProxyType(
    {
        "websocket": node_stub.activate,
        "legacy-websocket": partial(_upstream, "legacy-websocket", PlainWire),
        "legacy-session": partial(_upstream, "legacy-session", SessionWire),
        "rest": _rest,
        "http-json": partial(_client_server, "http-json"),
        "rest-registry": partial(_client_server, "rest-registry"),
    }
)
"""Shipped stubs by the names that profiles of foreign domains may use."""

_LINK_MACHINES: Final = (P2P_CONNECTION, LINK_DIALLING, HANDLER_CONTROLLER, P2P_ENTRY)


def deployable_here(levels: Iterable[Level] = Level) -> Here:
    """Return the stubs and machines that a runtime of this version can deploy.

    Args:
        levels: Permitted ways to reach foreign domains.
    """
    return Here(
        stubs=frozenset(SHIPPED),
        link_stubs=frozenset(LINK_STUBS),
        machines=frozenset(fingerprints(MACHINES.values())),
        link_machines=frozenset(fingerprints(_LINK_MACHINES)),
        levels=frozenset(levels),
    )


CodeStubs: TypeAlias = Callable[[bytes, str, tuple[str, ...]], StubFactory]
"""Makes a stub factory of a package: its bytes, entry point, and permitted endpoints."""


_WITH_TLS_ONLY: Final = partial(check_plain, insecure=False)


@attrs.frozen
class StubMakers:
    """Factories of the stubs that descriptors describe, and the checks of what they may do.

    Attributes:
        shipped: Factories of shipped stubs, by the names in profiles.
        code: Makes stubs of fetched code, in a sandbox; None: fetched code is refused.
        check: Refuses endpoints on other machines without TLS, by a `PlainUrlError`.
        hyperties: Capabilities of the runtime for hyperties (`specs.capability`).
        protocols: Capabilities of the runtime for stubs.
    """

    shipped: Mapping[str, StubFactory]
    code: CodeStubs | None = None
    check: Callable[[Iterable[str]], None] = _WITH_TLS_ONLY
    hyperties: JsonObject = attrs.field(factory=dict)
    protocols: JsonObject = attrs.field(factory=dict)


@attrs.frozen
class Evidence:
    """The trace, counters and keys in which a catalogue records what it has fetched.

    Attributes:
        tracer: Takes the trace records.
        counters: Counts the results.
        identity: Keeps the public keys of domains.
    """

    tracer: Tracer
    counters: Counters
    identity: OwnIdentity


_log = get_logger("actors.runtime")


class FetchingCatalogue(catalogue.Catalogue):
    """Finds descriptors: those in the configuration, and all others in the catalogues of domains.

    Args:
        own: The configured and shipped descriptors.
        access: Catalogues and trusted signers.
        makers: The makers of stubs.
        evidence: Records of the fetches.
    """

    def __init__(
        self,
        own: catalogue.Catalogue,
        access: CatalogueAccess,
        makers: StubMakers,
        evidence: Evidence,
    ) -> None:
        here = attrs.evolve(
            deployable_here({Level.PROFILE} if makers.code is None else Level),
            stubs=frozenset(makers.shipped),
            hyperties=makers.hyperties,
            protocols=makers.protocols,
        )
        self._own = own
        self._client = CatalogueClient(
            access.places, access.trust, here, access.store, access.clock_offset
        )
        self._makers = makers
        self._evidence = evidence

    @override
    async def find(self, address: str) -> catalogue.Descriptor:
        """Return a descriptor that may be acted upon.

        For stubs of direct links, shipped descriptors serve domains whose catalogue has none of
        the name. Nodes in the configuration need no descriptor of a catalogue (CAT-10).

        Raises:
            NotInCatalogueError: The address is no catalogue address.
            RefusedDescriptorError: The descriptor is not trusted, or cannot be used.
            CatalogueFileError: The record of accepted descriptors cannot be written.
        """
        try:
            entry, _ = read_entry(address)
        except BadUrlError as exc:
            raise catalogue.NotInCatalogueError(address) from exc
        shipped: catalogue.Descriptor | None = None
        with suppress(catalogue.NotInCatalogueError):
            shipped = await self._own.find(entry.address)
        if shipped is not None and shipped.kind is catalogue.StubKind.NODE:
            return shipped
        return await self._fetch(entry, shipped)

    @override
    async def runtime(self, address: str) -> RuntimeDescriptor | None:
        try:
            entry, _ = read_entry(address)
        except BadUrlError:
            return await super().runtime(address)
        try:
            own = await self._client.find_runtime(entry)
        except RefusedDescriptorError as exc:
            self._report_refused(entry, exc)
        except CatalogueFileError as exc:
            _log.warning("runtime descriptor refused", entry=address, why=str(exc))
        else:
            self._client.narrow(own)
            return own
        return None

    @override
    async def hyperty(self, address: str) -> catalogue.HypertyFound:
        entry, _ = read_entry(address)
        try:
            fetched = await self._client.find_hyperty(entry)
            schemes = [await self._scheme(each) for each in fetched.descriptor.data_objects]
        except RefusedDescriptorError as exc:
            self._report_refused(entry, exc)
            raise
        self._report_trusted(entry, fetched)
        package, named = fetched.package or b"", tuple(filter(None, schemes))
        return catalogue.HypertyFound(fetched.descriptor, package, named)

    async def _scheme(self, data_object: str) -> str | None:
        """Return the URL scheme of a data object type, from a descriptor or the schema in it."""
        entry = _schema_entry(data_object)
        if entry is None:
            return data_object
        return (await self._client.find_schema(entry)).scheme

    @override
    async def data_schema(self, address: str) -> JsonObject | None:
        entry = _schema_entry(address)
        if entry is None:
            return None
        try:
            return (await self._client.find_schema(entry)).schema
        except RefusedDescriptorError as exc:
            if exc.refused.reason in _NO_SCHEMA:
                return None
            self._report_refused(entry, exc)
            is_away = exc.refused.reason is Reason.AWAY
            code = Code.BACKEND_TIMEOUT if is_away else Code.BAD_BACKEND
            raise catalogue.SchemaRefusedError(code, str(exc)) from exc

    async def _fetch(
        self, entry: Entry, shipped: catalogue.Descriptor | None
    ) -> catalogue.Descriptor:
        try:
            fetched = await self._client.find(entry)
            made = self._make_stub(entry, fetched)
        except RefusedDescriptorError as exc:
            if shipped is not None and exc.refused.reason in _USE_SHIPPED:
                return shipped
            self._report_refused(entry, exc)
            raise
        self._report_trusted(entry, fetched)
        self._keep_keys(entry.domain, fetched)
        return attrs.evolve(made, takes_identity=fetched.descriptor.takes_identity)

    def _keep_keys(self, domain: str, fetched: Found[StubDescriptor]) -> None:
        """Keep the keys with which the domain signs statements about its runtimes."""
        if fetched.descriptor.domain_keys is None:
            return
        try:
            keys = read_keys(orjson.dumps(fetched.descriptor.domain_keys))
        except BadKeysError as exc:
            _log.warning("domain keys refused", domain=domain, why=exc.reason)
        else:
            self._evidence.identity.learn(domain, keys, is_signed=True)

    def _make_stub(self, entry: Entry, fetched: Found[StubDescriptor]) -> catalogue.Descriptor:
        profile, package = fetched.descriptor.profile, fetched.descriptor.source_package
        options = dict(fetched.descriptor.configuration or {})
        if fetched.package is not None and package is not None:
            if self._makers.code is None:
                raise RefusedDescriptorError(entry.described, _NO_SANDBOX)
            places = fetched.descriptor.endpoints
            self._check(entry, places)
            make = self._makers.code(fetched.package, package.entry_point, places)
            return _descriptor(entry, _restrict_dialling(make, fetched.reach), None, options)
        if profile is None:
            raise RefusedDescriptorError(entry.described, _NO_PROFILE)
        options = {**profile.options, **options}
        if profile.stub in LINK_STUBS:
            make = self._link_stub(entry, profile.stub, options)
            return catalogue.Descriptor(entry.address, LINK_STUBS[profile.stub], make)
        self._check(entry, () if profile.endpoint is None else (profile.endpoint,))
        make = _restrict_dialling(self._makers.shipped[profile.stub], fetched.reach)
        return _descriptor(entry, make, profile.endpoint, options)

    def _link_stub(self, entry: Entry, name: str, options: JsonObject) -> StubFactory:
        try:
            return link_stub(name, options)
        except StubOptionError as exc:
            refused = Refused(Reason.MALFORMED, str(exc), "ask the domain to correct its profile")
            raise RefusedDescriptorError(entry.described, refused) from exc

    def _check(self, entry: Entry, endpoints: tuple[str, ...]) -> None:
        try:
            self._makers.check(endpoints)
        except PlainUrlError as exc:
            why = f"its endpoint {exc.url[:80]!r} is on another machine and without TLS"
            refused = Refused(Reason.WITHOUT_TLS, why, _WITH_TLS)
            raise RefusedDescriptorError(entry.described, refused) from exc

    def _report_refused(self, entry: Entry, error: RefusedDescriptorError) -> None:
        reason, why = str(error.refused.reason), str(error)
        _log.warning(f"{_log_name(entry)} refused", entry=entry.address, reason=reason, why=why)
        self._evidence.counters.count(Tally.DESCRIPTORS, error.refused.reason)
        fact = Fact(k=FactKind.DESCRIPTOR, op=Op.REFUSED, to=entry.address, reason=reason, why=why)
        self._evidence.tracer.record("catalogue", fact)

    def _report_trusted(
        self, entry: Entry, fetched: Found[StubDescriptor] | Found[HypertyDescriptor]
    ) -> None:
        counter, level = fetched.descriptor.counter, fetched.level
        _log.info(
            f"{_log_name(entry)} trusted", entry=entry.address, counter=counter, level=level.value
        )
        self._evidence.counters.count(Tally.DESCRIPTORS, Outcome.OK)
        fact = Fact(
            k=FactKind.DESCRIPTOR, op=Op.ADMIT, to=entry.address, version=counter,
            digest=fetched.digest, result=level.name.lower(),
        )  # fmt: skip
        self._evidence.tracer.record("catalogue", fact)


_NO_SCHEMA: Final = frozenset({Reason.UNKNOWN_DOMAIN, Reason.NOT_THERE})
"""Refusals after which no schema is known, so that reporters may write any values."""

_USE_SHIPPED: Final = frozenset({Reason.UNKNOWN_DOMAIN, Reason.NOT_THERE, Reason.AWAY})
"""Refusals after which a stub of direct links is the shipped one."""

_NO_SANDBOX: Final = Refused(
    Reason.NO_SANDBOX,
    "its code would need a sandbox, and this runtime has none",
    "ask the domain for a profile of a shipped stub",
)
_WITH_TLS: Final = "ask the domain for one with wss:, or set insecure (--insecure) to permit it"
_NO_PROFILE: Final = Refused(
    Reason.NOTHING_TO_DEPLOY, "it has neither a profile nor a package", "ask the domain for one"
)


def _log_name(entry: Entry) -> str:
    """Return how log lines name a descriptor, by its kind."""
    return "hyperty" if entry.type is CatalogueType.HYPERTY else "stub"


def _schema_entry(address: str) -> Entry | None:
    """Return the catalogue entry of a data schema; None: the address names none."""
    try:
        entry, _ = read_entry(address)
    except BadUrlError:
        return None
    return entry if entry.type is CatalogueType.SCHEMA else None


def _descriptor(
    entry: Entry, make: StubFactory, node_url: str | None, options: JsonObject
) -> catalogue.Descriptor:
    return catalogue.Descriptor(entry.address, catalogue.StubKind.NODE, make, node_url, options)


def _restrict_dialling(make: StubFactory, reach: Reach) -> StubFactory:
    """Return a factory of stubs that dial only permitted addresses and have no credentials.

    The credentials of the runtime are valid at its own domain's node: another domain that got
    them could log in there.
    """

    def activate(context: StubContext) -> Actor[Delivery]:
        config = attrs.evolve(context.config, credentials=NO_CREDENTIALS)
        network = context.network
        if reach is Reach.PUBLIC:
            network = GuardedNetwork(network, dial_public)
        return make(attrs.evolve(context, config=config, network=network))

    return activate


# The capabilities of a runtime, by which constraints of descriptors are judged (CAT-04, STB-12).
# Code of a catalogue runs in a sandbox process; profiles name stubs that ship with the runtime.

_DIALLED: Final = (Kind.WEBSOCKET, Kind.TCP, Kind.STREAM)


def hyperty_capabilities(config: RuntimeConfig) -> JsonObject:
    """Return the capabilities of a runtime for hyperties of catalogues.

    Args:
        config: Configuration of the runtime.
    """
    return {
        **_common(config),
        "network": False,
        "dataObjects": True,
        "storedObjects": config.store is not None,
    }


def protocol_capabilities(config: RuntimeConfig) -> JsonObject:
    """Return the capabilities of a runtime for stubs of catalogues.

    Args:
        config: Configuration of the runtime.
    """
    return {
        **_common(config),
        "network": True,
        "transports": [str(kind) for kind in _DIALLED],
        "stubs": [*SHIPPED, *LINK_STUBS],
    }


def _common(config: RuntimeConfig) -> JsonObject:
    return {
        "python": ".".join(map(str, sys.version_info[:3])),
        "memory": SANDBOX_MEMORY // MIB,
        "sandbox": True,
        "files": False,
        "distributions": list(importable()),
        "directLinks": [str(kind) for kind in config.kinds],
    }
