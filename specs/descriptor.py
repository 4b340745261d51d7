"""Classes of the descriptors that a domain's catalogue serves (CAT-01..07), and of revocations.

A descriptor describes a hyperty, a stub, a runtime or a data schema. The fields of the protocol
have the protocol's names. This project adds the fields that make a descriptor trustworthy:
`counter` and `expires`, of stubs `machine`, `endpoints` and `profile`, of packages hash, size and
publisher. Unknown keys are ignored, and stay part of the signed text.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Final, TypeAlias

import attrs

from specs.addresses.address import CatalogueType
from specs.jsonvalue import Json, JsonObject
from specs.limits.foreign_code import PACKAGE_BYTES, REVOCATIONS
from specs.limits.protocol import MAX_ID
from specs.schema.field import Address, Filled, Names, OneOf, add_checks, obeys, wire
from specs.schema.shape import END, Size, Text, Whole

LANGUAGE: Final = "python"
"""The programming language of code that this implementation can run (CAT-01)."""

Digest: TypeAlias = Annotated[
    str, Text(pattern=f"^[0-9a-f]{{64}}{END}", meaning="a hash of 64 hexadecimal digits")
]
_Counter: TypeAlias = Annotated[int, Whole(1, MAX_ID)]
_Seconds: TypeAlias = Annotated[int, Whole(0, MAX_ID)]


@attrs.frozen(slots=True, kw_only=True, field_transformer=add_checks)
class SourcePackage:
    """A package of code (CAT-07): a zip archive next to the descriptor.

    Attributes:
        encoding: The format of the package.
        entry_point: The function that is called in it, as `module:function`.
        sha256: Hash of its bytes.
        size: Number of its bytes.
        publisher: The publisher of the code.
        signature: The publisher's signature over hash, size and entry point.
    """

    encoding: str = "zip"
    entry_point: Filled = attrs.field(metadata=wire("sourceCodeClassname"))
    sha256: Digest
    size: Annotated[int, Whole(1, PACKAGE_BYTES)]
    publisher: Filled
    signature: Filled


@attrs.frozen(slots=True, kw_only=True, field_transformer=add_checks)
class StubProfile:
    """A protocol that a shipped stub speaks.

    Attributes:
        stub: Name of the stub.
        endpoint: The endpoint it dials; stubs of direct links dial their peers' candidates and have
            none.
        options: Its further configuration.
    """

    stub: Filled
    endpoint: Filled | None = None
    options: JsonObject = attrs.field(factory=dict)


@attrs.frozen(slots=True, kw_only=True, field_transformer=add_checks)
class Described:
    """The common fields of all descriptors (CAT-01).

    Attributes:
        cguid: The catalogue address of the descriptor, which is valid nowhere else.
        version: Its version, for people.
        object_name: Its name, unique for its type.
        language: The language of its code, if it has any.
        counter: A number greater than those of all earlier descriptors at the address.
        expires: Seconds since the epoch, from which on it is invalid.
    """

    cguid: Address
    type: Annotated[str, CatalogueType]
    version: Filled
    object_name: Filled = attrs.field(metadata=wire("objectName"))
    description: str = ""
    language: str = LANGUAGE
    source_package_url: str | None = attrs.field(default=None, metadata=wire("sourcePackageURL"))
    source_package: SourcePackage | None = attrs.field(default=None, metadata=wire("sourcePackage"))
    access_control_policy: str | None = attrs.field(
        default=None, metadata=wire("accessControlPolicy")
    )
    counter: _Counter
    expires: _Seconds


@attrs.frozen(slots=True, kw_only=True, field_transformer=add_checks)
class HypertyDescriptor(Described):
    """A hyperty that can be deployed (CAT-02)."""

    hyperty_type: Names = attrs.field(default=(), metadata=wire("hypertyType"))
    data_objects: Names = attrs.field(default=(), metadata=wire("dataObjects"))
    message_schema: Json = attrs.field(default=None, metadata=wire("messageSchema"))
    configuration: JsonObject | None = None
    constraints: Json = None
    policies: Json = None


@attrs.frozen(slots=True, kw_only=True, field_transformer=add_checks)
class StubDescriptor(Described):
    """A stub that leads to a domain (CAT-03).

    Attributes:
        configuration: The configuration of the stub; a profile's options take precedence.
        machine: Hash of the machine that it claims to follow.
        endpoints: The only endpoints it may dial.
        profile: The shipped stub to use; absent if the descriptor has code.
        domain_keys: The public keys for the domain's statements about its runtimes, as a JSON Web
            Key Set.
    """

    message_schema: Json = attrs.field(default=None, metadata=wire("messageSchema"))
    configuration: JsonObject | None = None
    constraints: Json = None
    hyperty_type: Names = attrs.field(default=(), metadata=wire("hypertyType"))
    data_objects: Names = attrs.field(default=(), metadata=wire("dataObjects"))
    interworking: bool = False
    idp_proxy: bool = attrs.field(default=False, metadata=wire("idpProxy"))
    mutual_authentication: bool = attrs.field(default=False, metadata=wire("mutualAuthentication"))
    machine: str | None = None
    endpoints: Names = ()
    profile: StubProfile | None = None
    domain_keys: JsonObject | None = attrs.field(default=None, metadata=wire("domainKeys"))

    @property
    def takes_identity(self) -> bool:
        """Whether the stub gets tokens and identities of the runtime (REG-15).

        A stub that translates to a foreign protocol gets them only if it declares that it takes
        part in mutual authentication.
        """
        return self.mutual_authentication or not self.interworking


@attrs.frozen(slots=True, kw_only=True, field_transformer=add_checks)
class IdpProxyDescriptor(StubDescriptor):
    """A stub that leads to an identity provider (CAT-06)."""


@attrs.frozen(slots=True, kw_only=True, field_transformer=add_checks)
class RuntimeDescriptor(Described):
    """A runtime, and the stubs by which others reach the runtime (CAT-04).

    Attributes:
        p2p_handler_stub: Catalogue address of the handler stub; empty: none.
        p2p_requester_stub: Catalogue address of the requester stub; empty: none.
    """

    runtime_type: str = attrs.field(default="", metadata=wire("runtimeType"))
    hyperty_capabilities: JsonObject = attrs.field(
        factory=dict, metadata=wire("hypertyCapabilities")
    )
    protocol_capabilities: JsonObject = attrs.field(
        factory=dict, metadata=wire("protocolCapabilities")
    )
    p2p_handler_stub: str | None = attrs.field(default=None, metadata=wire("p2pHandlerStub"))
    p2p_requester_stub: str | None = attrs.field(default=None, metadata=wire("p2pRequesterStub"))

    @property
    def p2p(self) -> tuple[str | None, str | None]:
        """The addresses of handler and requester stub; None: there is none (U-38)."""
        return self.p2p_handler_stub or None, self.p2p_requester_stub or None


@attrs.frozen(slots=True, kw_only=True, field_transformer=add_checks)
class SchemaDescriptor(Described):
    """The schema of messages or of data objects (CAT-05).

    Attributes:
        schema: A JSON Schema.
        scheme: Scheme of the addresses of such objects; absent for messages.
        children: Names of the lists of children an object may have.
    """

    schema: JsonObject
    scheme: str | None = None
    children: Names = ()


DESCRIPTORS: Final[Mapping[CatalogueType, type[Described]]] = MappingProxyType(
    {
        CatalogueType.HYPERTY: HypertyDescriptor,
        CatalogueType.STUB: StubDescriptor,
        CatalogueType.RUNTIME: RuntimeDescriptor,
        CatalogueType.SCHEMA: SchemaDescriptor,
        CatalogueType.IDP_PROXY: IdpProxyDescriptor,
    }
)
"""The class of descriptors, by the kind in the catalogue address."""


@attrs.frozen(slots=True, kw_only=True, field_transformer=add_checks)
@obeys(OneOf("cguid", "sha256"))
class Revoked:
    """A revocation (T14): descriptors up to a counter, or a package.

    Attributes:
        cguid: Catalogue address of the descriptors.
        counter: Counter of the last revoked descriptor.
        sha256: Hash of the package.
        why: The reason, for people.
    """

    cguid: Address | None = None
    counter: Annotated[int, Whole(0, MAX_ID)] = MAX_ID
    sha256: Digest | None = None
    why: str = ""


@attrs.frozen(slots=True, kw_only=True, field_transformer=add_checks)
class Revocations:
    """A domain's list of revocations.

    Attributes:
        domain: The domain.
        counter: A number greater than those of all earlier lists.
        expires: Seconds since the epoch, from which on a newer list is needed.
    """

    domain: Filled
    counter: _Counter
    expires: _Seconds
    revoked: Annotated[tuple[Revoked, ...], Size(0, REVOCATIONS)] = ()


@attrs.frozen(slots=True, kw_only=True, field_transformer=add_checks)
class ListingEntry:
    """One entry of a listing."""

    type: Annotated[str, CatalogueType]
    name: Filled


@attrs.frozen(slots=True, kw_only=True, field_transformer=add_checks)
class Listing:
    """The list of a catalogue's offers; an unsigned hint."""

    entries: tuple[ListingEntry, ...] = ()


DESCRIPTOR_BODIES: Final[tuple[type[attrs.AttrsInstance], ...]] = (
    *DESCRIPTORS.values(),
    Revocations,
    Listing,
)
"""The classes of everything that a catalogue serves as JSON."""
