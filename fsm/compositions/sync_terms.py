"""The words of the composition `sync`: parts, variables, messages, and when it may rest."""

from collections.abc import Mapping
from itertools import combinations
from typing import Final

from fsm.product.bounds import Bounds
from fsm.product.composition import Channel, End, Medium, Message, Never, Part, Variable, Wire, Wish
from fsm.table import Table
from specs.jsonvalue import JsonObject

__all__ = [
    "ASKS",
    "CHANGE",
    "CHANGES",
    "CHANNELS",
    "DECIDE",
    "DELETE",
    "DOUBLED",
    "EARLY",
    "GIVEN",
    "INVITE",
    "INVITES",
    "LEAVE",
    "LOST",
    "MESSAGES",
    "NEVER",
    "OBSERVE",
    "TOLD",
    "VARIABLES",
    "VERSIONS",
    "ends",
    "parts",
    "wishes",
]

ASKS: Final = "asks"
INVITES: Final = "invites"
TOLD: Final = "told"
CHANGES: Final = "changes"
"""To the reporter; its invitations; its answers; what it publishes."""

VERSIONS: Final = ("1", "2", "3", "4")
"""Of the object: the one it is created with, and one more with each change."""

EARLY: Final = tuple(
    "".join(some) or "nothing"
    for count in range(len(VERSIONS))
    for some in combinations(VERSIONS[1:], count)
)
"""The versions that a copy keeps for later."""

INVITE: Final = "the reporter invites the observer"
OBSERVE: Final = "the observer wants to observe"
LEAVE: Final = "the observer leaves"
DELETE: Final = "the object is deleted"
DECIDE: Final = "the reporter decides"
CHANGE: Final = "the object is changed"
LOST: Final = "the object is changed or deleted, and what is said of it is lost"
DOUBLED: Final = "the object is changed, and the change comes twice"

_OBJECT: Final = "comm://a.ex/o"
_REPORTER: Final = "hyperty://a.ex/ha"
_OBSERVER: Final = "hyperty://b.ex/hb"
_MANAGER: Final = "hyperty-runtime://b.ex/rb/sm"
_SUBSCRIPTION: Final = f"{_OBJECT}/subscription"


def parts(tables: Mapping[str, Table]) -> tuple[Part, ...]:
    """Return who meets; their tables are looked up in `tables`."""
    key = f"{_OBJECT}|{_OBSERVER}"
    return (
        Part("invitation", tables["invitation"], "reporter", key),
        Part("subscription", tables["object_subscription"], "reporter", key),
        Part("copy", tables["observer_copy"], "observer", key),
    )


VARIABLES: Final = (
    Variable("object", ("there", "deleted")),
    Variable("version", VERSIONS),
    Variable("authorised", ("no", "yes")),
    Variable("have", ("0", *VERSIONS)),
    Variable("kept", EARLY),
)
"""The object and its version; whether the observer is invited; version of the copy, 0: none;
the changes that it keeps for later."""

GIVEN: Final[tuple[JsonObject, ...]] = (
    {"given": "node", "domain": "a.ex"},
    {"given": "node", "domain": "b.ex"},
    {"given": "runtime", "is": "RA"},
    {"given": "runtime", "is": "RB"},
    {"given": "hyperty", "is": _REPORTER, "in": "RA", "answers": True},
    {"given": "hyperty", "is": _OBSERVER, "in": "RB"},
    {"given": "object", "is": _OBJECT, "by": _REPORTER, "schema": "SCM"},
)
"""Who is there in scenario files."""

CHANNELS: Final = (
    Channel(ASKS, "observer", "reporter"),
    Channel(INVITES, "reporter", "observer"),
    Channel(TOLD, "reporter", "observer"),
    Channel(CHANGES, "reporter", "observer", Medium.LOCAL),
)


def _asked(kind: str, to: str, body: JsonObject, sender: str = _MANAGER) -> Wire:
    return Wire("RB.sm>..>RA.sm", {"type": kind, "from": sender, "to": to, "body": body})


def _answered(request: str, sender: str, body: JsonObject, to: str = _MANAGER) -> Wire:
    message: JsonObject = {"type": "response", "from": sender, "to": to, "body": body}
    return Wire("RA.sm>..>RB.sm", message, answers=request)


