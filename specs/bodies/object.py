"""Bodies of messages about data objects, their observers and their children (M-32..M-53).

The functions at the end return the class for the body of a request to a sync manager or to a node's
subscription manager. A verb of these requests has several meanings: the keys of the body, or the
sender, distinguish them. The functions read no other fields of a body: its class checks the rest.
"""

from typing import Annotated, Final, Literal, TypeAlias

import attrs

from specs.bodies import word
from specs.bodies.link import Path
from specs.jsonvalue import Json, JsonObject
from specs.limits.protocol import MAX_ID
from specs.limits.sync import (
    ENDED_AT_ONCE,
    MAX_ALLOWED_OBSERVERS,
    WINDOW_BYTES,
    WINDOW_CHILDREN,
    WINDOW_LEAST_BYTES,
)
from specs.message import Message, MessageType
from specs.schema.field import Address, Addresses, Filled, Names, Needs, add_checks, obeys, wire
from specs.schema.shape import END, Size, Text, Whole

# Bodies of data objects, and of P2P links, which are data objects too (M-32..M-47).

Version: TypeAlias = Annotated[int, Whole(1, MAX_ID)]
"""A version number of a data object, which rises by one with each change (SYN-16)."""

Lease: TypeAlias = Annotated[int, Whole(1, MAX_ID)]
"""Duration of a subscription in seconds; the subscription ends then unless it is renewed."""


CHILD: Final = Text(
    pattern=r"^[a-z][a-z0-9+.-]*://(?![^/]*\.\.)[a-z0-9]([a-z0-9._-]*[a-z0-9])?"
    r"(/(?!\.{1,2}[/#])[A-Za-z0-9._~!$&'()*+,;=:@%-]+)+#[1-9][0-9]{0,15}" + END,
    meaning="its creator's address, # and a number",
)
"""The form of the name of a child object: address of its creator, `#`, number (SYN-24)."""

DIGEST: Final = Text(pattern=r"^[0-9a-f]{16}" + END, meaning="16 hexadecimal digits")
"""The form of a digest of all children of an object."""


@attrs.frozen(slots=True, field_transformer=add_checks)
class ConnectionDescription:
    """The offer or answer of one end of a P2P link (P2P-07).

    Attributes:
        type: `offer` or `answer`.
        sdp: Session description; only for WebRTC.
    """

    type: Annotated[str, word.DescriptionType] = word.DescriptionType.UNSET.value
    sdp: str | None = None


@attrs.frozen(slots=True, field_transformer=add_checks)
class Candidate:
    """An address of an end of a P2P link.

    Attributes:
        kind: The kind: websocket, tcp or unix.
        address: URL, `host:port` or socket path, depending on the kind.
        secret: Identifies the link to its listener: a hint, not a proof.
        host: Proof of the machine; an address that is valid on one machine only is dialled only
            there.
    """

    kind: Annotated[str, word.CandidateKind]
    address: Filled
    secret: Filled
    host: str | None = None


@attrs.frozen(slots=True, field_transformer=add_checks)
class IceCandidate:
    """An ICE candidate in the form of `RTCPeerConnection`; signed by itself.

    Attributes:
        candidate: Its text; empty: the end of the candidates.
        signature: Signature over it, the session description, and the scope of that.
        sdp_mid: Name of its media section.
        sdp_m_line_index: Number of its media section.
        host: Proof of the machine, as for a listener.
    """

    candidate: str
    signature: Filled
    sdp_mid: str | None = attrs.field(default=None, metadata=wire("sdpMid"))
    sdp_m_line_index: Annotated[int, Whole(0, 0)] | None = attrs.field(
        default=None, metadata=wire("sdpMLineIndex")
    )
    host: str | None = None


@attrs.frozen(slots=True, field_transformer=add_checks)
class LinkSecurity:
    """The proof that an offer or answer is from a runtime (ours).

    The signature covers the owner of the object, both runtimes, the object, the object that an
    answer answers, the number of the negotiation, the candidates, the session description, and the
    other fields here.

    Attributes:
        key: Public key of the runtime: Ed25519, in base64url without padding.
        signature: Signature by the key, in base64url without padding.
        certificate: The only TLS certificate that its end presents: DER, in base64url without
            padding; a browser has none.
        fingerprint: Fingerprint of the only DTLS certificate that its end presents, as in SDP.
        assertion: Token of an identity provider that names the key (`cnf`).
        statement: Statement of the domain about runtime and key.
    """

    key: Filled = attrs.field(metadata=wire("publicKey"))
    signature: Filled
    certificate: Filled | None = None
    fingerprint: Filled | None = None
    assertion: str | None = attrs.field(default=None, repr=False)
    statement: str | None = attrs.field(default=None, repr=False)


