"""The stub that belongs to a catalogue address (CAT-03, CAT-10, ADR-09).

This module has the interface and the built-in stubs; `actors.runtime.catalogue`
fetches and verifies descriptors.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from enum import Enum
from typing import final

import attrs
from typing_extensions import override

from actors.runtime.bus.messages import Origin
from actors.runtime.stubs.stub import StubFactory
from specs.addresses.address import catalogue_stub
from specs.descriptor import HypertyDescriptor, RuntimeDescriptor
from specs.errors import ProtoflyError
from specs.jsonvalue import JsonObject
from specs.reply_code import Code


class StubKind(Enum):
    """The purpose of a stub; the value is the stub's name in a catalogue (C-38)."""

    NODE = "node"
    P2P_REQUESTER = "P2PRequester"
    P2P_HANDLER = "P2PHandler"

    @property
    def origin(self) -> Origin:
        """The kind of component as which the Message BUS treats such a stub."""
        return Origin.NODE_STUB if self is StubKind.NODE else Origin.P2P_STUB


@attrs.frozen(slots=True)
class Descriptor:
    """The descriptor that a stub is deployed by.

    Attributes:
        address: Its catalogue address.
        kind: Its purpose.
        activate: Makes it (STB-01).
        node_url: URL that a node stub dials; None: the stub is no node stub, or the deployer says.
        options: Further options of the stub.
        takes_identity: Whether it gets tokens and identities of this runtime (REG-15).
    """

    address: str
    kind: StubKind
    activate: StubFactory
    node_url: str | None = None
    options: JsonObject = attrs.field(factory=dict)
    takes_identity: bool = True


@attrs.frozen
class HypertyFound:
    """A hyperty of a catalogue that may run in a sandbox (CAT-02).

    Attributes:
        descriptor: Its descriptor.
        package: The verified bytes of its code.
        schemes: Schemes of the data objects that it uses.
    """

    descriptor: HypertyDescriptor
    package: bytes = attrs.field(repr=False)
    schemes: tuple[str, ...]


@final
class NotInCatalogueError(ProtoflyError, public=True):
    """A catalogue address has no descriptor, so no stub can be deployed for it.

    Attributes:
        address: The catalogue address.
    """

    def __init__(self, address: str) -> None:
        super().__init__(
            f"no stub is described at {address}; say where its node is, or where its catalogue"
        )
        self.address = address


@final
class WrongKindError(ProtoflyError, public=True):
    """A descriptor is of another kind of stub than is to be deployed.

    Attributes:
        address: The catalogue address.
    """

    def __init__(self, address: str, kind: StubKind, wanted: StubKind) -> None:
        super().__init__(
            f"the stub described at {address} is of kind {kind.value}, not {wanted.value}; "
            f"the record or configuration that names it must name a stub of kind {wanted.value}"
        )
        self.address = address


class SchemaRefusedError(ProtoflyError):
    """A data schema of a catalogue cannot be fetched, or is not trusted.

    Attributes:
        code: Reply code for the requester: 502 not trusted, 504 not reached.
        why: Reason for people, as half a sentence.
    """

    def __init__(self, code: Code, why: str) -> None:
        super().__init__(f"{int(code)} {why}")
        self.code = code
        self.why = why


class Catalogue(ABC):
    """Finds descriptors of stubs and data schemas."""

    @abstractmethod
    async def find(self, address: str) -> Descriptor:
        """Return the descriptor at a catalogue address.

        If cancelled, nothing is deployed; what was fetched and accepted so far may be kept.

        Raises:
            NotInCatalogueError: There is none.
        """

    async def runtime(self, address: str) -> RuntimeDescriptor | None:  # noqa: ARG002 - see below
        """Return the descriptor of this runtime; None: there is none that may be acted upon.

        From then on, constraints are judged by what it says of the runtime, too (CAT-04). The
        default knows none. If cancelled, what was fetched and accepted so far may be kept.

        Args:
            address: Its catalogue address.
        """
        return None

    async def hyperty(self, address: str) -> HypertyFound | None:  # noqa: ARG002 - see below
        """Return a hyperty that may run; None: there is no catalogue to ask.

        The default knows none. If cancelled, what was fetched and accepted so far may be kept.

        Args:
            address: Its catalogue address.

        Raises:
            RefusedDescriptorError: There is one, but it must not run.
            BadUrlError: The address is none of a catalogue.
            CatalogueFileError: What was seen cannot be remembered.
        """
        return None

    async def data_schema(self, address: str) -> JsonObject | None:  # noqa: ARG002 - see below
        """Return the JSON Schema of data objects at a catalogue address; None: there is none.

        The default knows none. If cancelled, what was fetched and accepted so far may be kept.

        Raises:
            SchemaRefusedError: There is one, but it cannot be fetched or is not trusted.
        """
        return None


class BuiltInCatalogue(Catalogue):
    """The stubs that Protofly ships, and the nodes that the configuration names."""

    def __init__(
        self,
        factories: Mapping[StubKind, StubFactory],
        nodes: Mapping[str, str],
        servers: Mapping[str, str] | None = None,
        activate_client: StubFactory | None = None,
    ) -> None:
        """Construct it.

        Args:
            factories: Makers of stubs, by kind; a missing kind is not available.
            nodes: URL of the node of each domain.
            servers: URL of the server of each domain that has no node (PFY-05).
            activate_client: Makes the stub that asks such a server.
        """
        self._factories = factories
        self._nodes = {catalogue_stub(domain): url for domain, url in nodes.items()}
        self._servers = {catalogue_stub(domain): url for domain, url in (servers or {}).items()}
        self._activate_client = activate_client

    @override
    async def find(self, address: str) -> Descriptor:
        if self._activate_client is not None and address in self._servers:
            url = self._servers[address]
            return Descriptor(address, StubKind.NODE, self._activate_client, url)
        kind = self._kind(address)
        if kind is None or kind not in self._factories:
            raise NotInCatalogueError(address)
        return Descriptor(address, kind, self._factories[kind], self._nodes.get(address))

    def _kind(self, address: str) -> StubKind | None:
        if address in self._nodes:
            return StubKind.NODE
        name = address.rpartition("/.well-known/protocolstub/")[2]
        p2p = {StubKind.P2P_REQUESTER.value, StubKind.P2P_HANDLER.value}
        return StubKind(name) if name in p2p else None


def requester_descriptor(domain: str) -> str:
    """Return the catalogue address of the stub that reaches the runtimes of a domain."""
    return _well_known(domain, StubKind.P2P_REQUESTER)


def handler_descriptor(domain: str) -> str:
    """Return the catalogue address of the stub that accepts links for the runtimes of a domain."""
    return _well_known(domain, StubKind.P2P_HANDLER)


def _well_known(domain: str, kind: StubKind) -> str:
    return f"hyperty-catalogue://catalogue.{domain}/.well-known/protocolstub/{kind.value}"
