"""A scenario that the player has never seen is played like any other."""

import pytest
import trio

from actors.kit.errors import RestartLimitError
from tests.conformance.play.player import play, survive
from tests.conformance.play.scripts import TWO, scenario, written
from tests.support.trace.recorded import scenario_of

ASK = {"id": 1, "type": "read", "from": "HA", "to": "hyperty://b.ex/zoe", "body": {"of": "x"}}
ANSWER = {
    "id": 1,
    "type": "response",
    "from": "hyperty://b.ex/zoe",
    "to": "HA",
    "body": {"code": 200, "value": [1, {"two": None}]},
}

SENT = {"do": "send", "by": "HA"}
ANSWERED = {"do": "answer", "by": "hyperty://b.ex/zoe"}

CALL = [
    SENT,
    {"k": "msg", "hop": "HA>RA.bus", "msg": ASK},
    {"k": "resolve", "at": "RA.registry", "to": "hyperty://b.ex/zoe", "result": "SAB"},
    {"k": "msg", "hop": "SAB~wire~MN.b~wire~SB>RB.bus>zoe", "msg": ASK, "dup": True},
    ANSWERED,
    {"k": "msg", "hop": "zoe>RB.bus>SB~wire~MN.b~wire~SAB>RA.bus>HA", "msg": ANSWER},
    {"k": "time", "dt": 3600, "why": "nothing happens"},
    SENT,
    {"k": "msg", "hop": "HA>..>zoe", "msg": {**ASK, "id": 2}},
    ANSWERED,
    {"k": "msg", "hop": "zoe>..>HA", "msg": {**ANSWER, "id": 2}},
]
"""Two calls of an outsider, an hour apart."""

DROWNED = [
    SENT,
    {"k": "msg", "hop": "HA>RA.bus", "msg": {**ASK, "to": "RA/attic"}},
    {
        "k": "msg",
        "hop": "RA.bus>HA",
        "msg": {**ANSWER, "from": "RA/attic", "body": {"code": 404, "description": "..."}},
        "synthetic": True,
    },
]
"""Nobody lives in the attic."""


def new(steps, **changes):
    """A scenario of these steps; `changes` by number, as `n3={...}`."""
    lines = written(*TWO, *steps, name="NEW-1")
    return scenario_of([line | changes.get(f"n{line.get('n')}", {}) for line in lines])


@pytest.mark.parametrize("steps", [CALL, DROWNED], ids=["call", "drowned"])
async def test_a_new_scenario_passes(autojump_clock, steps):
    outcome = await play(new(steps))
    assert outcome.difference is None


@pytest.mark.parametrize(
    ("steps", "number", "change"),
    [
        (CALL, 2, {"result": "PQ"}),
        (CALL, 3, {"hop": "SAB~wire~MN.a~wire~SB>RB.bus>zoe"}),
        (CALL, 3, {"drop": "loop"}),
        (DROWNED, 2, {"msg": {**ANSWER, "from": "RA/attic", "body": {"code": 403}}}),
    ],
    ids=["route", "node", "drop", "code"],
)
async def test_a_new_scenario_that_is_wrong_differs_there(autojump_clock, steps, number, change):
    outcome = await play(new(steps, **{f"n{number}": change}))
    assert outcome.difference is not None
    assert outcome.difference.number == number


async def test_a_difference_is_reported_in_the_words_of_the_scenario(autojump_clock):
    outcome = await play(new(CALL, n3={"hop": "SAB~wire~MN.b~wire~SB>RB.bus>HB"}))
    assert outcome.difference is not None
    (nearest, *_) = outcome.difference.seen
    assert "hyperty://b.ex/zoe" in nearest
    assert "by another route (no deliver to minibus:hyperty://b.ex/hb)" in nearest


async def test_a_message_that_no_actor_sends_is_missed(autojump_clock):
    event = {**ASK, "from": "SAB", "to": "SAB/status", "type": "update", "body": {"value": "odd"}}
    silent = {"k": "msg", "hop": "SAB>RA.bus>RA.registry", "msg": event, "event": True}
    outcome = await play(new([*CALL, silent]))
    assert outcome.difference is not None
    assert outcome.difference.number == 8


KEEP_ALIVE = {"id": 1, "type": "update", "from": "RA/registry", "to": "DRA"}
KEPT_ALIVE = [
    SENT,
    {"k": "msg", "hop": "HA>RA.bus>HA2", "msg": {**ASK, "to": "HA2"}},
    {"k": "time", "dt": 1700},
    {
        "k": "msg",
        "hop": "RA.registry>RA.bus>SA~wire~MN.a",
        "msg": {**KEEP_ALIVE, "body": {"resource": "HA"}},
    },
]
"""A registry must keep its records alive by itself once in 3600 s / 2.2."""

SOUGHT = [
    SENT,
    {"k": "msg", "hop": "HA>RA.bus>HA2", "msg": {**ASK, "to": "HA2"}},
    {
        "k": "msg",
        "hop": "RA.registry>RA.bus>SA~wire~MN.a",
        "msg": {**KEEP_ALIVE, "type": "read", "body": {"resource": "HA2"}},
    },
]
"""Nobody looks for a neighbour at the domain's registry."""


