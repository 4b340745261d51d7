"""Tables that specify how messages are routed, and which checks precede the routing.

Routers use only the receiver's address, and their registry's knowledge about this address. The
first matching rule of the routing table decides. The checks run in the order of their table; the
first objection stops the message. Tests compare the routers of this project with the tables.
"""

import re
from enum import StrEnum
from typing import Final

import attrs

from specs.limits.protocol import HOP_LIMIT
from specs.message import Message, MessageType
from specs.reply_code import Code, DropReason


class Target(StrEnum):
    """Kinds of receivers that a router distinguishes; the first that fits decides the route."""

    ANSWER_AWAITED = "answer-awaited"
    LISTENER = "listener"
    OWN_RUNTIME = "own-runtime"
    BACKEND = "backend"
    LINK_LIVE = "link-live"
    LINK_SETTING_UP = "link-setting-up"
    LINK_LOST = "link-lost"
    LINK_POSSIBLE = "link-possible"
    UNKNOWN = "unknown"
    NO_STUB = "no-stub"


class Route(StrEnum):
    """Next hops that a router may choose for a message."""

    REQUESTER = "requester"
    LISTENERS = "listeners"
    NODE_STUB = "node-stub"
    P2P_STUB = "p2p-stub"
    NOWHERE = "nowhere"


class Aside(StrEnum):
    """Background tasks of the registry that the routing of a message starts."""

    NOTHING = "nothing"
    SET_UP_LINK = "set-up-link"
    RECONNECT = "reconnect"


@attrs.frozen(slots=True)
class Rule:
    """One rule of a routing table: the next hop for one kind of receiver.

    Attributes:
        target: The kind of receiver.
        route: The next hop of the message.
        cite: Requirements in the protocol pages that demand the rule.
        aside: The background task that is started.
        refusal: The code of the answer to a request that is not delivered; an event is dropped.
    """

    target: Target
    route: Route
    cite: str
    aside: Aside = Aside.NOTHING
    refusal: Code | None = None


# fmt: off
RULES: Final = (
    Rule(Target.ANSWER_AWAITED,  Route.REQUESTER, "BUS-07, I-B4"),
    Rule(Target.LISTENER,        Route.LISTENERS, "BUS-01, BUS-03, I-B2"),
    Rule(Target.OWN_RUNTIME,     Route.NOWHERE,   "BUS-14, I-B6, SC-02", refusal=Code.NOT_FOUND),
    Rule(Target.BACKEND,         Route.NODE_STUB, "RES-01, RES-15, I-R1, I-R5"),
    Rule(Target.LINK_LIVE,       Route.P2P_STUB,  "RES-02, RES-05, I-R2, I-R3, SC-20"),
    Rule(Target.LINK_SETTING_UP, Route.NODE_STUB, "RES-11, I-R4, SC-16"),
    Rule(Target.LINK_LOST,       Route.NODE_STUB, "RES-12, I-R4, SC-25",  Aside.RECONNECT),
    Rule(Target.LINK_POSSIBLE,   Route.NODE_STUB, "RES-06..09, C-20, C-21", Aside.SET_UP_LINK),
    Rule(Target.UNKNOWN,         Route.NODE_STUB, "RES-04, RES-15, SC-13"),
    Rule(Target.NO_STUB,         Route.NOWHERE,   "RES-14, I-B12, SC-06", refusal=Code.UNAVAILABLE),
)
"""The routing table of a runtime's Message BUS (BUS-06)."""

NODE_RULES: Final = (
    Rule(Target.ANSWER_AWAITED,  Route.REQUESTER, "BUS-07"),
    Rule(Target.LISTENER,        Route.LISTENERS, "MN-01, MN-02, ADR-03"),
    Rule(Target.UNKNOWN,         Route.NOWHERE,   "MN-27, ADR-04", refusal=Code.NOT_FOUND),
)
"""The routing table of a message node in the triangle topology, where nodes do not connect to
each other (C-49)."""
# fmt: on


class Check(StrEnum):
    """Checks that a router applies to a message before it chooses a route."""

    NORMAL_FORM = "normal-form"
    SESSION = "session"
    SOURCE = "source"
    STATUS_SENDER = "status-sender"
    CHILD_WRITER = "child-writer"
    STUB_COMMAND = "stub-command"
    LOOP = "loop"
    BEFORE_POLICY = "before-policy"
    POLICY = "policy"
    AFTER_POLICY = "after-policy"
    DUPLICATE = "duplicate"


class Direction(StrEnum):
    """The two pipelines of checks in a Message BUS; each message passes one (BUS-11, POL-17)."""

    INCOMING = "incoming"
    """Messages that a stub brings from outside."""

    OUTGOING = "outgoing"
    """Messages that components of this runtime submit; also a stub's own messages."""


class Power(StrEnum):
    """What a check may do with a message, besides letting the message pass."""

    REFUSE = "refuse"
    CHANGE = "change"