@attrs.frozen(slots=True, field_transformer=add_checks)
class ConnectionData:
    """The value of a Connection data object (P2P-07, C-25).

    Attributes:
        owner: The stub that reports it.
        status: `unreachable-<n>`: none of the peer's candidates opened, for the n-th time, so the
            peer should dial. `negotiation-<n>`: number of the offer or answer, from the second one
            on; a request to be dialled follows as `negotiation-<n>-unreachable-<m>`.
        candidates: Candidates of the listeners of the end.
        ice_candidates: ICE candidates, added as they are found.
        security: The proof, written after the description and the candidates, which are invalid
            without it.
    """

    owner: Address
    status: str = ""
    connection_description: ConnectionDescription | None = attrs.field(
        default=None, metadata=wire("connectionDescription")
    )
    candidates: tuple[Candidate, ...] = ()
    ice_candidates: tuple[IceCandidate, ...] = attrs.field(
        default=(), metadata=wire("iceCandidates")
    )
    security: LinkSecurity | None = None


@attrs.frozen(slots=True, field_transformer=add_checks)
class ChildWindow:
    """The newest children of a data object, which it keeps: older ones leave (ours).

    Attributes:
        last: Number of children.
        bytes: Bytes of their values as JSON, with their names.
        seconds: Seconds after which a child leaves; None: it leaves for newer ones only.
    """

    last: Annotated[int, Whole(1, WINDOW_CHILDREN)] = WINDOW_CHILDREN
    bytes: Annotated[int, Whole(WINDOW_LEAST_BYTES, WINDOW_BYTES)] = WINDOW_BYTES
    seconds: Annotated[int, Whole(1, MAX_ID)] | None = None


@attrs.frozen(slots=True, field_transformer=add_checks)
class NewObject:
    """A data object before it has an address, as described by its reporter (M-32)."""

    reporter: Address
    data: JsonObject
    runtime: Address | None = None
    name: str | None = None
    schema: str | None = None
    resources: Names | None = None
    children_window: ChildWindow | None = attrs.field(default=None, metadata=wire("childrenWindow"))


@attrs.frozen(slots=True, field_transformer=add_checks)
class DataObject:
    """A data object as its reporter's end stores it: metadata and data.

    Attributes:
        url: Its address.
        version: Number that rises by one with each change (SYN-16).
        data: The value, which obeys its schema.
        children_objects: Its children by resource and name, each with `value` and `version`, the id
            of the message that wrote it (SYN-24). With a window also `window`: the number of
            children so far (`created`), and the greatest number of one that has left (`gone`).
        children_window: The children that it keeps; absent: all, within its limits.
        created: Time of its creation, in the form of RFC 3339, UTC.
    """

    reporter: Address
    runtime: Address
    data: JsonObject
    url: Address
    version: Version = 1
    name: str | None = None
    schema: str | None = None
    resources: Names = ()
    children_objects: JsonObject | None = attrs.field(
        default=None, metadata=wire("childrenObjects")
    )
    created: str | None = None
    children_window: ChildWindow | None = attrs.field(default=None, metadata=wire("childrenWindow"))


@attrs.frozen(slots=True, field_transformer=add_checks)
class Snapshot:
    """A data object as an observer gets it, with its version (M-36, M-38, M-41).

    Attributes:
        created: Time of its creation, in the form of RFC 3339, UTC.
    """

    url: Address
    version: Version
    data: JsonObject
    reporter: Address | None = None
    runtime: Address | None = None
    name: str | None = None
    schema: str | None = None
    resources: Names | None = None
    children_objects: JsonObject | None = attrs.field(
        default=None, metadata=wire("childrenObjects")
    )
    created: str | None = None
    children_window: ChildWindow | None = attrs.field(default=None, metadata=wire("childrenWindow"))


@attrs.frozen(slots=True, field_transformer=add_checks)
class CreateObject:
    """Ask the sync manager to create an object (M-32).

    Attributes:
        resource: The former address, if the object is resumed.
        p2p: Whether changes may be sent to observers by direct links.
        store: Whether the sync manager stores a copy of its own.
        allow: Hyperties that may observe and read without a decision.
        public: Whether every hyperty may observe and read it.
    """

    value: NewObject
    schema: Filled
    p2p: bool | None = None
    store: bool | None = None
    resource: Address | None = None
    resume: bool | None = None
    allow: tuple[Address, ...] | None = None
    public: bool | None = attrs.field(default=None, metadata=wire("publicObservation"))


