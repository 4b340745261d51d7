"""A scenario has the network lose or double one message, and tells what actors make of it.

The oracle is the protocol's: who asks and hears nothing gets 408 after 15 s (page 03, 3.3
transaction), a link that is not set up fails after 10 s, and its messages go by the node.
"""

import pytest

from specs.trace import Op
from tests.conformance.play.match.names import Names
from tests.conformance.play.match.observer import Observer
from tests.conformance.play.match.score import Score
from tests.conformance.play.player import perform, play
from tests.conformance.play.scripts import scenario
from tests.conformance.play.stage.stage import open_stage

ZOE = "hyperty://b.ex/zoe"
ASK = {"id": 1, "type": "read", "from": "HA", "to": ZOE, "body": {"of": "x"}}
ANSWER = {"id": 1, "type": "response", "from": ZOE, "to": "HA", "body": {"code": 200, "value": 1}}
SILENCE = {**ANSWER, "body": {"code": 408, "description": "..."}}
OUT = "HA>RA.bus>SAB~wire~MN.b"
BACK = "zoe>RB.bus>SB~wire~MN.b"
UNHEARD = [
    {"k": "time", "dt": 15, "why": "nothing is answered"},
    {"k": "msg", "hop": "RA.bus>HA", "msg": SILENCE, "synthetic": True},
]


def message(hop, reported=ASK, **marks):
    return {"k": "msg", "hop": hop, "msg": reported, **marks}


def lost(hop, reported=ASK):
    return message(hop, reported, drop="lost")


SENDERS = {"HA": "HA", "hyperty://a.ex/ha": "HA", ZOE: ZOE}


def sent(step):
    """A step, and what has its message sent where a hyperty does."""
    by = SENDERS.get(step["msg"]["from"]) if step["k"] == "msg" else None
    is_first = by is not None and not step.get("dup") and not step.get("synthetic")
    if not is_first:
        return (step,)
    word = "answer" if step["msg"]["type"] == "response" else "send"
    return {"do": word, "by": by}, step


def new(steps):
    lines = [one for step in steps for one in (sent(step) if "k" in step else (step,))]
    return scenario(*lines)


async def difference(steps):
    return (await play(new(steps))).difference


# ---- what is lost


@pytest.mark.parametrize(
    "steps",
    [
        [lost(OUT)],
        [lost(f"{OUT}~wire~SB")],
        [message(OUT), lost("MN.b~wire~SB", ASK) | {"dup": True}],
        [lost("HA>..>zoe")],
        [message(f"{OUT}~wire~SB>RB.bus>zoe"), lost(BACK, ANSWER)],
        [message("HA>..>zoe"), lost(f"{BACK}~wire~SAB", ANSWER)],
        [message("HA>..>zoe"), lost("zoe>..>HA", ANSWER)],
    ],
    ids=["out 1", "out 2", "later hop", "out", "back 1", "back 2", "back"],
)
async def test_the_requester_is_notified_of_the_missing_answer(autojump_clock, steps):
    assert await difference([*steps, *UNHEARD]) is None


@pytest.mark.parametrize("hop", [OUT, f"{OUT}~wire~SB", "HA>..>zoe"])
async def test_a_lost_message_does_not_arrive(autojump_clock, hop):
    arrived = message("MN.b~wire~SB>RB.bus>zoe") | {"dup": True}
    found = await difference([lost(hop), arrived])
    assert found is not None
    assert found.number == 2


def numbered(number, reported=ASK):
    return {**reported, "id": number}


def at_bus(*numbers):
    """They wait for a stub, and go in one frame when it is there."""
    return [message("HA>RA.bus", numbered(n)) for n in numbers]


def later(number, hop, **marks):
    return message(hop, numbered(number), dup=True, **marks)


@pytest.mark.parametrize("gone", [1, 2, 3])
async def test_of_messages_in_one_frame_the_one_is_lost_that_is_meant(autojump_clock, gone):
    others = [n for n in (1, 2, 3) if n != gone]
    away = later(gone, "SAB~wire~MN.b", drop="lost")
    went = [away if n == gone else later(n, "SAB~wire~MN.b..>zoe") for n in (1, 2, 3)]
    answered = [message("zoe>..>HA", numbered(n, ANSWER)) for n in others]
    unheard = message("RA.bus>HA", numbered(gone, SILENCE), synthetic=True)
    assert await difference([*at_bus(1, 2, 3), *went, *answered, UNHEARD[0], unheard]) is None