async def test_timed_acts_of_a_registry_need_no_line(autojump_clock):
    assert (await play(new(KEPT_ALIVE))).difference is None


@pytest.mark.parametrize(
    ("steps", "change"),
    [(KEPT_ALIVE, {"n2": {"dt": 1500}}), (SOUGHT, {})],
    ids=["too early", "no reason"],
)
async def test_an_unfounded_request_of_a_registry_is_missed(autojump_clock, steps, change):
    """The player asks in its place only where nothing in a scenario could be the reason."""
    outcome = await play(new(steps, **change))
    assert outcome.difference is not None
    assert outcome.difference.number == sum("k" in step for step in steps)


@pytest.mark.parametrize(
    ("change", "seen"),
    [
        ({"deliver_to": ["HA2", "HB"]}, "it was not delivered to hyperty://b.ex/hb"),
        ({"deliver_to": ["HB"]}, "it was delivered to hyperty://a.ex/ha2"),
    ],
)
async def test_the_receivers_of_a_message_are_compared(autojump_clock, change, seen):
    outcome = await play(new([SENT, SOUGHT[1] | change]))
    assert outcome.difference is not None
    assert outcome.difference.seen == (seen,)


async def test_an_event_that_is_answered_is_none(autojump_clock):
    asked = {**DROWNED[1], "event": True}
    outcome = await play(new([SENT, asked]))
    assert outcome.difference is not None
    assert outcome.difference.seen == ("it was answered: 404",)
    assert (await play(new([SENT, asked, DROWNED[2]]))).difference is None


async def test_text_for_people_in_a_refusal_is_not_compared(autojump_clock):
    said = {**ASK, "to": "HA2", "body": {"value": {"description": "old"}}}
    steps = [SENT, {"k": "msg", "hop": "HA>RA.bus", "msg": said}]
    again = {"k": "msg", "hop": "RA.bus>HA2", "msg": said, "dup": True}
    assert (await play(new([*steps, again]))).difference is None
    again["msg"] = {**said, "body": {"value": {"description": "new"}}}
    outcome = await play(new([*steps, again]))
    assert outcome.difference is not None
    assert "with another body" in outcome.difference.seen[0]


async def test_an_entity_is_named_by_its_address_not_by_any_word(autojump_clock):
    step = {"k": "state", "machine": "session", "key": ["MN.b", "WHO"], "old": None, "new": "open"}
    outcome = await play(new([*CALL[:2], step]))
    assert outcome.difference is not None
    assert outcome.difference.number == 2


async def test_an_unrequested_answer_is_reported_in_the_words_of_the_scenario(
    autojump_clock,
):
    outcome = await play(new([ANSWERED, {**CALL[5], "hop": "zoe>RB.bus"}]))
    assert outcome.difference is not None
    reported = "hyperty://b.ex/zoe has nothing to answer: no request of hyperty://a.ex/ha came"
    assert outcome.difference.seen == (reported,)


async def test_a_hyperty_that_is_given_in_a_foreign_runtime_cannot_be(autojump_clock):
    guest = {"given": "hyperty", "is": "hyperty://b.ex/guest", "in": "RA"}
    outcome = await play(scenario(*DROWNED, given=(*TWO, guest)))
    assert outcome.difference is not None
    assert outcome.difference.number == 0
    assert "whose node gives addresses of a.ex" in outcome.difference.seen[0]


@pytest.mark.parametrize(("change", "is_read"), [({}, True), ({"type": "read"}, False)])
async def test_a_message_of_a_peer_is_read_as_reported(autojump_clock, change, is_read):
    written = {**ASK, "id": "1", "type": "CREATE", "from": "runtime://a.ex/ra"}
    read = {**ASK, "type": "create", "from": "RA"}
    outcome = await play(new([{"k": "ingest", "raw": written, "norm": read | change}]))
    assert (outcome.difference is None) is is_read
    if outcome.difference is not None:
        assert outcome.difference.seen[0].startswith("it is read as #1 create ")


async def test_the_receiver_of_a_message_is_reported(autojump_clock):
    outcome = await play(new(KEPT_ALIVE, n2={"dt": 1}))
    assert outcome.difference is not None
    assert outcome.difference.expected.endswith("(keep a registration alive)")


async def test_a_play_in_which_actors_crash_differs_and_the_next_one_is_played():
    async def crashes():
        async with trio.open_nursery():
            raise RestartLimitError("ra", "bus")

    difference = await survive(crashes)
    assert difference is not None
    assert difference.number == 0
    assert "'bus' crashes too often" in difference.seen[0]


async def test_a_play_that_fails_for_another_reason_fails():
    async def fails():
        async with trio.open_nursery():
            raise ZeroDivisionError

    with pytest.RaisesGroup(ZeroDivisionError):
        await survive(fails)
