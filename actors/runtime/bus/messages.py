"""Messages of the buses of a runtime, which share no other objects."""

from enum import Enum
from typing import TypeAlias, final

import attrs

from actors.kit.supervision.actor import ActorRef, Reply
from actors.kit.supervision.delivery import Delivery
from actors.runtime.bus.delivery import Full
from actors.runtime.bus.fair_queue import Permit
from fsm.bus.child_paths import ChildPath
from fsm.bus.forward_rules import ForwardRule
from fsm.bus.transactions import ASKED_ONCE, Terms
from fsm.intent import Intent
from fsm.p2p.transfer import Behind
from fsm.registry.resolve.resolve_io import (
    Asked,
    LinkForged,
    NoRoute,
    OwnerAsked,
    Route,
    RoutesChanged,
    SenderEvents,
)
from specs.message import Message
from specs.reply_code import Code

__all__ = [
    "Announced",
    "Anonymised",
    "BusMessage",
    "BusQuestion",
    "CaughtUp",
    "ChildrenLed",
    "Expelled",
    "Followed",
    "FollowingMessage",
    "ForwardAdded",
    "ForwardRemoved",
    "Granted",
    "HandedBack",
    "HandedOn",
    "HeardBy",
    "KeptIn",
    "LinkMessage",
    "ListenerAdded",
    "ListenerRemoved",
    "Lost",
    "MiniBusMessage",
    "Named",
    "Origin",
    "RegistryJoined",
    "ReleaseAsked",
    "Revoked",
    "Room",
    "RoutingMessage",
    "SentOut",
    "Submitted",
    "Unfollowed",
]


class Origin(Enum):
    """The kind of the submitting component: it decides which `from` is allowed."""

    LOCAL = "local"
    NODE_STUB = "node-stub"
    P2P_STUB = "p2p-stub"


@final
@attrs.define(slots=True, eq=False)
class Submitted:
    """A component hands a message to the Message BUS.

    Attributes:
        by: Address under which the component submits (BUS-12).
        reply: Where the final answer goes; None: to the listener of `from`.
        terms: How it is asked; `awaited` are the runtimes whose components observe what is
            said here, this one's included (BUS-09), of a request each to answer for itself.
        place: To be given back; None: the submitter is not held up.
        intent: How it may go; None: as messages of its kind do.
    """

    message: Message
    by: str
    reply: Reply[Message] | None = None
    terms: Terms = ASKED_ONCE
    place: Permit | None = None
    intent: Intent | None = None


@final
@attrs.frozen(slots=True)
class HandedBack:
    """A stub could not deliver these: route them again, order kept.

    Attributes:
        by: The stub's address, or the connection's.
    """

    messages: tuple[Message, ...]
    by: str


@final
@attrs.frozen(slots=True)
class Room:
    """The stub of a node has room for more messages.

    Attributes:
        stub: Address of the stub.
        count: How many.
        is_first: Whether the stub has just started, and has none of those it was given before.
    """

    stub: str
    count: int
    is_first: bool = False


@final
@attrs.frozen(slots=True)
class HandedOn:
    """A part of the runtime passes what came to it on to a component: it was let in already."""

    message: Message
    component: str


@final
@attrs.frozen(slots=True)
class Announced:
    """A link has announced what the messages of a pair follow that it brings (C-20).

    Attributes:
        by: The link's address.
    """

    behind: Behind
    by: str


@final
@attrs.frozen(slots=True)
class CaughtUp:
    """Report when a link brings the events of an address, and all that went before has come.

    Attributes:
        done: Answered then, or after `REPLY_TIMEOUT`.
    """

    address: str
    link: str
    done: Reply[None]


@final
@attrs.frozen(slots=True)
class Granted:
    """Allow messages submitted as `owner` to be sent from `address` and below it."""

    owner: str
    address: str
    origin: Origin
    done: Reply[None]


@final
@attrs.frozen(slots=True)
class Revoked:
    """Forbid messages submitted as `owner` to be sent from `address`. Idempotent."""

    owner: str
    address: str
    done: Reply[None]


@final
@attrs.frozen(slots=True)
class Named:
    """The name of a hyperty, for policies; None: the hyperty has ended."""

    component: str
    name: str | None
    done: Reply[None]


@final
@attrs.frozen(slots=True)
class Anonymised:
    """Send no identity of a sender by this stub (REG-15)."""

    stub: str
    done: Reply[None]


@final
@attrs.frozen(slots=True)
class ForwardAdded:
    """Copy messages by this rule (BUS-08, BUS-10).

    Attributes:
        done: Answered when the rule is there, or with a `ForwardRefusedError`.
    """

    rule: ForwardRule
    writer: str
    done: Reply[None]