@attrs.frozen(slots=True, field_transformer=add_checks)
class EndReport:
    """Ask the sync manager to delete an object, or one attribute of the object (M-46).

    Attributes:
        store: Whether a stored object stays stored, and waits for its reporter (SYN-28).
        attribute: Dotted path of the only attribute to delete; the object stays.
        child: Name of the only child to delete, whoever created it; the object stays (ours).
    """

    resource: Address
    store: bool | None = None
    attribute: Filled | None = None
    child: Annotated[str, CHILD] | None = None


@attrs.frozen(slots=True, field_transformer=add_checks)
class ReadAttribute:
    """Read one attribute of an object (M-41).

    Attributes:
        attribute: Dotted path in the value of the object.
    """

    attribute: Filled


@attrs.frozen(slots=True, field_transformer=add_checks)
class ReadChildren:
    """Read a page of the children of an object with a window (M-41, ours).

    Attributes:
        after: Number of the last child before the page; 0: the page begins with the oldest.
    """

    after: Annotated[int, Whole(0, MAX_ID)] = attrs.field(metadata=wire("childrenAfter"))


@attrs.frozen(slots=True, field_transformer=add_checks)
class InviteObservers:
    """Ask the sync manager to invite an observer (M-33).

    Attributes:
        authorise: The observer to invite: one only, since a request has one final answer (C-80).
        value: Metadata of the object, included in the invitation.
    """

    resource: Address
    schema: Filled
    authorise: Annotated[tuple[Address, ...], Size(1, 1)]
    value: JsonObject


@attrs.frozen(slots=True, field_transformer=add_checks)
class Invitation:
    """Invite an observer (M-34).

    Attributes:
        source: The reporter.
        value: Metadata of the object.
    """

    source: Address
    schema: Filled
    value: JsonObject


@attrs.frozen(slots=True, field_transformer=add_checks)
class Observe:
    """Ask the own sync manager to observe an object (M-36)."""

    resource: Address
    schema: Filled | None = None
    p2p: bool | None = None
    store: bool | None = None
    resume: bool | None = None


@attrs.frozen(slots=True, field_transformer=add_checks)
class ObjectAnew:
    """Send an observer the whole object again, since changes in the meantime may be lost (M-36)."""

    resource: Address
    value: Snapshot


@attrs.frozen(slots=True, field_transformer=add_checks)
class Subscription:
    """Subscribe or unsubscribe an observer at the reporter (M-38, M-43).

    Attributes:
        renews: Whether the sending sync manager renews subscriptions: then the subscription is
            granted for a time, which the answer states; otherwise without end (ours).
        version: Version of the observer's copy: its subscription is renewed, and the answer
            contains the object only if the version differs (ours).
    """

    source: Address
    children_resources: Names | None = attrs.field(default=None, metadata=wire("childrenResources"))
    renews: bool | None = None
    version: Version | None = None


@attrs.frozen(slots=True, field_transformer=add_checks)
@obeys(
    Needs("operation", "attribute_type"), Needs("operation", "value"), Needs("index", "operation")
)
class Change:
    """One change of a data object (M-40).

    Attributes:
        version: Version of the object after the change (C-77).
        attribute: Dotted path; absent: `value` is the whole new value.
        value: New value; absent removes the attribute.
        operation: `add` or `remove` elements of an array.
        index: Index in the array (ours): `add` inserts before this element; absent: there was no
            array. `remove` removes the elements of `value`, which begin there, or as many as
            `value` says; 0: the last one, which is `value`.
    """

    version: Version
    attribute: Filled | None = None
    value: Json = None
    attribute_type: Annotated[str, word.AttributeType] | None = attrs.field(
        default=None, metadata=wire("attributeType")
    )
    operation: Annotated[str, word.Operation] | None = None
    last_modified: str | None = attrs.field(default=None, metadata=wire("lastModified"))
    source: Address | None = None
    index: Annotated[int, Whole(0, MAX_ID)] | None = None