async def test_an_earlier_message_is_not_lost_in_place_of_the_selected_one(autojump_clock):
    went = [later(n, "SAB~wire~MN.b..>zoe") for n in (1, 2)]
    assert await difference([*at_bus(1, 2), lost(OUT, numbered(3)), *went]) is None


KEEP_ALIVE = {
    "id": 1,
    "type": "update",
    "from": "RA/registry",
    "to": "DRA",
    "body": {"resource": "HA"},
}
KEPT = "RA.registry>RA.bus>SA~wire~MN.a"


async def test_messages_alike_that_are_reported_before_are_let_pass(autojump_clock):
    """A record is kept alive once in 3600 s / 2.2, so twice in this time."""
    steps = [
        message("HA>RA.bus>HA2", {**ASK, "to": "HA2"}),
        {"k": "time", "dt": 3500},
        message(KEPT, KEEP_ALIVE),
        lost(KEPT, numbered(2, KEEP_ALIVE)),
    ]
    assert await difference(steps) is None


LINK = [*(f"hyperty-runtime://{one}.ex/r{one}" for one in "ab"), "requester"]
INVITATION = {
    "id": 1,
    "type": "create",
    "from": "connection://a.ex/c1/subscription",
    "to": "PH",
    "body": {"source": "PQ"},
}
UNINVITED = [
    {"do": "ask", "by": "HA", "of": "HB"},
    {"k": "state", "machine": "p2p", "key": LINK, "old": None, "new": "created"},
    {"k": "state", "machine": "p2p", "key": LINK, "old": "created", "new": "in-progress"},
    lost("RA.sm>RA.bus>SAB~wire~MN.b", INVITATION),
    {"k": "time", "dt": 10, "why": "the link is not set up in time"},
    {"k": "state", "machine": "p2p", "key": LINK, "old": "in-progress", "new": "failed"},
    {"k": "table", "table": "p2p", "op": "del", "at": "RA.registry", "key": LINK[1]},
    message(f"{OUT}~wire~SB>RB.bus>HB", {**ASK, "to": "HB"}),
]
"""A link of which its peer never hears."""


async def test_a_link_whose_invitation_is_lost_fails_and_messages_go_by_the_node(autojump_clock):
    assert await difference(UNINVITED) is None


async def test_a_link_whose_invitation_arrives_does_not_fail_then(autojump_clock):
    steps = [*UNINVITED]
    steps[3] = message("RA.sm>..>PH", INVITATION)
    found = await difference(steps)
    assert found is not None
    assert found.number > 3


@pytest.mark.parametrize(
    "steps",
    [
        [lost("HA>RA.bus>HA2", {**ASK, "to": "HA2"})],
        [message("HA>..>zoe"), lost("zoe>RB.bus>SB~wire~MN.b", {**ANSWER, "id": 2})],
        [message("HA>RA.bus>HA2", {**ASK, "to": "HA2"}, doubled=True)],
        [message("HA>..>HA2", {**ASK, "to": "HA2"}, doubled=True)],
    ],
    ids=["by no wire", "by nobody", "doubled by no wire", "doubled by no wire, untold"],
)
async def test_a_message_without_a_wire_is_neither_lost_nor_doubled(autojump_clock, steps):
    found = await difference(steps)
    assert found is not None
    assert found.number == len(steps)
    if found.number == 1:
        assert found.seen[0].startswith("no such message went between a runtime and a message")


# ---- what comes twice


@pytest.mark.parametrize("hop", ["HA>..>zoe", f"{OUT}~wire~SB>RB.bus>zoe"])
async def test_a_doubled_message_arrives_twice(autojump_clock, hop):
    scenario, observer, names = new([message(hop, doubled=True)]), Observer(), Names()
    async with open_stage(scenario, observer, names) as stage:
        found = await perform(stage, Score(scenario, observer, names))
    came = [
        seen.who
        for seen in observer.items
        if seen.fact.op is Op.RCV and seen.fact.to == names.actual(ZOE)
    ]
    assert found is None
    assert came.count("domain://msg-node.b.ex") == 2


@pytest.mark.parametrize(("delay", "is_late"), [(3, False), (20, True)])
async def test_a_delayed_message_arrives_later_or_too_late(autojump_clock, delay, is_late):
    """Who asks waits for 15 s."""
    late = message("HA>..>zoe", delayed=delay)
    answered = message("zoe>..>HA", ANSWER)
    steps = [message(OUT, delayed=delay), UNHEARD[1]] if is_late else [late, answered]
    assert await difference(steps) is None
