"""Bodies around a data object: questions, children, resuming, delegation (M-39, M-48..M-54)."""

from typing import Annotated, Final, Literal

import attrs

from specs.jsonvalue import Json, JsonObject
from specs.limits.protocol import MAX_ID, MAX_JSON_KEYS
from specs.message import MessageType
from specs.schema.field import Address, checked, wire
from specs.schema.shape import END, Text, Whole

CHILD: Final = Text(
    pattern=r"^[a-z][a-z0-9+.-]*://(?![^/]*\.\.)[a-z0-9]([a-z0-9._-]*[a-z0-9])?"
    r"(/(?!\.{1,2}[/#])[A-Za-z0-9._~!$&'()*+,;=:@%-]+)+#[1-9][0-9]{0,15}" + END,
    meaning="its creator's address, # and a number",
)
"""The name of a child object: `Hx#<k>` (SYN-24)."""

DIGEST: Final = Text(pattern=r"^[0-9a-f]{16}" + END, meaning="16 hexadecimal digits")
"""A digest of all children of an object."""


@attrs.frozen(slots=True, field_transformer=checked)
class Wrapped:
    """A message within a message, as it was sent (M-39)."""

    id: Annotated[int, Whole(1, MAX_ID)]
    type: Annotated[str, MessageType]
    from_: Address = attrs.field(metadata=wire("from"))
    to: Address
    body: JsonObject | None = None


@attrs.frozen(slots=True, field_transformer=checked)
class Forward:
    """Pass a request on to who decides whether its sender may observe (M-39)."""

    message: Wrapped


@attrs.frozen(slots=True, field_transformer=checked)
class Child:
    """Create a child object, or give it a new value (M-48, M-49)."""

    resource: Annotated[str, CHILD]
    value: Json


@attrs.frozen(slots=True, field_transformer=checked)
class ChildName:
    """Delete a child object (M-50)."""

    resource: Annotated[str, CHILD]


@attrs.frozen(slots=True, field_transformer=checked)
class ChildrenSign:
    """Tell what children there are, without saying it all: who sees that it has others, reads.

    Ours; sent by an object on the address of its children, where older peers look for the
    child it names, and find none. `fsm.sync.children.children` says what the digest is of.

    Attributes:
        count: How many children there are.
        digest: Of their names and versions, 16 hexadecimal digits.
    """

    count: Annotated[int, Whole(0, MAX_JSON_KEYS)]
    digest: Annotated[str, DIGEST]


@attrs.frozen(slots=True, field_transformer=checked)
class Resume:
    """Take up what was reported or observed before a restart (M-51, M-52).

    Attributes:
        identity: Whose objects; absent: the sender's.
        schema: Only objects of this schema, and of this name.
        resource: The object that was handed over to the sender, to be stored from now on; ours.
    """

    resume: Literal[True] = True
    identity: Json = None
    schema: str | None = None
    p2p: bool | None = None
    store: bool | None = None
    name: str | None = None
    resource: Address | None = None


@attrs.frozen(slots=True, field_transformer=checked)
class Delegate:
    """Hand the reporter's role to another hyperty (M-54)."""

    resource: Address
    delegate: Address