class Exempt(StrEnum):
    """Groups of messages from which a check may exempt (BUS-13)."""

    SHARED_ANSWERS = "shared-answers"
    """Answers that a stub brings from an address with many listeners (C-81)."""

    ANSWERS = "answers"
    OWN_STATUS = "own-status"
    """Status events of a stub of this runtime."""

    PARTS = "parts"
    """Messages between components of the runtime itself; stubs do not count as such (SC-23)."""


_BOTH: Final = frozenset(Direction)
_REFUSE: Final = frozenset({Power.REFUSE})
_OWN: Final = frozenset({Exempt.OWN_STATUS, Exempt.PARTS})


@attrs.frozen(slots=True)
class Interception:
    """One check of a router, and what happens to a message that does not pass.

    Attributes:
        refusal: Code of the answer to a request; None: the message is dropped without an answer.
        drop: The reason that is reported when a message is dropped: an event, an answer, or any
            message if `refusal` is None.
        exempt: Messages that the check does not apply to.
        may: What the check may do besides letting a message pass.
        directions: The pipelines that contain the check.
    """

    check: Check
    refusal: Code | None
    drop: DropReason
    cite: str
    exempt: frozenset[Exempt] = frozenset()
    may: frozenset[Power] = _REFUSE
    directions: frozenset[Direction] = _BOTH


_APPLICATION: Final = frozenset({Power.REFUSE, Power.CHANGE})

RUNTIME_CHECKS: Final = (
    Interception(
        Check.SOURCE,
        Code.UNAUTHENTICATED,
        DropReason.UNKNOWN_SOURCE,
        "BUS-12, C-22, I-B10",
        exempt=frozenset({Exempt.SHARED_ANSWERS}),
    ),
    Interception(Check.STATUS_SENDER, None, DropReason.FORGED_STATUS, "ADR-06, I-S3"),
    Interception(Check.CHILD_WRITER, Code.FORBIDDEN, DropReason.DENIED, "SYN-24, I-D10, SC-36"),
    Interception(Check.STUB_COMMAND, Code.FORBIDDEN, DropReason.DENIED, "P2P-29, STB-04"),
    Interception(Check.LOOP, None, DropReason.LOOP, "STB-06, I-L2"),
    Interception(
        Check.BEFORE_POLICY,
        Code.FORBIDDEN,
        DropReason.DENIED,
        "BUS-11, BUS-13",
        exempt=_OWN,
        may=_APPLICATION,
    ),
    Interception(
        Check.POLICY,
        Code.FORBIDDEN,
        DropReason.DENIED,
        "BUS-11, BUS-13, I-B8, I-B9",
        exempt=_OWN | {Exempt.ANSWERS},
    ),
    Interception(
        Check.AFTER_POLICY,
        Code.FORBIDDEN,
        DropReason.DENIED,
        "BUS-11, BUS-13",
        exempt=_OWN,
        may=_APPLICATION,
    ),
    Interception(Check.DUPLICATE, None, DropReason.DUPLICATE, "MSG-07, I-P22"),
)
"""The checks of a Message BUS, in order (BUS-11).

Nothing is remembered or resolved for a message before the policies permit the message (C-22). The
stages before and after the policy check are for interceptors of the application. No stage can skip
the later ones, so every message is checked by the policies (I-B8).
"""

APPLICATION_STAGES: Final = tuple(row.check for row in RUNTIME_CHECKS if Power.CHANGE in row.may)
"""The checks at which an application can add interceptors of its own."""

NODE_CHECKS: Final = (
    Interception(Check.NORMAL_FORM, Code.MALFORMED, DropReason.MALFORMED, "MN-03, MSG-18, I-T10"),
    Interception(Check.SESSION, Code.UNAUTHENTICATED, DropReason.SESSION_GONE, "MN-03, I-M1"),
    Interception(Check.SOURCE, Code.UNAUTHENTICATED, DropReason.UNKNOWN_SOURCE, "MN-03, I-A3"),
    Interception(Check.LOOP, None, DropReason.LOOP, "MN-03, I-L2"),
    Interception(Check.POLICY, Code.FORBIDDEN, DropReason.DENIED, "MN-03, I-M8, I-B9"),
)
"""The checks of a message node, in order; each message passes them once (I-M8)."""


_BACKENDS: Final = "domain://"
_REGISTRIES: Final = "domain://registry."
_SERVICE: Final = re.compile(r"domain://msg-node\.[^/]+/(session|sm|.*address-allocation)(/|$)")


def is_of_session(request: Message) -> bool:
    """Return whether a request acts on the session of a runtime at a node, or on its registrations.

    Such a request belongs to the session, whichever component of the runtime has sent it.
    """
    to = request.to
    if not to.startswith(_BACKENDS):
        # Nearly all requests.
        return False
    is_written = request.type is not MessageType.READ and to.startswith(_REGISTRIES)
    return is_written or _SERVICE.match(to) is not None


def is_routing_loop(message: Message) -> bool:
    """Return whether a message has crossed a stub twice, or too many stubs (STB-06)."""
    via = message.via
    return len(via) > HOP_LIMIT or len(set(via)) != len(via)
