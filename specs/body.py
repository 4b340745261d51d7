"""One frozen class per message body (M-nn of the catalogue).

Terminal actors read bodies into these and write them from these; routers never
do. A field's name on the wire is its `wire` metadata, or its own name. A field
that is `None` is left out on the wire.
"""

from typing import Final

import attrs

from specs.errors import BadMessageError
from specs.jsonvalue import Json, JsonObject
from specs.limits import MAX_ALLOCATION, MAX_LIST, REGISTRATION_EXPIRES

WIRE: Final = "wire"
"""Metadata key under which a field keeps its name on the wire."""


def _wire(name: str) -> dict[str, str]:
    return {WIRE: name}


def _short(_: object, field: "attrs.Attribute[tuple[str, ...]]", value: tuple[str, ...]) -> None:
    if len(value) > MAX_LIST:
        raise BadMessageError(f"{field.name} lists more than {MAX_LIST} addresses")


@attrs.frozen(slots=True)
class Path:
    """Set or remove routing paths (M-01..M-05, M-08, M-10, M-35, M-37).

    Attributes:
        resources: Addresses to be delivered.
        source: The true subscriber; absent means the sender.
    """

    resources: tuple[str, ...] = attrs.field(validator=_short)
    source: str | None = None


@attrs.frozen(slots=True)
class Status:
    """A status event of a stub or of a P2P link (M-06, M-07, M-13).

    Attributes:
        value: State entered, in the machine's words.
        resource: Remote runtime; present exactly for P2P links (I-S11).
        link: Name of the link the event is about; present for P2P links.
        description: Half a sentence for people.
    """

    value: str
    resource: str | None = None
    description: str | None = None
    link: str | None = None


@attrs.frozen(slots=True)
class SessionParams:
    """Arguments of session control.

    Attributes:
        runtime_url: The runtime whose session it is (MN-21).
        token: Session token; mandatory for re-open.
    """

    runtime_url: str | None = attrs.field(default=None, metadata=_wire("runtimeURL"))
    token: str | None = None


@attrs.frozen(slots=True)
class SessionControl:
    """Open, re-open, close or ping a session (M-14..M-17)."""

    method: str
    params: SessionParams = SessionParams()


@attrs.frozen(slots=True)
class SessionGranted:
    """What a node answers to an open or re-open: the token that resumes it."""

    session_token: str = attrs.field(metadata=_wire("sessionToken"))


@attrs.frozen(slots=True)
class AllocationWish:
    """How many addresses, and under which key they are freed together."""

    number: int
    allocation_key: str | None = attrs.field(default=None, metadata=_wire("allocationKey"))


@attrs.frozen(slots=True)
class Allocate:
    """Ask for addresses of a scheme (M-18).

    Raises:
        BadMessageError: The number is outside 1..MAX_ALLOCATION (C-45).
    """

    scheme: str
    value: AllocationWish

    def __attrs_post_init__(self) -> None:
        if not 1 <= self.value.number <= MAX_ALLOCATION:
            raise BadMessageError(f"number must be >= 1 and <= {MAX_ALLOCATION}")


@attrs.frozen(slots=True)
class Allocated:
    """The addresses a node allocated."""

    allocated: tuple[str, ...]


@attrs.frozen(slots=True)
class Free:
    """Give addresses back, by block key or by list (M-19, M-20)."""

    resource: str | None = None
    children_resources: tuple[str, ...] | None = attrs.field(
        default=None, metadata=_wire("childrenResources")
    )


@attrs.frozen(slots=True)
class Record:
    """A registration record of a hyperty or data object (REG-07, REG-10).

    Attributes:
        url: The address registered.
        runtime: The runtime that owns it.
        status: created, live, disconnected or dead.
        expires: Seconds without keep-alive until it is disconnected.
        p2p_handler: The runtime's handler stub, if it takes P2P links.
        p2p_requester: Catalogue address of the stub that reaches it.
    """

    url: str
    runtime: str
    status: str = "live"
    expires: float = REGISTRATION_EXPIRES
    descriptor: str | None = None
    user: str | None = None
    guid: str | None = None
    reporter: str | None = None
    schema: str | None = None
    name: str | None = None
    resources: tuple[str, ...] = ()
    data_schemes: tuple[str, ...] = attrs.field(default=(), metadata=_wire("dataSchemes"))
    starting_time: str | None = attrs.field(default=None, metadata=_wire("startingTime"))
    last_modified: str | None = attrs.field(default=None, metadata=_wire("lastModified"))
    p2p_handler: str | None = attrs.field(default=None, metadata=_wire("p2pHandler"))
    p2p_requester: str | None = attrs.field(default=None, metadata=_wire("p2pRequester"))


