"""The routes of messages, and the checks before routing, both as tables.

Routers use only `to`, and their registry's knowledge of it. The first matching row of the decision
table decides. The checks run in the order of their table; the first objection ends the message's
route. Tests compare the routers with these rows.
"""

import re
from enum import StrEnum
from typing import Final

import attrs

from specs.limits.protocol import HOP_LIMIT
from specs.message import Message, MessageType
from specs.reply_code import Code, DropReason


class Target(StrEnum):
    """The kind of target that a router finds for `to`; tried from top to bottom."""

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
    """The next hop of the message."""

    REQUESTER = "requester"
    LISTENERS = "listeners"
    NODE_STUB = "node-stub"
    P2P_STUB = "p2p-stub"
    NOWHERE = "nowhere"


class Aside(StrEnum):
    """Work of the registry that a message causes, and that never delays it."""

    NOTHING = "nothing"
    SET_UP_LINK = "set-up-link"
    RECONNECT = "reconnect"


@attrs.frozen(slots=True)
class Rule:
    """One row of the decision table.

    Attributes:
        target: The kind of target of `to`.
        route: The route of the message.
        cite: The place in the protocol pages that demands it.
        aside: The work that is started in the background.
        refusal: The answer to a request that is not delivered; an event is dropped.
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
"""The decision table of a runtime's Message BUS (BUS-06)."""

NODE_RULES: Final = (
    Rule(Target.ANSWER_AWAITED,  Route.REQUESTER, "BUS-07"),
    Rule(Target.LISTENER,        Route.LISTENERS, "MN-01, MN-02, ADR-03"),
    Rule(Target.UNKNOWN,         Route.NOWHERE,   "MN-27, ADR-04", refusal=Code.NOT_FOUND),
)
"""The decision table of a node in the triangle topology (C-49), which can ask no registry."""
# fmt: on


class Check(StrEnum):
    """The checks of a router before it looks for a route."""

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
    """The pipeline of a Message BUS that a message takes (BUS-11, POL-17)."""

    INCOMING = "incoming"
    """Messages that a stub brings from outside."""

    OUTGOING = "outgoing"
    """Messages that components of this runtime submit; also a stub's own messages."""


class Power(StrEnum):
    """The powers of a stage over a message, besides letting it pass."""

    REFUSE = "refuse"
    CHANGE = "change"


class Exempt(StrEnum):
    """Messages that a stage does not check (BUS-13)."""

    SHARED_ANSWERS = "shared-answers"
    """Answers that a stub brings from an address with many listeners (C-81)."""

    ANSWERS = "answers"
    OWN_STATUS = "own-status"
    """Status events of a stub of this runtime."""

    PARTS = "parts"
    """Messages between the runtime's own parts; a stub is none of them (SC-23)."""


_BOTH: Final = frozenset(Direction)
_REFUSE: Final = frozenset({Power.REFUSE})
_OWN: Final = frozenset({Exempt.OWN_STATUS, Exempt.PARTS})


@attrs.frozen(slots=True)
class Interception:
    """One check, and the consequence of its objection.

    Attributes:
        refusal: The answer to a request; `None` drops the message without an answer.
        drop: The reason for which an event or answer is dropped, and every message without a
            refusal.
        exempt: Messages that it does not check.
        may: Its powers besides letting a message pass.
        directions: The pipelines it is a stage of.
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
"""The pipelines of a Message BUS: their stages in order (BUS-11).

Nothing is remembered or resolved for a message before policy permits it (C-22). The stages
before and after policy are the application's own, and empty if it brings none. No stage
delivers past the others: what would not be judged could be sent (I-B8).
"""

APPLICATION_STAGES: Final = tuple(row.check for row in RUNTIME_CHECKS if Power.CHANGE in row.may)
"""The positions of an application's own stages."""

NODE_CHECKS: Final = (
    Interception(Check.NORMAL_FORM, Code.MALFORMED, DropReason.MALFORMED, "MN-03, MSG-18, I-T10"),
    Interception(Check.SESSION, Code.UNAUTHENTICATED, DropReason.SESSION_GONE, "MN-03, I-M1"),
    Interception(Check.SOURCE, Code.UNAUTHENTICATED, DropReason.UNKNOWN_SOURCE, "MN-03, I-A3"),
    Interception(Check.LOOP, None, DropReason.LOOP, "MN-03, I-L2"),
    Interception(Check.POLICY, Code.FORBIDDEN, DropReason.DENIED, "MN-03, I-M8, I-B9"),
)
"""Order of checks at a node, once per message (I-M8)."""


_BACKENDS: Final = "domain://"
_REGISTRIES: Final = "domain://registry."
_SERVICE: Final = re.compile(r"domain://msg-node\.[^/]+/(session|sm|.*address-allocation)(/|$)")


def is_of_session(request: Message) -> bool:
    """Return whether a request counts as one of its session, whichever component sent it."""
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