@final
@attrs.frozen(slots=True)
class ForwardRemoved:
    """Remove a rule, unless other owners have added it as well. Idempotent."""

    rule: ForwardRule
    writer: str
    done: Reply[None]


@final
@attrs.frozen(slots=True)
class ListenerAdded:
    """Add `listener` as a receiver of messages to `address` (BUS-02).

    Attributes:
        writer: Writer of the row (BUS-18).
        done: Answered when the row is there.
    """

    address: str
    listener: ActorRef[Delivery]
    writer: str
    done: Reply[None]


@final
@attrs.frozen(slots=True)
class ListenerRemoved:
    """Nothing more of `address` goes to `listener`; repeated is fine.

    Attributes:
        listener: None: no listener gets messages any more.
    """

    address: str
    listener: ActorRef[Delivery] | None
    writer: str
    done: Reply[None]


@final
@attrs.frozen(slots=True)
class Followed:
    """Add the listeners of `component` as receivers of messages to `address` (SYN-06)."""

    address: str
    component: str
    writer: str
    done: Reply[None]


@final
@attrs.frozen(slots=True)
class Unfollowed:
    """Remove the listeners of `component` as receivers of messages to `address` (I-D7).

    Others that get it stay; repeated is fine.
    """

    address: str
    component: str
    writer: str
    done: Reply[None]


@final
@attrs.frozen(slots=True)
class Expelled:
    """Remove the listeners of `component` as receivers of all messages."""

    component: str
    writer: str
    done: Reply[None]


@final
@attrs.frozen(slots=True)
class SentOut:
    """Send messages to `address` also by a link, which has a listener (P2P-25)."""

    address: str
    link: str
    writer: str
    done: Reply[None]


@final
@attrs.frozen(slots=True)
class KeptIn:
    """It does no longer; repeated is fine, and so is a link that has no listener any more."""

    address: str
    link: str
    writer: str
    done: Reply[None]


@final
@attrs.frozen(slots=True)
class HeardBy:
    """Events of `address` may come by this link, and no other; None: by none."""

    address: str
    link: str | None
    done: Reply[None]


@final
@attrs.frozen(slots=True)
class ChildrenLed:
    """What components write at `address`, of children, takes this path (P2P-30)."""

    address: str
    path: ChildPath
    done: Reply[None]


@final
@attrs.frozen(slots=True)
class Lost:
    """A delivery that its receiver will never handle.

    Attributes:
        code: What a request is answered with.
        why: The same, for people.
        full: The queue that had no space for it; None: it was not lost for that.
    """

    delivery: Delivery
    code: Code
    why: str
    full: Full | None = None


@final
@attrs.frozen(slots=True)
class RegistryJoined:
    """Set the registry that resolves routes."""

    registry: ActorRef["BusQuestion"]
    done: Reply[None]


@final
@attrs.frozen(slots=True)
class ReleaseAsked:
    """Forget the routes by an idle stub, unless something depends on it (PFY-03).

    Attributes:
        stub: Address of the stub.
        domain: The domain that it leads to.
        done: Whether nothing does, so that the routes are forgotten.
    """

    stub: str
    domain: str
    done: Reply[bool]


BusQuestion: TypeAlias = Asked | OwnerAsked | LinkForged
"""Messages of a Message BUS to the registry."""

FollowingMessage: TypeAlias = Followed | Unfollowed | Expelled
"""Messages that name a listener by its component."""

LinkMessage: TypeAlias = SentOut | KeptIn | HeardBy | ChildrenLed
"""Messages that make a link a listener, a sender of changes, or the path of children."""

RoutingMessage: TypeAlias = (
    Granted
    | Revoked
    | Named
    | Anonymised
    | ListenerAdded
    | ListenerRemoved
    | ForwardRemoved
    | FollowingMessage
    | LinkMessage
)
"""Messages that change a Message BUS's tables."""

BusMessage: TypeAlias = (
    Submitted
    | HandedBack
    | HandedOn
    | Announced
    | CaughtUp
    | Room
    | Lost
    | Route
    | NoRoute
    | RoutesChanged
    | SenderEvents
    | RegistryJoined
    | ReleaseAsked
    | ForwardAdded
    | RoutingMessage
)
"""Messages to a Message BUS; routes come from the registry, which it asks for them."""

MiniBusMessage: TypeAlias = Delivery | ListenerAdded | ListenerRemoved
"""Messages to a MiniBUS."""
