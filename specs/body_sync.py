"""Bodies of data objects and of P2P links, which are data objects too (M-32..M-47).

The conventions are those of `specs.body`.
"""

import attrs

from specs.field import (
    address,
    addresses,
    in_range,
    one_of,
    optional_address,
    short,
    wire,
)
from specs.jsonvalue import Json, JsonObject
from specs.limits import MAX_ID
from specs.word import CandidateKind, DescriptionType, Operation


@attrs.frozen(slots=True)
class ConnectionDescription:
    """What one end of a P2P link offers or answers (P2P-07).

    Attributes:
        type: `offer` or `answer`.
        sdp: Session description; only for WebRTC.
    """

    type: str = attrs.field(default="", validator=one_of(DescriptionType))
    sdp: str | None = None


@attrs.frozen(slots=True)
class Candidate:
    """One way to reach an end of a P2P link.

    Attributes:
        kind: websocket, tcp or unix.
        address: URL, `host:port` or socket path, by kind.
        secret: Proves the right to connect; single use, hex.
        host: Fingerprint of the machine; a unix candidate is only dialled on it.
    """

    kind: str = attrs.field(validator=one_of(CandidateKind))
    address: str
    secret: str
    host: str | None = None


@attrs.frozen(slots=True)
class ConnectionData:
    """The value of a Connection data object (P2P-07, C-25).

    Attributes:
        owner: The stub that reports it.
        status: `unreachable-<n>`: none of the peer's candidates opened, for the
            n-th time; the peer may dial.
    """

    owner: str = attrs.field(converter=address)
    status: str = ""
    connection_description: ConnectionDescription | None = attrs.field(
        default=None, metadata=wire("connectionDescription")
    )
    ice_candidates: tuple[Candidate, ...] = attrs.field(
        default=(), validator=short, metadata=wire("iceCandidates")
    )


@attrs.frozen(slots=True)
class DataObject:
    """A data object as it travels: metadata and data (M-32, M-38 answers).

    Attributes:
        url: Its address; absent before it has one.
        version: Rises by one with each change (SYN-16).
        data: The value, as its schema says.
    """

    reporter: str = attrs.field(converter=address)
    runtime: str = attrs.field(converter=address)
    data: JsonObject = attrs.field(factory=dict)
    url: str | None = attrs.field(default=None, converter=optional_address)
    version: int = attrs.field(default=1, validator=in_range(1, MAX_ID))
    name: str | None = None
    schema: str | None = None
    resources: tuple[str, ...] = attrs.field(default=(), validator=short)


@attrs.frozen(slots=True)
class CreateObject:
    """Ask the sync manager to create an object (M-32)."""

    value: DataObject
    schema: str
    p2p: bool | None = None
    store: bool | None = None


@attrs.frozen(slots=True)
class InviteObservers:
    """Ask the sync manager to invite an observer (M-33, one per message)."""

    resource: str = attrs.field(converter=address)
    schema: str
    authorise: tuple[str, ...] = attrs.field(converter=addresses, validator=short)
    value: JsonObject = attrs.field(factory=dict)


@attrs.frozen(slots=True)
class Invitation:
    """Invite an observer (M-34).

    Attributes:
        source: The reporter.
        value: Metadata of the object: at least `runtime` and `reporter`.
    """

    source: str = attrs.field(converter=address)
    schema: str
    value: JsonObject = attrs.field(factory=dict)


@attrs.frozen(slots=True)
class Observe:
    """Ask the own sync manager to observe an object (M-36)."""

    resource: str = attrs.field(converter=address)
    schema: str | None = None
    p2p: bool | None = None


@attrs.frozen(slots=True)
class Subscription:
    """Subscribe or unsubscribe an observer at the reporter (M-38, M-43)."""

    source: str = attrs.field(converter=address)
    children_resources: tuple[str, ...] | None = attrs.field(
        default=None, validator=short, metadata=wire("childrenResources")
    )


@attrs.frozen(slots=True)
class Change:
    """One change of a data object (M-40) or of a registry's list (M-09).

    Attributes:
        attribute: Dotted path; absent for a registry's list.
        value: New value; absent removes the attribute.
        operation: `add` or `remove` for arrays.
    """

    version: int | None = attrs.field(
        default=None, validator=attrs.validators.optional(in_range(1, MAX_ID))
    )
    attribute: str | None = None
    value: Json = None
    attribute_type: str | None = attrs.field(default=None, metadata=wire("attributeType"))
    operation: str | None = attrs.field(
        default=None, validator=attrs.validators.optional(one_of(Operation))
    )
    last_modified: str | None = attrs.field(default=None, metadata=wire("lastModified"))
    source: str | None = attrs.field(default=None, converter=optional_address)


@attrs.frozen(slots=True)
class ChangeObject:
    """Ask the own sync manager to change an object one reports; it publishes M-40.

    Attributes:
        attribute: Dotted path.
        value: New value; absent removes the attribute.
        operation: `add` or `remove` for arrays.
    """

    resource: str = attrs.field(converter=address)
    attribute: str
    value: Json = None
    attribute_type: str | None = attrs.field(default=None, metadata=wire("attributeType"))
    operation: str | None = attrs.field(
        default=None, validator=attrs.validators.optional(one_of(Operation))
    )


@attrs.frozen(slots=True)
class LinkRow:
    """What a runtime's registry knows of its link to another runtime (P2P-18).

    Attributes:
        role: `requester` or `handler`: which end this runtime is.
        status: State of the connection, in the machine's words.
        link: Address of this runtime's end.
    """

    role: str
    status: str
    link: str | None = None


@attrs.frozen(slots=True)
class ObjectName:
    """Name one object or address: delete, unsubscribe (M-42, M-46)."""

    resource: str = attrs.field(converter=address)