@attrs.frozen(slots=True)
class Register:
    """Register a record (M-21)."""

    value: Record


@attrs.frozen(slots=True)
class UpdateRecord:
    """Change a record (M-22), set one attribute (M-23) or keep it alive (M-24).

    Attributes:
        value: Fields to set, or the value of `attribute`; absent keeps alive.
    """

    resource: str
    value: Json = None
    attribute: str | None = None


@attrs.frozen(slots=True)
class ReadRecord:
    """Read a record by address, or search (M-25..M-28)."""

    resource: str
    criteria: JsonObject | None = None


@attrs.frozen(slots=True)
class Command:
    """Call a method of a component or stub (M-11, M-12)."""

    method: str
    params: tuple[str, ...] = ()


@attrs.frozen(slots=True)
class ConnectionDescription:
    """What one end of a P2P link offers or answers (P2P-07).

    Attributes:
        type: `offer` or `answer`.
        sdp: Session description; only for WebRTC.
    """

    type: str
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

    kind: str
    address: str
    secret: str
    host: str | None = None


@attrs.frozen(slots=True)
class ConnectionData:
    """The value of a Connection data object (P2P-07, C-25)."""

    owner: str
    status: str = ""
    connection_description: ConnectionDescription | None = attrs.field(
        default=None, metadata=_wire("connectionDescription")
    )
    ice_candidates: tuple[Candidate, ...] = attrs.field(default=(), metadata=_wire("iceCandidates"))


@attrs.frozen(slots=True)
class DataObject:
    """A data object as it travels: metadata and data (M-32, M-38 answers).

    Attributes:
        url: Its address; absent before it has one.
        version: Rises by one with each change (SYN-16).
        data: The value, as its schema says.
    """

    reporter: str
    runtime: str
    data: JsonObject = attrs.field(factory=dict)
    url: str | None = None
    version: int = 1
    name: str | None = None
    schema: str | None = None
    resources: tuple[str, ...] = ()


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

    resource: str
    schema: str
    authorise: tuple[str, ...]
    value: JsonObject = attrs.field(factory=dict)


@attrs.frozen(slots=True)
class Invitation:
    """Invite an observer (M-34).

    Attributes:
        source: The reporter.
        value: Metadata of the object: at least `runtime` and `reporter`.
    """

    source: str
    schema: str
    value: JsonObject = attrs.field(factory=dict)


@attrs.frozen(slots=True)
class Observe:
    """Ask the own sync manager to observe an object (M-36)."""

    resource: str
    schema: str | None = None
    p2p: bool | None = None


@attrs.frozen(slots=True)
class Subscription:
    """Subscribe or unsubscribe an observer at the reporter (M-38, M-43)."""

    source: str
    children_resources: tuple[str, ...] | None = attrs.field(
        default=None, metadata=_wire("childrenResources")
    )


@attrs.frozen(slots=True)
class Change:
    """One change of a data object (M-40) or of a registry's list (M-09).

    Attributes:
        attribute: Dotted path; absent for a registry's list.
        value: New value; absent removes the attribute.
        operation: `add` or `remove` for arrays.
    """

    version: int | None = None
    attribute: str | None = None
    value: Json = None
    attribute_type: str | None = attrs.field(default=None, metadata=_wire("attributeType"))
    operation: str | None = None
    last_modified: str | None = attrs.field(default=None, metadata=_wire("lastModified"))
    source: str | None = None


@attrs.frozen(slots=True)
class ObjectName:
    """Name one object or address: delete, unsubscribe (M-42, M-46)."""

    resource: str