@attrs.frozen(slots=True, field_transformer=add_checks)
@obeys(Needs("operation", "attribute_type"), Needs("operation", "value"))
class ChangeObject:
    """Ask the own sync manager to change and publish an object of the sender (M-40).

    Attributes:
        attribute: Dotted path; absent: `value` is the whole new value.
        value: New value; absent removes the attribute.
        operation: `add` or `remove` elements of an array.
    """

    resource: Address
    attribute: Filled | None = None
    value: Json = None
    attribute_type: Annotated[str, word.AttributeType] | None = attrs.field(
        default=None, metadata=wire("attributeType")
    )
    operation: Annotated[str, word.Operation] | None = None


@attrs.frozen(slots=True, field_transformer=add_checks)
class LinkRow:
    """The row of a runtime's registry about its link to another runtime (P2P-18).

    Attributes:
        role: The end at which this runtime is.
        status: State of the connection, as a word of the machine.
        link: Address of this runtime's end.
    """

    role: Annotated[str, word.LinkRole]
    status: Annotated[str, word.LinkValue]
    link: str | None = None


@attrs.frozen(slots=True, field_transformer=add_checks)
class ObjectName:
    """Name one object or address (M-42, M-45, M-46, M-56)."""

    resource: Address


@attrs.frozen(slots=True, field_transformer=add_checks)
class AllowObserver:
    """Ask the own sync manager to admit an observer without a decision (ours)."""

    resource: Address
    observer: Address


@attrs.frozen(slots=True, field_transformer=add_checks)
class ExpelObserver:
    """Ask the own sync manager to expel an observer (SYN-21)."""

    resource: Address
    observer: Address


@attrs.frozen(slots=True, field_transformer=add_checks)
class ObserverExpelled:
    """Notify the sync manager of an observer that its reporter expels it (SYN-21)."""

    resource: Address
    observer: Address


@attrs.frozen(slots=True, field_transformer=add_checks)
class CutPath:
    """Order the node to stop delivering own objects to an observer's runtime.

    Attributes:
        resources: The objects.
        observer: The expelled observer.
        runtime: The observer's runtime, if it is known; absent: the node finds it.
        expired: The subscription was not renewed: the paths of the runtime are removed, too, unless
            another hyperty there observes, or asks to.
    """

    resources: Addresses
    observer: Address
    runtime: Address | None = None
    expired: bool | None = None


@attrs.frozen(slots=True, field_transformer=add_checks)
class ObserversChange:
    """Notify of observers that an object gained or lost (M-53).

    Attributes:
        value: The observer that joined or left.
        version: Number that rises by one with each such change of an object; absent: the sender
            does not count.
        attribute_type: Always `array`.
    """

    value: Addresses
    operation: Annotated[str, word.Operation]
    version: Version | None = None
    attribute_type: Annotated[str, word.AttributeType] = attrs.field(
        default=word.AttributeType.ARRAY.value, metadata=wire("attributeType")
    )


@attrs.frozen(slots=True, field_transformer=add_checks)
class ObserverList:
    """All observers of an object: the value of its observers resource.

    Attributes:
        version: Version of the last `ObserversChange`; 0: there was none.
    """

    version: Annotated[int, Whole(0, MAX_ID)]
    observers: Annotated[tuple[Address, ...], Size(0, MAX_ALLOWED_OBSERVERS)]


@attrs.frozen(slots=True, field_transformer=add_checks)
class Wrapped:
    """A message within a message, unchanged (M-39)."""

    id: Annotated[int, Whole(1, MAX_ID)]
    type: Annotated[str, MessageType]
    from_: Address = attrs.field(metadata=wire("from"))
    to: Address
    body: JsonObject | None = None


@attrs.frozen(slots=True, field_transformer=add_checks)
class Forward:
    """Ask the reporter of an object whether the sender of a request may observe (M-39)."""

    message: Wrapped


@attrs.frozen(slots=True, field_transformer=add_checks)
class Child:
    """Create a child object, or give it a new value (M-48, M-49)."""

    resource: Annotated[str, CHILD]
    value: Json


@attrs.frozen(slots=True, field_transformer=add_checks)
class ChildName:
    """Delete a child object (M-50)."""

    resource: Annotated[str, CHILD]


@attrs.frozen(slots=True, field_transformer=add_checks)
class ChildAttribute:
    """Delete one attribute of a child object (M-50).

    Attributes:
        attribute: Dotted path in the value of the child.
        version: Version of the child before this deletion, which is applied to that version only.
    """

    resource: Annotated[str, CHILD]
    attribute: Filled
    version: Annotated[int, Whole(1, MAX_ID)]


