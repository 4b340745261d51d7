"""Bodies around a data object: observers, children, resuming (M-39, M-48..M-53).

The functions at the end name the class of each body that a service for data objects gets
(M-32..M-53). A verb of these requests has several meanings. The keys of the body, or the sender,
say which one is meant. The functions read nothing else of a body: its class checks the rest.
"""

from typing import Annotated, Final, Literal, TypeAlias

import attrs

from specs.bodies.link import Path
from specs.bodies.sync import (
    CreateObject,
    InviteObservers,
    ObjectName,
    Observe,
    Version,
)
from specs.bodies.word import AttributeType, Operation
from specs.jsonvalue import Json, JsonObject
from specs.limits.protocol import MAX_ID, MAX_JSON_KEYS
from specs.limits.sync import MAX_ALLOWED_OBSERVERS
from specs.message import Message, MessageType
from specs.schema.field import Address, Addresses, Filled, checked, wire
from specs.schema.shape import END, Size, Text, Whole


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
    """Notify the sync manager of an observer that its reporter expels it (SYN-21)."""

    resource: Address
    observer: Address


@attrs.frozen(slots=True, field_transformer=checked)
class CutPath:
    """Have what an observer's runtime hears of own objects end at the node.

    Attributes:
        resources: The objects.
        observer: The expelled observer.
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
    """Observers that an object gained or lost (M-53).

    Attributes:
        value: The observer that joined or left.
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
    """All observers of an object: the value of its observers resource.

    Attributes:
        version: Of the last `ObserversChange`; 0: there was none.
    """

    version: Annotated[int, Whole(0, MAX_ID)]
    observers: Annotated[tuple[Address, ...], Size(0, MAX_ALLOWED_OBSERVERS)]


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
class Child:
    """Create a child object, or give it a new value (M-48, M-49)."""

    resource: Annotated[str, CHILD]
    value: Json


@attrs.frozen(slots=True, field_transformer=checked)
class ChildName:
    """Delete a child object (M-50)."""

    resource: Annotated[str, CHILD]


@attrs.frozen(slots=True, field_transformer=checked)
class ChildAttribute:
    """Delete one attribute of a child object (M-50).

    Attributes:
        attribute: Dotted path in the value of the child.
        version: Version of the child without this deletion: it is applied to that one only.
    """

    resource: Annotated[str, CHILD]
    attribute: Filled
    version: Annotated[int, Whole(1, MAX_ID)]


@attrs.frozen(slots=True, field_transformer=checked)
class ChildReport:
    """Report the value of a child to observers that do not hear its creator itself (M-49).

    Ours; sent by an object on the address of its children, to what is behind a direct link, and
    of what a direct link has brought. The object vouches for it, as where it is read whole.

    Attributes:
        version: Id of the creator's message that wrote it.
    """

    resource: Annotated[str, CHILD]
    value: Json
    version: Version


@attrs.frozen(slots=True, field_transformer=checked)
class ChildEnd:
    """Report that a child is deleted, to the same observers (M-50).

    Attributes:
        version: Id of the creator's message that deleted it.
    """

    resource: Annotated[str, CHILD]
    version: Version


@attrs.frozen(slots=True, field_transformer=checked)
class ChildrenSign:
    """Report a digest of the children; a receiver that has others reads them.

    Ours; sent by an object on the address of its children, where older peers look for the
    child it names, and find none. `fsm.sync.children` says what the digest is of.

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
class ObjectBack:
    """Notify the sync manager of an observer to subscribe again (M-52).

    The runtime of the object was restarted, or the subscription was not renewed in time.
    """

    resource: Address


Create: TypeAlias = CreateObject | Resume | InviteObservers | AllowObserver
"""Bodies of `create` to a sync manager."""

Subscribe: TypeAlias = Observe | Resume | ObjectBack
"""Bodies of `subscribe` to a sync manager."""

Unsubscribe: TypeAlias = ObjectName | ExpelObserver | ObserverExpelled
"""Bodies of `unsubscribe` to a sync manager."""

PathRequest: TypeAlias = Path | CutPath
"""Bodies of requests to the subscription manager of a node."""

_OBJECT: Final = "resource"
_OBSERVER: Final = "observer"


def _is_by_object(message: Message) -> bool:
    """Return whether the object that a message names is its sender (`O/subscription`)."""
    return message.from_ == f"{message.body.get(_OBJECT)}/subscription"


def create_class(message: Message) -> type[Create]:
    """Return the class of a `create` to a sync manager."""
    body = message.body
    if "resume" in body and "value" not in body and body.get(_OBJECT) is None:
        return Resume
    if "authorise" in body:
        return InviteObservers
    return AllowObserver if _OBSERVER in body else CreateObject


def subscribe_class(message: Message) -> type[Subscribe]:
    """Return the class of a `subscribe` to a sync manager."""
    if message.body.get(_OBJECT) is None:
        return Resume
    return ObjectBack if _is_by_object(message) else Observe


def unsubscribe_class(message: Message) -> type[Unsubscribe]:
    """Return the class of an `unsubscribe` to a sync manager."""
    if _OBSERVER not in message.body:
        return ObjectName
    return ObserverExpelled if _is_by_object(message) else ExpelObserver


def path_class(message: Message) -> type[PathRequest]:
    """Return the class of a request to the subscription manager of a node."""
    is_cut = message.type is MessageType.UNSUBSCRIBE and _OBSERVER in message.body
    return CutPath if is_cut else Path
