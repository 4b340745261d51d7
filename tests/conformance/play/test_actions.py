"""What is done and what breaks in a scenario; the document of scenario files is the oracle."""

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from specs.trace import Kind, Op
from tests.conformance.play.match.names import Names
from tests.conformance.play.match.observer import Observer
from tests.conformance.play.player import play
from tests.conformance.play.scripts import TWO, done, msg, scenario, state, time
from tests.conformance.play.stage.participants import StageError
from tests.conformance.play.stage.stage import open_stage

RA, RB = "hyperty-runtime://a.ex/ra", "hyperty-runtime://b.ex/rb"
HA, HA2, HB = "hyperty://a.ex/ha", "hyperty://a.ex/ha2", "hyperty://b.ex/hb"
ASKED = {"do": "send", "by": "HA"}, msg("HA>RA.bus>HA2", f"1 create {HA} {HA2}", {"value": "hi"})
ANSWER = msg("HA2>RA.bus>HA", f"1 response {HA2} {HA}", {"code": 183, "value": 50})
SESSION = f"MN.a|{RA}"


def facts(observer, op):
    return [one for one in observer.items if one.fact.k is Kind.MSG and one.fact.op is op]


def steps_of(observer, machine):
    return [one.fact.new for one in observer.items if one.fact.machine == machine]


async def test_a_hyperty_sends_and_answers_what_the_script_says(autojump_clock):
    script, observer, names = scenario(*ASKED, *done("HA2", ANSWER)), Observer(), Names()
    async with open_stage(script, observer, names) as stage:
        begun = len(observer.items)
        for step in script.steps:
            assert script.is_acted(step)
            await stage.act(step)
        await wait_all_tasks_blocked()
        said = [one.message for one in facts(observer, Op.SUBMIT) if one.number >= begun]
        assert [(one.type.value, one.from_, one.body) for one in said] == [
            ("create", names.actual(HA), {"value": "hi"}),
            ("response", names.actual(HA2), {"code": 183, "value": 50}),
        ]


async def test_a_message_without_a_line_is_never_sent(autojump_clock):
    outcome = await play(scenario(ASKED[1]))
    assert outcome.difference is not None
    assert outcome.difference.number == 1


async def test_an_unsent_request_cannot_be_answered(autojump_clock):
    script = scenario(*done("HA2", ANSWER))
    async with open_stage(script, Observer(), Names()) as stage:
        with pytest.raises(StageError, match="nothing to answer"):
            await stage.act(script.steps[0])


async def test_an_act_with_a_message_needs_a_step_with_one(autojump_clock):
    script = scenario({"do": "send", "by": "HA"}, time(1))
    outcome = await play(script)
    assert outcome.difference is not None
    assert "step 1 is no message that could be meant by 'send'" in outcome.difference.seen[0]


async def test_a_frame_forged_on_a_wire_reaches_the_stub(autojump_clock):
    forged = msg(
        "MN.a~wire~SA",
        f"9 create hyperty://c.ex/hc {HA}",
        {"via": [f"{RA}/protostub/1"]},
        drop="loop",
    )
    script, observer = scenario({"do": "forge", "from": "MNA", "to": "RA"}, forged), Observer()
    async with open_stage(script, observer, Names()) as stage:
        await stage.act(script.steps[0])
        with trio.fail_after(1):
            while facts(observer, Op.DROP)[-1].fact.reason != "loop":
                await observer.more(len(observer.items))


# ---- faults


async def test_a_runtime_that_is_shut_down_closes_its_session(autojump_clock):
    outcome = await play(
        scenario(
            {"fault": "runtime shutdown", "of": "RA"}, state("session", SESSION, "open", "closed")
        )
    )
    assert outcome.difference is None


async def test_a_session_whose_link_is_cut_reconnects(autojump_clock):
    outcome = await play(
        scenario(
            {"fault": "link cut", "between": ["RA", "MNA"]},
            state("session", SESSION, "open", "detached"),
            state("session", SESSION, "detached", "open"),
        )
    )
    assert outcome.difference is None


