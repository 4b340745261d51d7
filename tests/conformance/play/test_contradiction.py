"""Records beyond the scenario: those that may be, and those that may not."""

import attrs

from specs.trace import Fact, Kind, Op
from tests.conformance.play.match.observer import Observer
from tests.conformance.play.match.score import Score
from tests.support.trace.recorded import Recorded, lines_of, record, scenario_of


async def recorded(name: str) -> Recorded:
    return await record(scenario_of(lines_of(name)))


async def judged(name: str, whole: Recorded, *more) -> object:
    """What is said of a run in which something else was seen, too."""
    observer = Observer()
    for seen in whole.observer.items:
        observer.see(seen.who, seen.actor, seen.fact, seen.message)
    for who, actor, fact in more:
        observer.see(who, actor, fact)
    observer.start, observer.processes = whole.observer.start, whole.observer.processes
    added = attrs.evolve(whole, observer=observer)
    return await added.judge(scenario_of(lines_of(name)))


async def test_unreported_steps_may_happen(autojump_clock):
    whole = await recorded("SC-07")
    row = Fact(k=Kind.TABLE, op=Op.ADD, table="stubs", key="c.ex", val="x")
    assert await judged("SC-07", whole, ("elsewhere", "registry", row)) is None


async def test_a_step_that_no_table_declares_may_not(autojump_clock):
    whole = await recorded("SC-07")
    refused = Fact(k=Kind.STATE, op=Op.REFUSED, machine="session", key="x", old="open", cause="y")
    difference = await judged("SC-07", whole, ("elsewhere", "bus", refused))
    assert "is not declared" in difference.seen[0]


async def test_a_step_of_an_entity_that_is_followed_must_be_reported(autojump_clock):
    lines = [line for line in lines_of("SC-04") if line.get("n") not in {11, 12}]
    difference = await (await recorded("SC-04")).judge(scenario_of(lines))
    assert (difference.number, difference.seen[0][-22:]) == (8, "created -> in-progress")


async def test_a_second_final_answer_may_not(autojump_clock):
    whole = await recorded("SC-02")
    answer = next(
        seen
        for seen in whole.observer.items
        if seen.fact.code == 404 and seen.fact.op is Op.DELIVER
    )
    again = attrs.evolve(answer.fact, code=200, mid="another")
    difference = await judged("SC-02", whole, (answer.who, answer.actor, again))
    assert (difference.number, "second final answer" in difference.seen[0]) == (3, True)


async def test_a_message_that_is_reported_may_not_be_dropped_after_all(autojump_clock):
    whole = await recorded("SC-02")
    ask = next(seen for seen in whole.observer.items if seen.fact.to and "nobody" in seen.fact.to)
    drop = attrs.evolve(ask.fact, op=Op.DROP, reason="overflow")
    difference = await judged("SC-02", whole, (ask.who, ask.actor, drop))
    assert (difference.number, difference.seen) == (1, ("it was dropped: overflow",))
    copy = attrs.evolve(ask.fact, op=Op.DROP, reason="duplicate")
    assert await judged("SC-02", whole, (ask.who, ask.actor, copy)) is None


async def test_an_unnamed_participant_gets_nothing(autojump_clock):
    lines = lines_of("SC-31")
    reported = [line | ({"deliver_to": ["HC"]} if line.get("n") == 4 else {}) for line in lines]
    difference = await (await recorded("SC-31")).judge(scenario_of(reported))
    assert difference.number == 4
    assert difference.seen == ("it was delivered to hyperty://b.ex/hb",)


async def test_a_scenario_that_is_not_over_contradicts_nothing(autojump_clock):
    whole = await recorded("SC-02")
    score = Score(scenario_of(lines_of("SC-02")), whole.observer, whole.names.copy())
    assert score.contradiction() is None
