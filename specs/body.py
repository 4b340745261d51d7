"""One frozen class per message body (M-nn of the catalogue).

Terminal actors read bodies into these and write them from these; routers never
do. A field's name on the wire is its `wire` metadata, or its own name. A field
that is `None` is left out on the wire. A body that breaks a limit or holds
something else where an address is due cannot be made: `BadMessageError`.
Bodies of data objects and P2P links are in `specs.body_sync`.
"""

import attrs

from specs.field import (
    address,
    addresses,
    in_range,
    one_of,
    optional_address,
    optional_addresses,
    short,
    wire,
)
from specs.jsonvalue import Json, JsonObject
from specs.limits import MAX_ALLOCATION, REGISTRATION_EXPIRES
from specs.word import RecordStatus, SessionMethod, StatusValue


@attrs.frozen(slots=True)
class Path:
    """Set or remove routing paths (M-01..M-05, M-08, M-10, M-35, M-37).

    Attributes:
        resources: Addresses to be delivered.
        source: The true subscriber; absent means the sender.
    """

    resources: tuple[str, ...] = attrs.field(converter=addresses, validator=short)
    source: str | None = attrs.field(default=None, converter=optional_address)


@attrs.frozen(slots=True)
class Status:
    """A status event of a stub or of a P2P link (M-06, M-07, M-13).

    Attributes:
        value: State entered, in the machine's words.
        resource: Remote runtime; present exactly for P2P links (I-S11).
        link: Name of the link the event is about; present for P2P links.
        description: Half a sentence for people.
    """

    value: str = attrs.field(validator=one_of(StatusValue))
    resource: str | None = attrs.field(default=None, converter=optional_address)
    description: str | None = None
    link: str | None = None


@attrs.frozen(slots=True)
class SessionParams:
    """Arguments of session control.

    Attributes:
        runtime_url: The runtime whose session it is (MN-21).
        token: Session token; mandatory for re-open.
    """

    runtime_url: str | None = attrs.field(
        default=None, converter=optional_address, metadata=wire("runtimeURL")
    )
    token: str | None = None


@attrs.frozen(slots=True)
class SessionControl:
    """Open, re-open, close or ping a session (M-14..M-17)."""

    method: str = attrs.field(validator=one_of(SessionMethod))
    params: SessionParams = SessionParams()


@attrs.frozen(slots=True)
class SessionGranted:
    """What a node answers to an open or re-open: the token that resumes it."""

    session_token: str = attrs.field(metadata=wire("sessionToken"))


@attrs.frozen(slots=True)
class AllocationWish:
    """How many addresses (C-45), and under which key they are freed together."""

    number: int = attrs.field(validator=in_range(1, MAX_ALLOCATION))
    allocation_key: str | None = attrs.field(default=None, metadata=wire("allocationKey"))


@attrs.frozen(slots=True)
class Allocate:
    """Ask for addresses of a scheme (M-18)."""

    scheme: str
    value: AllocationWish


@attrs.frozen(slots=True)
class Allocated:
    """The addresses a node allocated."""

    allocated: tuple[str, ...] = attrs.field(converter=addresses, validator=short)


@attrs.frozen(slots=True)
class Free:
    """Give addresses back, by block key or by list (M-19, M-20)."""

    resource: str | None = None
    children_resources: tuple[str, ...] | None = attrs.field(
        default=None,
        converter=optional_addresses,
        validator=short,
        metadata=wire("childrenResources"),
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

    url: str = attrs.field(converter=address)
    runtime: str = attrs.field(converter=address)
    status: str = attrs.field(default="live", validator=one_of(RecordStatus))
    expires: float = attrs.field(
        default=REGISTRATION_EXPIRES, validator=in_range(1.0, REGISTRATION_EXPIRES)
    )
    descriptor: str | None = None
    user: str | None = None
    guid: str | None = None
    reporter: str | None = None
    schema: str | None = None
    name: str | None = None
    resources: tuple[str, ...] = attrs.field(default=(), validator=short)
    data_schemes: tuple[str, ...] = attrs.field(
        default=(), validator=short, metadata=wire("dataSchemes")
    )
    starting_time: str | None = attrs.field(default=None, metadata=wire("startingTime"))
    last_modified: str | None = attrs.field(default=None, metadata=wire("lastModified"))
    p2p_handler: str | None = attrs.field(
        default=None, converter=optional_address, metadata=wire("p2pHandler")
    )
    p2p_requester: str | None = attrs.field(
        default=None, converter=optional_address, metadata=wire("p2pRequester")
    )


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
    params: tuple[str, ...] = attrs.field(default=(), validator=short)
