"""Bodies of requests to allocate addresses, to register, and to search registries (M-18..M-31)."""

from typing import Annotated

import attrs

from specs.bodies.word import RecordAttribute, RecordStatus
from specs.jsonvalue import Json, JsonObject
from specs.limits.protocol import MAX_ALLOCATION, REGISTRATION_EXPIRES, SEARCH_PAGE
from specs.schema.field import (
    Address,
    Addresses,
    Filled,
    Names,
    Needs,
    ObjectUnless,
    OneOf,
    add_checks,
    obeys,
    wire,
)
from specs.schema.shape import Number, Text, Whole


@attrs.frozen(slots=True, field_transformer=add_checks)
class AllocationRequest:
    """The number of addresses (C-45), and the key under which they are released together."""

    number: Annotated[int, Whole(1, MAX_ALLOCATION)]
    allocation_key: Filled | None = attrs.field(default=None, metadata=wire("allocationKey"))


@attrs.frozen(slots=True, field_transformer=add_checks)
class Allocate:
    """Ask for addresses of a scheme (M-18)."""

    scheme: Filled
    value: AllocationRequest


@attrs.frozen(slots=True, field_transformer=add_checks)
class Allocated:
    """The addresses a node allocated."""

    allocated: Addresses


@attrs.frozen(slots=True, field_transformer=add_checks)
@obeys(OneOf("resource", "children_resources"))
class Free:
    """Release addresses: by block key (M-19) or by list (M-20)."""

    resource: Filled | None = None
    children_resources: Addresses | None = attrs.field(
        default=None, metadata=wire("childrenResources")
    )


LOCAL_SEARCH = Text(
    pattern="^/[^/]+/(user|url|name|reporter|guid|userprofile|idp-identifier|resources|dataSchemes)/.",
    meaning="/<type>/<user, url, name, reporter, guid, userprofile, idp-identifier, resources or "
    "dataSchemes>/<what is looked for>",
)
"""The form of the text that says what a search by the own runtime looks for (M-31)."""


@attrs.frozen(slots=True, field_transformer=add_checks)
class Record:
    """A registration record of a hyperty or data object (REG-07, REG-10).

    Attributes:
        url: The registered address.
        runtime: The runtime that owns it.
        status: created, live, disconnected or dead.
        expires: Seconds without keep-alive until it is disconnected.
        message_schema: JSON Schema of the requests that a hyperty accepts.
        p2p_handler: The runtime's handler stub, if it takes P2P links.
        p2p_requester: Catalogue address of the stub that reaches it.
    """

    url: Address
    runtime: Address
    status: Annotated[str, RecordStatus] = RecordStatus.LIVE.value
    expires: Annotated[float, Number(1.0, REGISTRATION_EXPIRES)] = REGISTRATION_EXPIRES
    descriptor: str | None = None
    user: str | None = None
    guid: str | None = None
    reporter: str | None = None
    schema: str | None = None
    name: str | None = None
    resources: Names = ()
    data_schemes: Names = attrs.field(default=(), metadata=wire("dataSchemes"))
    message_schema: JsonObject | None = attrs.field(default=None, metadata=wire("messageSchema"))
    starting_time: str | None = attrs.field(default=None, metadata=wire("startingTime"))
    last_modified: str | None = attrs.field(default=None, metadata=wire("lastModified"))
    p2p_handler: Address | None = attrs.field(default=None, metadata=wire("p2pHandler"))
    p2p_requester: Address | None = attrs.field(default=None, metadata=wire("p2pRequester"))


@attrs.frozen(slots=True, field_transformer=add_checks)
class FoundRecord:
    """A record in a registry's answer; unknown fields are absent (M-25..M-28)."""

    url: Address
    runtime: Address | None = None
    status: Annotated[str, RecordStatus] | None = None
    expires: Annotated[float, Number(0.0, REGISTRATION_EXPIRES)] | None = None
    descriptor: str | None = None
    user: str | None = None
    guid: str | None = None
    reporter: str | None = None
    schema: str | None = None
    name: str | None = None
    resources: Names | None = None
    data_schemes: Names | None = attrs.field(default=None, metadata=wire("dataSchemes"))
    message_schema: JsonObject | None = attrs.field(default=None, metadata=wire("messageSchema"))
    starting_time: str | None = attrs.field(default=None, metadata=wire("startingTime"))
    last_modified: str | None = attrs.field(default=None, metadata=wire("lastModified"))
    p2p_handler: Address | None = attrs.field(default=None, metadata=wire("p2pHandler"))
    p2p_requester: Address | None = attrs.field(default=None, metadata=wire("p2pRequester"))


@attrs.frozen(slots=True, field_transformer=add_checks)
class Register:
    """Register a record (M-21)."""

    value: Record


@attrs.frozen(slots=True, field_transformer=add_checks)
@obeys(Needs("attribute", "value"), ObjectUnless("value", "attribute"))
class UpdateRecord:
    """Change a record (M-22), set one attribute (M-23) or keep it alive (M-24).

    Attributes:
        value: Fields to set, or the value of `attribute`; absent: a keep-alive.
    """

    resource: Address
    value: Json = None
    attribute: Filled | None = None


@attrs.frozen(slots=True, field_transformer=add_checks)
class ReadRecord:
    """Read a record by address, or search (M-25..M-28).

    Attributes:
        resource: An address, or `/<scheme>/user/...` and the like.
        criteria: Narrows a search: `scheme`, `resources`, `dataSchemes`, and `user`, `guid`,
            `name`, `reporter`.
        attribute: Dotted path of the only attribute to read, such as `messageSchema.type`.
        limit: Largest number of records on a page of a search.
        after: Beginning of the page: `next` of the page before; absent: the newest record.
    """

    resource: Filled
    criteria: JsonObject | None = None
    limit: Annotated[int, Whole(1, SEARCH_PAGE)] | None = None
    after: Filled | None = None
    attribute: Filled | None = None


@attrs.frozen(slots=True, field_transformer=add_checks)
class RecordChanged:
    """Notify the subscribers that a record's status changed (M-30, C-55)."""

    attribute: Annotated[str, RecordAttribute]
    value: Annotated[str, RecordStatus]


@attrs.frozen(slots=True, field_transformer=add_checks)
class Discover:
    """Ask the own runtime to search (M-31).

    Attributes:
        criteria: As in `ReadRecord`; `domain` is the domain of the registry to search.
        limit: As in `ReadRecord`.
        after: As in `ReadRecord`.
        attribute: As in `ReadRecord`.
    """

    resource: Annotated[str, LOCAL_SEARCH]
    criteria: JsonObject | None = None
    limit: Annotated[int, Whole(1, SEARCH_PAGE)] | None = None
    after: Filled | None = None
    attribute: Filled | None = None
