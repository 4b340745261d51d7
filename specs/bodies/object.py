"""Bodies around a data object: questions, children, resuming, delegation (M-39, M-48..M-54).

Bodies about the observers of a data object: let in, shut out, told of (SYN-21, SYN-23, M-53).
"""

from typing import Annotated, Final, Literal

import attrs

from specs.bodies.sync import Version
from specs.bodies.word import AttributeType, Operation
from specs.jsonvalue import Json, JsonObject
from specs.limits.protocol import MAX_ID, MAX_JSON_KEYS
from specs.limits.sync import MAX_GUESTS
from specs.message import MessageType
from specs.schema.field import Address, Addresses, checked, wire
from specs.schema.shape import END, Size, Text, Whole

__all__ = [
    "AllowObserver",
    "Child",
    "ChildName",
    "ChildrenSign",
    "CutPath",
    "Delegate",
    "ExpelObserver",
    "Forward",
    "ForwardDelegation",
    "ObjectBack",
    "ObserverExpelled",
    "ObserverList",
    "ObserversChange",
    "Resume",
    "StoreObject",
    "Wrapped",
]


@attrs.frozen(slots=True, field_transformer=checked)
class AllowObserver:
    """Ask the own sync manager to let an observer in without a question (ours)."""

    resource: Address
    observer: Address


@attrs.frozen(slots=True, field_transformer=checked)
class ExpelObserver:
    """Ask the own sync manager to expel an observer (SYN-21)."""

    resource: Address
    observer: Address


@attrs.frozen(slots=True, field_transformer=checked)
class ObserverExpelled:
    """Tell the sync manager of an observer that its reporter expels it (SYN-21)."""

    resource: Address
    observer: Address


@attrs.frozen(slots=True, field_transformer=checked)
class CutPath:
    """Have what an observer's runtime hears of own objects end at the node.

    Attributes:
        resources: The objects.
        observer: Who was shut out.
        runtime: Where it lives, if that is known; absent: where the node thinks.
        expired: Its subscription was not renewed: the paths of its runtime are removed, too,
            unless another there observes, or asks to.
    """

    resources: Addresses
    observer: Address
    runtime: Address | None = None
    expired: bool | None = None


@attrs.frozen(slots=True, field_transformer=checked)
class ObserversChange:
    """Who observes an object from now on, or no more (M-53).

    Attributes:
        value: Who came or left.
        version: Rises by one with each of these of an object; absent: the sender counts none.
        attribute_type: Always `array`.
    """

    value: Addresses
    operation: Annotated[str, Operation]
    version: Version | None = None
    attribute_type: Annotated[str, AttributeType] = attrs.field(
        default=AttributeType.ARRAY.value, metadata=wire("attributeType")
    )


@attrs.frozen(slots=True, field_transformer=checked)
class ObserverList:
    """All who observe an object: the value of its observers resource.

    Attributes:
        version: Of the last `ObserversChange`; 0: there was none.
    """

    version: Annotated[int, Whole(0, MAX_ID)]
    observers: Annotated[tuple[Address, ...], Size(0, MAX_GUESTS)]


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
    """Ask the reporter of an object whether the sender of a request may observe (M-39)."""

    message: Wrapped


@attrs.frozen(slots=True, field_transformer=checked)
class ForwardDelegation:
    """Ask a hyperty whether it takes over the reporter's role of an object (M-54)."""

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
    """Resume what was reported or observed before a restart (M-51, M-52).

    Attributes:
        identity: Owner of the objects; absent: the sender.
        schema: Only objects of this schema are resumed.
        name: Only objects of this name are resumed.
    """

    resume: Literal[True] = True
    identity: Json = None
    schema: str | None = None
    p2p: bool | None = None
    store: bool | None = None
    name: str | None = None


@attrs.frozen(slots=True, field_transformer=checked)
class StoreObject:
    """Store an object that was handed over to the sender (M-51; ours).

    Attributes:
        resource: The object.
    """

    resource: Address
    resume: Literal[True] = True
    store: bool | None = None


@attrs.frozen(slots=True, field_transformer=checked)
class ObjectBack:
    """Tell the sync manager of an observer to subscribe again (M-52).

    The runtime of the object was restarted, or the subscription was not renewed in time.
    """

    resource: Address


@attrs.frozen(slots=True, field_transformer=checked)
class Delegate:
    """Hand the reporter's role to another hyperty (M-54)."""

    resource: Address
    delegate: Address