def _published(kind: str, sender: str, body: JsonObject) -> Wire:
    message: JsonObject = {"type": kind, "from": sender, "to": f"{_OBJECT}/changes", "body": body}
    return Wire("RA.sm>..>RB.sm", message, is_event=kind == "update")


def _changed(version: str) -> Wire:
    body: JsonObject = {
        "attribute": "data.n",
        "value": int(version),
        "version": int(version),
        "source": _REPORTER,
    }
    return _published("update", _OBJECT, body)


_OBSERVED: Final[JsonObject] = {"source": _OBSERVER}
_INVITED: Final = Wire(
    "RA.sm>..>HB",
    {
        "type": "create",
        "from": _SUBSCRIPTION,
        "to": _OBSERVER,
        "body": {
            "source": _REPORTER,
            "schema": "hyperty-catalogue://catalogue.a.ex/o",
            "value": {},
        },
    },
)


def _of_invitation(code: int) -> Wire:
    message: JsonObject = {"type": "response", "from": _OBSERVER, "to": _SUBSCRIPTION}
    told: JsonObject = {**message, "body": {"code": code}}
    answers: JsonObject = {"do": "answer", "by": _OBSERVER}
    return Wire("HB>..>RA.sm", told, answers="invite", done=answers)


MESSAGES: Final = (
    Message("invite", "M-34", _INVITED),
    Message("trying", "M-34 1xx", _of_invitation(100)),
    Message("accepted", "M-34 200", _of_invitation(200)),
    Message("declined", "M-34 4xx", _of_invitation(403)),
    Message("subscribe", "M-38", _asked("subscribe", _SUBSCRIPTION, _OBSERVED)),
    Message("denied", "M-38 403, 404", _answered("subscribe", _SUBSCRIPTION, {"code": 403})),
    Message("unsubscribe", "M-43", _asked("unsubscribe", _SUBSCRIPTION, _OBSERVED)),
    Message("read", "M-41", _asked("read", _OBJECT, {}, _OBSERVER)),
    Message("unreadable", "M-41 401", _answered("read", _OBJECT, {"code": 401}, _OBSERVER)),
    Message("deleted", "M-47", _published("delete", _SUBSCRIPTION, {})),
    *(Message(f"changed {version}", "M-40", _changed(version)) for version in VERSIONS[1:]),
    *(Message(f"granted {version}", "M-38 200") for version in VERSIONS),
    *(Message(f"value {version}", "M-41 200") for version in VERSIONS),
)


def wishes(bounds: Bounds) -> tuple[Wish, ...]:
    """Return what the surroundings may want; a lost change or farewell is the network's fault.

    That the reporter decides is a wish: it may say nothing for ever.
    """
    return (
        Wish(INVITE, 1),
        Wish(OBSERVE, 1),
        Wish(LEAVE, 1),
        Wish(DELETE, 1),
        Wish(DECIDE, 1),
        Wish(CHANGE, 1),
        Wish(LOST, bounds.losses, is_fault=True),
        Wish(DOUBLED, bounds.duplicates, is_fault=True),
    )


NEVER: Final = (
    Never("A copy is live and has nothing.", ({"copy": "live", "have": "0"},), "I-D5"),
    Never(
        "A copy is live, and a change waits to be applied.",
        ({"copy": "live", "kept": "not nothing"},),
        "I-D3",
    ),
    Never(
        "A copy is newer than the object.",
        tuple(
            {"version": version, "have": newer}
            for version in VERSIONS
            for newer in VERSIONS
            if newer > version
        ),
        "I-D3",
    ),
    Never(
        "Somebody is being admitted to an object that is no more.",
        (
            {"object": "deleted", "subscription": "requested"},
            {"object": "deleted", "invitation": "sent"},
        ),
        "I-D8",
    ),
)


def ends() -> tuple[End, ...]:
    """Return where all may rest."""
    asked = {"invitation": "not sent"}
    gone = {**asked, "copy": "[*]|deleted"}
    in_step = tuple(
        {
            **asked,
            "object": "there",
            "copy": "live",
            "subscription": "active",
            "version": version,
            "have": version,
        }
        for version in VERSIONS
    )
    return (
        End("in step", in_step),
        End("not observed", ({**gone, "subscription": "[*]|refused|removed"},)),
    )