@attrs.frozen(slots=True, field_transformer=add_checks)
class ChildReport:
    """Report the value of a child to observers that do not receive its creator's messages (M-49).

    Ours; an object sends it to the address of its children, over direct links, and for children
    that a direct link has brought. The object vouches for it, as when it is read whole.

    Attributes:
        version: Id of the creator's message that wrote it.
    """

    resource: Annotated[str, CHILD]
    value: Json
    version: Version


@attrs.frozen(slots=True, field_transformer=add_checks)
class ChildEnd:
    """Report that a child is deleted, to the same observers as `ChildReport` (M-50).

    Attributes:
        version: Id of the creator's message that deleted it.
    """

    resource: Annotated[str, CHILD]
    version: Version


@attrs.frozen(slots=True, field_transformer=add_checks)
class ChildrenSign:
    """Report a digest of the children; a receiver with other children reads them.

    Ours; an object sends it to the address of its children, where older peers look up the child it
    names, and find none. `fsm.sync.children` defines the digest.

    Attributes:
        count: Number of children.
        digest: Digest of their names and versions, 16 hexadecimal digits.
    """

    count: Annotated[int, Whole(0, WINDOW_CHILDREN)]
    digest: Annotated[str, DIGEST]


@attrs.frozen(slots=True, field_transformer=add_checks)
class ChildrenEnded:
    """Report the children that the reporter's end has removed, with the digest of the others.

    Ours. Their creators have not deleted them: they left the window of the object, or the reporter
    deleted them. Their names are not used again.

    Attributes:
        count: Number of children that remain.
        digest: Digest of their names and versions, 16 hexadecimal digits.
        ended: Names of the removed children, the oldest first; there may be none.
        created: Number of children of the object so far; absent: it has no window.
        gone: The greatest number of a child that has left the window; 0: none has.
    """

    count: Annotated[int, Whole(0, WINDOW_CHILDREN)]
    digest: Annotated[str, DIGEST]
    ended: Annotated[tuple[Annotated[str, CHILD], ...], Size(0, ENDED_AT_ONCE)]
    created: Annotated[int, Whole(0, MAX_ID)] | None = None
    gone: Annotated[int, Whole(0, MAX_ID)] | None = None


@attrs.frozen(slots=True, field_transformer=add_checks)
class Resume:
    """Resume objects that were reported or observed before a restart (M-51, M-52).

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


@attrs.frozen(slots=True, field_transformer=add_checks)
class ObjectBack:
    """Notify the sync manager of an observer to subscribe again (M-52).

    The runtime of the object was restarted, or the subscription was not renewed in time.
    """

    resource: Address


Create: TypeAlias = CreateObject | Resume | InviteObservers | AllowObserver
"""Classes of the bodies of `create` requests to a sync manager."""

Subscribe: TypeAlias = Observe | Resume | ObjectBack
"""Classes of the bodies of `subscribe` requests to a sync manager."""

Unsubscribe: TypeAlias = ObjectName | ExpelObserver | ObserverExpelled
"""Classes of the bodies of `unsubscribe` requests to a sync manager."""

PathRequest: TypeAlias = Path | CutPath
"""Classes of the bodies of requests to the subscription manager of a node."""

_OBJECT: Final = "resource"
_OBSERVER: Final = "observer"


def _is_by_object(message: Message) -> bool:
    """Return whether a message comes from the data object that its body names."""
    return message.from_ == f"{message.body.get(_OBJECT)}/subscription"


def create_class(message: Message) -> type[Create]:
    """Return the class for the body of a `create` request to a sync manager."""
    body = message.body
    if "resume" in body and "value" not in body and body.get(_OBJECT) is None:
        return Resume
    if "authorise" in body:
        return InviteObservers
    return AllowObserver if _OBSERVER in body else CreateObject


def subscribe_class(message: Message) -> type[Subscribe]:
    """Return the class for the body of a `subscribe` request to a sync manager."""
    if message.body.get(_OBJECT) is None:
        return Resume
    return ObjectBack if _is_by_object(message) else Observe


def unsubscribe_class(message: Message) -> type[Unsubscribe]:
    """Return the class for the body of an `unsubscribe` request to a sync manager."""
    if _OBSERVER not in message.body:
        return ObjectName
    return ObserverExpelled if _is_by_object(message) else ExpelObserver


def path_class(message: Message) -> type[PathRequest]:
    """Return the class for the body of a request to the subscription manager of a node."""
    is_cut = message.type is MessageType.UNSUBSCRIBE and _OBSERVER in message.body
    return CutPath if is_cut else Path
