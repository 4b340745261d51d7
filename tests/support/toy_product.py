"""Somebody asks, somebody answers, on a wire that may lose: small enough to count by hand."""

from enum import StrEnum

import attrs

from fsm.product.bounds import Bounds
from fsm.product.composition import Channel, Composition, End, Message, Part, Wish
from fsm.product.rule import Rule, act, after, begin, got, ignore, move, send, wished
from fsm.table import Deadline, Table, Transition


class Call(StrEnum):
    ASKED = "asked"
    DONE = "done"
    LATE = "late"


class Pull(StrEnum):
    ASK = "ask"
    ANSWER = "answer"
    SILENCE = "silence"


ROWS = (
    Transition(None, Pull.ASK, Call.ASKED, "toy"),
    Transition(Call.ASKED, Pull.ANSWER, Call.DONE, "toy"),
    Transition(Call.ASKED, Pull.SILENCE, Call.LATE, "toy"),
)

CALL = Table(
    name="call",
    owner="toy",
    key="one",
    states=Call,
    triggers=Pull,
    rows=ROWS,
    may_end=frozenset({Call.DONE, Call.LATE}),
    deadlines=(Deadline(Call.ASKED, "REPLY_TIMEOUT", Pull.SILENCE, "toy"),),
    drawn_in="nowhere",
)

ANSWERED = Rule(got("back", "reply"), act({"asker": "asked"}, move("asker", Pull.ANSWER)), "toy")
TOO_LATE = Rule(got("back", "reply"), ignore({"asker": "not asked"}, "nobody waits"), "toy")
RULES = (
    Rule(
        wished("ask"), act({"asker": "[*]"}, begin("asker", Pull.ASK), send("there", "ask")), "toy"
    ),
    Rule(got("there", "ask"), act({}, send("back", "reply")), "toy"),
    Rule(after("asker", Pull.SILENCE), act({}, move("asker", Pull.SILENCE)), "toy"),
    ANSWERED,
    TOO_LATE,
)


def toy(table=CALL, losses=0, duplicates=0, **changes) -> Composition:
    whole = Composition(
        name="toy",
        about="Somebody asks and somebody answers.",
        parts=(Part("asker", table, "alice", "call|{n}"),),
        channels=(Channel("there", "alice", "bob"), Channel("back", "bob", "alice")),
        messages=(Message("ask", "toy"), Message("reply", "toy")),
        wishes=(Wish("ask", 1),),
        rules=RULES,
        ends=(End("nobody waits", ({"asker": "not asked"},)),),
        bounds=Bounds(losses=losses, duplicates=duplicates),
    )
    return attrs.evolve(whole, **changes)