async def test_a_runtime_that_vanishes_is_only_missed_in_time(autojump_clock):
    outcome = await play(
        scenario(
            {"fault": "peer vanishes", "of": "RA"},
            state("session", SESSION, "open", "detached"),
            time(600),
            state("session", SESSION, "detached", "expired"),
        )
    )
    assert outcome.difference is None


async def test_a_silent_node_sends_no_answer(autojump_clock):
    ask = msg("HA>RA.bus", f"1 read {HA} {HB}", {"resource": HB})
    unheard = msg(
        "RA.bus>HA", f"1 response {HB} {HA}", {"code": 408, "description": "..."}, synthetic=True
    )
    silent = {"fault": "peer silent", "between": ["RA", "MNB"]}
    session = {"given": "session", "of": "RA", "at": "MNB"}
    steps = (silent, *done("HA", ask), time(15), unheard)
    outcome = await play(scenario(*steps, given=(*TWO, session)))
    assert outcome.difference is None


async def test_a_jump_of_the_clock_makes_all_due_at_once(autojump_clock):
    script, observer = scenario({"fault": "clock jump", "seconds": 5000}, time(1)), Observer()
    async with open_stage(script, observer, Names()) as stage:
        before = trio.current_time()
        await stage.act(script.steps[0])
        assert trio.current_time() - before >= 5000


async def test_a_clock_without_jumps_does_not_jump():
    script = scenario({"fault": "clock jump", "seconds": 5}, time(0), given=TWO[:1])
    async with open_stage(script, Observer(), Names()) as stage:
        with pytest.raises(StageError, match="play under a virtual clock"):
            await stage.act(script.steps[0])


async def test_a_link_that_is_not_there_cannot_be_cut(autojump_clock):
    script = scenario({"fault": "link cut", "between": ["RA", "RB"]}, time(1))
    async with open_stage(script, Observer(), Names()) as stage:
        with pytest.raises(StageError, match="have no link that could be cut"):
            await stage.act(script.steps[0])


async def test_a_step_behind_a_fault_was_not_seen_before_it(autojump_clock):
    """The session was open already: that is not the step that the fault has to cause."""
    begun = {"given": "beginning", "before": "boot"}
    opened = state("session", SESSION, None, "open")
    cut = {"fault": "link cut", "between": ["RA", "MNA"]}
    assert (await play(scenario(opened, given=(*TWO, begun)))).difference is None
    outcome = await play(scenario(cut, opened, given=(*TWO, begun)))
    assert outcome.difference is not None
    assert outcome.difference.seen[0].startswith("before the fault")


# ---- addresses


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({"result": "HA", "descriptor": "D"}, "gave: new"),
        ({"result": "new", "address": "hyperty://a.ex/x"}, "gave: not found"),
    ],
)
async def test_an_address_that_comes_otherwise_is_an_error(asked, why, autojump_clock):
    script = scenario({"do": "reuse", "in": "RA", **asked}, time(1))
    async with open_stage(script, Observer(), Names()) as stage:
        with pytest.raises(StageError, match=why):
            await stage.act(script.steps[0])


async def test_addresses_are_allocated(autojump_clock):
    call = {"do": "allocate", "in": "RA", "scheme": "connection", "number": 2}
    script, observer = scenario(call, time(1)), Observer()
    async with open_stage(script, observer, Names()) as stage:
        await stage.act(script.steps[0])
        allocated = [one.fact.key for one in observer.items if one.fact.machine == "address"]
        assert len([key for key in allocated if key and "connection://a.ex/" in key]) == 2


async def test_a_link_is_set_up_because_a_hyperty_asks(autojump_clock):
    key = f"{RA}|{RB}|requester"
    outcome = await play(
        scenario(
            {"do": "ask", "by": "HA", "of": "HB"},
            state("p2p", key, None, "created"),
            state("p2p", key, "created", "in-progress"),
            state("p2p", key, "in-progress", "live"),
            {"fault": "link cut", "between": ["RA", "RB"]},
            state("p2p", key, "live", "disconnected"),
        )
    )
    assert outcome.difference is None
