"""Requests to the services for data objects: the class of each body (M-32..M-54).

A verb of these requests has several meanings. The keys of the body, or the sender, say which
one is meant. The functions here read nothing else of a body: its class checks the rest.
"""

from typing import Final, TypeAlias

from specs.bodies.delegation import HandOver
from specs.bodies.link import Path
from specs.bodies.object import (
    AllowObserver,
    CutPath,
    Delegate,
    ExpelObserver,
    Forward,
    ForwardDelegation,
    ObjectBack,
    ObserverExpelled,
    Resume,
    StoreObject,
)
from specs.bodies.sync import CreateObject, InviteObservers, ObjectName, Observe
from specs.message import Message, MessageType

__all__ = [
    "Create",
    "Forwarded",
    "PathRequest",
    "Subscribe",
    "Unsubscribe",
    "create_class",
    "forward_class",
    "path_class",
    "subscribe_class",
    "unsubscribe_class",
]

Create: TypeAlias = (
    CreateObject | Resume | StoreObject | InviteObservers | AllowObserver | Delegate | HandOver
)
"""Bodies of `create` to a sync manager."""

Subscribe: TypeAlias = Observe | Resume | ObjectBack
"""Bodies of `subscribe` to a sync manager."""

Unsubscribe: TypeAlias = ObjectName | ExpelObserver | ObserverExpelled
"""Bodies of `unsubscribe` to a sync manager."""

Forwarded: TypeAlias = Forward | ForwardDelegation
"""Bodies of `forward` from a data object to a hyperty."""

PathRequest: TypeAlias = Path | CutPath
"""Bodies of requests to the subscription manager of a node."""

_OBJECT: Final = "resource"
_OBSERVER: Final = "observer"
_CREATE_KEYS: Final[tuple[tuple[str, type[Create]], ...]] = (
    ("authorise", InviteObservers),
    (_OBSERVER, AllowObserver),
    ("delegate", Delegate),
    ("part", HandOver),
)
"""Keys that only one class has; the first that is there counts."""


def _is_by_object(message: Message) -> bool:
    """Return whether the object that a message names is its sender (`O/subscription`)."""
    return message.from_ == f"{message.body.get(_OBJECT)}/subscription"


def create_class(message: Message) -> type[Create]:
    """Return the class of a `create` to a sync manager."""
    body = message.body
    if "resume" in body and "value" not in body:
        return Resume if body.get(_OBJECT) is None else StoreObject
    return next((kind for key, kind in _CREATE_KEYS if key in body), CreateObject)


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


def forward_class(message: Message) -> type[Forwarded]:
    """Return the class of a `forward` to a hyperty, by the request within it."""
    wrapped = message.body.get("message")
    body = wrapped.get("body") if isinstance(wrapped, dict) else None
    is_own = isinstance(body, dict) and body.get(_OBJECT) == message.from_ and "delegate" in body
    return ForwardDelegation if is_own else Forward


def path_class(message: Message) -> type[PathRequest]:
    """Return the class of a request to the subscription manager of a node."""
    is_cut = message.type is MessageType.UNSUBSCRIBE and _OBSERVER in message.body
    return CutPath if is_cut else Path
