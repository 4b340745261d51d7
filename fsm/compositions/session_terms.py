"""The words of the composition `session`: parts, variables, messages, and when it may rest."""

from collections.abc import Mapping
from typing import Final

from fsm.product.composition import (
    Channel,
    End,
    Message,
    Never,
    Part,
    Variable,
    Wire,
    Wish,
)
from fsm.table import Table
from specs.jsonvalue import JsonObject

__all__ = [
    "CHANNELS",
    "CONNECT",
    "CUT",
    "DISCONNECT",
    "ENDS",
    "FREE",
    "GIVEN",
    "LINKS",
    "MESSAGES",
    "NEVER",
    "RESTART",
    "SUBSCRIBE",
    "TO_NODE",
    "TO_STUB",
    "UNSUBSCRIBE",
    "USE",
    "VARIABLES",
    "WISHES",
    "parts",
]

TO_NODE: Final = "to-node"
TO_STUB: Final = "to-stub"
LINKS: Final = ("1", "2", "3")
"""Links of one run, in the order they are dialled."""

CONNECT: Final = "the first message is sent"
DISCONNECT: Final = "the stub is told to disconnect"
USE: Final = "an address is wanted"
FREE: Final = "the address is freed"
SUBSCRIBE: Final = "the address is subscribed"
UNSUBSCRIBE: Final = "the address is unsubscribed"
CUT: Final = "the link is cut"
RESTART: Final = "the node restarts"

_R: Final = "hyperty-runtime://a.ex/ra"
_S: Final = f"{_R}/protostub/1"
_SESSION: Final = "domain://msg-node.a.ex/session"
_TOKEN: Final = {"token": "t1"}
_ADDRESS: Final = "hyperty://a.ex/ha"


def parts(tables: Mapping[str, Table]) -> tuple[Part, ...]:
    """Return who meets; their tables are looked up in `tables`."""
    return (
        Part("stub", tables["stub_connection"], "stub", _S),
        Part("session", tables["session"], "node", f"domain://msg-node.a.ex|{_R}|{{n}}"),
        Part("address", tables["address"], "node", f"{_ADDRESS}{{n}}"),
        Part("path", tables["node_subscription"], "node", f"{_ADDRESS}|{_R}|{{n}}"),
    )


VARIABLES: Final = (
    Variable("phase", ("idle", "away", "opening", "open", "closing", "ended")),
    Variable("token", ("none", "good", "stale")),
    Variable("link", ("none", *LINKS)),
    Variable("held", ("none", *LINKS)),
)
"""What the stub is at, which token it knows, its newest link; the link that has the session."""

CHANNELS: Final = (Channel(TO_NODE, "stub", "node"), Channel(TO_STUB, "node", "stub"))


def _asks(method: str, **more: str) -> Wire:
    return Wire(
        "SA~wire~MN.a",
        {
            "type": "execute",
            "from": _S,
            "to": _SESSION,
            "body": {"method": method, "params": {"runtimeURL": _R, **more}},
        },
    )


def _answers(method: str, code: int) -> Wire:
    return Wire("MN.a~wire~SA", _from_node({"code": code}), answers=method)


def _from_node(body: JsonObject) -> JsonObject:
    return {"type": "response", "from": _SESSION, "to": _S, "body": body}


_ASKED: Final = (
    ("open", "M-14", _asks("open")),
    ("re-open", "M-15", _asks("re-open", **_TOKEN)),
    ("close", "M-16", _asks("close")),
    ("allocate", "M-18", None),
    ("free", "M-20", None),
    ("subscribe", "M-01", None),
    ("unsubscribe", "M-02", None),
    ("gone", "the link ends, as the node notices it", None),
)
_ANSWERED: Final = (
    ("opened", "M-14 200", _answers("open", 200)),
    ("refused", "M-14 409", _answers("open", 409)),
    ("re-opened", "M-15 200", _answers("re-open", 200)),
    ("forgotten", "M-15 410 or 401", _answers("re-open", 410)),
    ("closed", "M-16 200 or 401", _answers("close", 200)),
    ("cut", "the link ends, as the stub notices it", None),
)


def _numbered(wire: Wire | None, link: str) -> Wire | None:
    if wire is None or not wire.answers:
        return wire
    return Wire(wire.hop, wire.message, f"{wire.answers} {link}")


MESSAGES: Final = tuple(
    Message(f"{word} {link}", cite, _numbered(wire, link))
    for word, cite, wire in (*_ASKED, *_ANSWERED)
    for link in LINKS
)
"""Each with the number of the link that it goes by."""

_NODE: Final = "domain://msg-node.a.ex"

GIVEN: Final[tuple[JsonObject, ...]] = (
    {"given": "node", "domain": "a.ex"},
    {"given": "runtime", "is": _R},
    {"given": "hyperty", "is": _ADDRESS, "in": _R, "answers": True},
    {"given": "beginning", "before": "boot"},
)
"""Who is there in scenario files."""

WISHES: Final = (
    Wish(CONNECT, 1),
    Wish(DISCONNECT, 1),
    Wish(USE, 1),
    Wish(FREE, 1),
    Wish(SUBSCRIBE, 1),
    Wish(UNSUBSCRIBE, 1),
    Wish(CUT, 1, is_fault=True, done={"fault": "link cut", "between": [_R, _NODE]}),
    Wish(RESTART, 1, is_fault=True),
)

_OVER: Final = "[*]|closed|expired"

NEVER: Final = (
    Never(
        "A session is over, and an address or a path of it is left.",
        ({"session": _OVER, "address": "allocated"}, {"session": _OVER, "path": "active"}),
        "I-A7, I-M4",
    ),
    Never(
        "A path leads to an address that nobody has.",
        ({"path": "active", "address": "not allocated"},),
        "MN-12",
    ),
    Never(
        "A session is open without a link, or has one and is not open.",
        ({"session": "open", "held": "none"}, {"session": "not open", "held": "not none"}),
        "I-M2",
    ),
    Never(
        "A stub is live and knows no token.",
        ({"stub": "live", "token": "none"},),
        "MN-05",
    ),
    Never(
        "A stub is live and talks to nobody, or talks and is not live.",
        ({"stub": "live", "phase": "not open|closing"}, {"stub": "not live", "phase": "open"}),
        "I-S8",
    ),
    Never(
        "A stub goes on that was told to disconnect.",
        ({"phase": "ended", "stub": "not failed|disconnected"},),
        "I-S10",
    ),
    Never(
        "A stub has the token of a session that is over.",
        ({"token": "good", "session": _OVER},),
        "MN-05",
    ),
)

ENDS: Final = (
    End(
        "in touch",
        tuple(
            {"stub": "live", "phase": "open", "session": "open", "link": link, "held": link}
            for link in LINKS
        ),
    ),
    End("apart", ({"stub": "failed|disconnected", "session": _OVER},)),
    End("not begun", ({"stub": "[*]|created", "session": "[*]"},)),
)
