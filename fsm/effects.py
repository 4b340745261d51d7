"""Types that several cores share: routing intents, refusals, and the queue of port calls."""

from collections import deque
from collections.abc import Awaitable, Callable
from enum import Enum
from functools import lru_cache, partial, update_wrapper
from typing import Concatenate, Final, ParamSpec, TypeVar, final

import attrs

from specs.addresses.address import RUNTIME_SCHEME, scheme_of
from specs.child import CHILDREN
from specs.message import Message, MessageType, is_durable
from specs.reply_code import Code
from specs.trace import Op

# Kinds of routes for a message without a local listener.

_CONNECTION_SCHEME: Final = "connection"
_OBSERVING: Final = frozenset({MessageType.SUBSCRIBE, MessageType.UNSUBSCRIBE})
_SUBSCRIPTION: Final = "/subscription"
_P2P_PARTS: Final = frozenset({"p2phandler", "p2prequester"})
_PART: Final = 4
"""Index of `part` in the segments of `hyperty-runtime://d/name/part/n`, split at slashes."""


class Intent(Enum):
    """Kinds of routes that the runtime may use for a message without a local listener."""

    REACH = "reach"
    """For a request: the registry may be asked, a P2P link may be set up (RES-04..08)."""

    LINK = "link"
    """For a request whose sender asks for a direct link (RES-06)."""

    KNOWN = "known"
    """For an answer or event: only routes that are known already."""

    NODE = "node"
    """Only through the message node.

    The node carries P2P signalling (P2P-29), messages whose sender wants this (C-21), and durable
    messages, which it stores, so that later ones do not overtake them. It must see requests to
    observe an object (M-38, M-43, S3), and check an owner's orders to observers (M-45, M-52).
    """

    DIRECT = "direct"
    """Only through an existing live link: the sender has another route otherwise (P2P-30)."""


@attrs.frozen(slots=True)
class LinkHint:
    """Sender's hint in a message on how to set up a direct link to its receiver (RES-16).

    Attributes:
        handler: Address of the handler stub of the receiver's runtime.
        requester: Catalogue address of the requester stub.
    """

    handler: str
    requester: str


def hint_of(message: Message) -> LinkHint | None:
    """Return the hint on link setup that a message has for its own delivery, or None."""
    handler, requester = message.body.get("p2pHandler"), message.body.get("p2pRequester")
    if not isinstance(handler, str) or not isinstance(requester, str):
        return None
    return LinkHint(handler, requester)


def intent_of(message: Message) -> Intent:
    """Return the kinds of routes that may be used for a message without a local listener."""
    if message.body.get("p2p") is False or is_durable(message):
        return Intent.NODE
    if _is_signalling(message.from_, message.to) or taken_off(message) is not None:
        return Intent.NODE
    if message.type in _OBSERVING and message.to.endswith(_SUBSCRIPTION):
        return Intent.NODE
    if CHILDREN in message.to:
        # Only the node knows all receivers of children.
        return Intent.NODE
    if not message.is_request:
        return Intent.KNOWN
    return Intent.LINK if message.body.get("p2p") is True else Intent.REACH


def taken_off(message: Message) -> str | None:
    """Return the object that a message orders an observer to leave or observe again (M-45, M-52).

    Such orders come from the owner's address `O/subscription`, or from the reporter. None: the
    message is no such order.
    """
    if message.type not in _OBSERVING or message.is_response:
        return None
    if message.from_.endswith(_SUBSCRIPTION):
        return message.from_.removesuffix(_SUBSCRIPTION)
    named = message.body.get("resource")
    is_of_part = scheme_of(message.from_) == RUNTIME_SCHEME
    if message.type is MessageType.SUBSCRIBE or is_of_part or not isinstance(named, str):
        return None
    return named


def _is_signalling(one_end: str, other_end: str) -> bool:
    return is_p2p_part(one_end) or is_p2p_part(other_end)


@lru_cache(maxsize=4096)
def is_p2p_part(address: str) -> bool:
    """Return whether an address belongs to a P2P stub, a link, or a Connection object."""
    scheme = scheme_of(address)
    if scheme == _CONNECTION_SCHEME:
        return True
    if scheme != RUNTIME_SCHEME:
        return False
    segments = address.split("/", _PART + 1)
    return len(segments) > _PART and segments[_PART] in _P2P_PARTS


@final
@attrs.frozen(slots=True)
class Refused:
    """Refusal of a request, with reply code and reason; nothing was changed."""

    code: Code
    why: str


@attrs.frozen(slots=True)
class RowChanged:
    """Addition, change or removal of a table row, which the host writes to the trace.

    Attributes:
        op: ADD, UPD or DEL.
        writer: Its writer (BUS-18).
    """

    op: Op
    table: str
    key: str
    val: str
    writer: str


class PortQueue:
    """Queue of the port calls of a core, executed in order after the core has returned.

    Attributes:
        due: Calls that are not executed yet.
    """

    due: deque[partial[Awaitable[None] | None] | partial[None]]


class CoreHost(PortQueue):
    """Host of a core whose port methods are all synchronous."""

    def perform(self) -> None:
        """Execute the queued calls of the core; calls caused by a call run before the next."""
        due, self.due = self.due, deque()
        for act in due:
            act()


_Host = TypeVar("_Host", bound=PortQueue)
_P = ParamSpec("_P")


def deferred(
    act: Callable[Concatenate[_Host, _P], Awaitable[None] | None],
) -> Callable[Concatenate[_Host, _P], None]:
    """Make a port's method queue its calls until `perform` executes them."""

    def put(self: _Host, /, *args: _P.args, **named: _P.kwargs) -> None:
        self.due.append(partial(act, self, *args, **named))

    update_wrapper(put, act)
    return put
