"""A scenario that the player has never seen is played like any other."""

import pytest
import trio

from actors.kit.errors import RestartLimitError
from actors.play.player import play, survive
from tests.support.recorded import scenario_of

ASK = {"id": 1, "type": "read", "from": "HA", "to": "hyperty://b.ex/zoe", "body": {"of": "x"}}
ANSWER = {
    "id": 1,
    "type": "response",
    "from": "hyperty://b.ex/zoe",
    "to": "HA",
    "body": {"code": 200, "value": [1, {"two": None}]},
}

CALL = [
    {"k": "msg", "hop": "HA>RA.bus", "msg": ASK},
    {"k": "resolve", "at": "RA.registry", "to": "hyperty://b.ex/zoe", "result": "SAB"},
    {"k": "msg", "hop": "SAB~wire~MN.b~wire~SB>RB.bus>zoe", "msg": ASK, "dup": True},
    {"k": "msg", "hop": "zoe>RB.bus>SB~wire~MN.b~wire~SAB>RA.bus>HA", "msg": ANSWER},
    {"k": "time", "dt": 3600, "why": "nothing happens"},
    {"k": "msg", "hop": "HA>..>zoe", "msg": {**ASK, "id": 2}},
    {"k": "msg", "hop": "zoe>..>HA", "msg": {**ANSWER, "id": 2}},
]
"""Two calls of a stranger, an hour apart."""

DROWNED = [
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
    lines = [{"sc": "NEW-1", "n": n, **step} for n, step in enumerate(steps, start=1)]
    return scenario_of([line | changes.get(f"n{line['n']}", {}) for line in lines])


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


async def test_a_difference_is_told_in_the_words_of_the_scenario(autojump_clock):
    outcome = await play(new(CALL, n3={"hop": "SAB~wire~MN.b~wire~SB>RB.bus>HB"}))
    assert outcome.difference is not None
    (nearest, *_) = outcome.difference.seen
    assert "hyperty://b.ex/zoe" in nearest
    assert "by another way (no deliver to minibus:hyperty://b.ex/hb)" in nearest


async def test_a_message_that_nobody_sends_is_missed(autojump_clock):
    event = {**ASK, "from": "SAB", "to": "SAB/status", "type": "update", "body": {"value": "odd"}}
    silent = {"k": "msg", "hop": "SAB>RA.bus>RA.registry", "msg": event, "event": True}
    outcome = await play(new([*CALL, silent]))
    assert outcome.difference is not None
    assert outcome.difference.number == len(CALL) + 1


async def test_a_scene_that_cannot_be_set_is_a_difference_before_the_first_step(autojump_clock):
    fault = {"k": "fault", "what": "the moon falls down"}
    outcome = await play(new([*DROWNED, fault]))
    assert outcome.difference is not None
    assert outcome.difference.number in {0, 3}
    assert "the moon falls down" in outcome.difference.seen[0]


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
