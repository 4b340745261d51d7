"""Which steps are cues, and what the player's hands do; the scenarios' page is the oracle."""

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from actors.play.cast import cast_of
from actors.play.cue import Cue, cue_of
from actors.play.faults import Fault, fault_of
from actors.play.match.names import Names
from actors.play.match.observer import Observer
from actors.play.player import play
from actors.play.stage.stage import open_stage
from actors.play.stage.stage_error import StageError
from specs.trace import Kind, Op
from tests.support.scripts import fault, golden, msg, scenario, state


def cues(script):
    cast = cast_of(script)
    found = {step.number: cue_of(script, cast, step) for step in script.steps}
    return {number: cue for number, cue in found.items() if cue is not None}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param(
            "SC-03",
            {
                1: Cue.HYPERTY_SENDS,
                2: Cue.HYPERTY_ANSWERS,
                3: Cue.HYPERTY_ANSWERS,
                4: Cue.HYPERTY_ANSWERS,
                5: Cue.HYPERTY_SENDS,
                6: Cue.TIME_PASSES,
                8: Cue.HYPERTY_ANSWERS,
            },
            id="hyperties and time",
        ),
        pytest.param("SC-04", {}, id="what a runtime does when it boots"),
        pytest.param(
            "SC-07",
            {8: Cue.PART_ASKS, 11: Cue.FAULT, 15: Cue.PEER_SENDS, 20: Cue.SESSION_ENDS},
            id="a peer outside the cast",
        ),
        pytest.param(
            "SC-08",
            {4: Cue.FAULT, 6: Cue.TIME_PASSES, 10: Cue.HYPERTY_SENDS, 12: Cue.STUB_CONTROLS},
            id="session control written out",
        ),
        pytest.param(
            "SC-16",
            {1: Cue.SOMEBODY_ASKS, 10: Cue.LINK_BEGINS, 20: Cue.LINK_BEGINS},
            id="what a registry asks for is caused by who looks for somebody",
        ),
        pytest.param(
            "SC-31",
            dict.fromkeys((3, 6, 9, 12), Cue.REPORTER_CHANGES),
            id="what is published is no cue at a later hop",
        ),
        pytest.param(
            "SC-39",
            {1: Cue.HYPERTY_SENDS, 4: Cue.HYPERTY_SENDS, 7: Cue.FRAME_FORGED},
            id="forgers",
        ),
    ],
)
def test_what_no_actor_does_by_itself_is_a_cue(name, expected):
    assert cues(golden(name)) == expected


def test_what_a_sync_manager_is_asked_for_causes_what_it_asks():
    script = golden("SC-29")
    assert set(cues(script)) == {1, 15, 17, 19}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("TCP reset", Fault.SESSION_CUT),
        ("transport lost", Fault.SESSION_CUT),
        ("peer vanishes without disconnect", Fault.PROCESS_LOST),
        ("ICE never completes", Fault.LINK_MUTE),
        ("data channel closed", Fault.LINK_CUT),
        ("L1 closes", Fault.LINK_CUT),
        ("the link is cut", Fault.NEXT_CUT),
    ],
)
def test_faults_are_known_by_their_words(words, expected):
    assert fault_of(words) is expected


def test_an_unknown_fault_is_an_error_that_says_what_is_known():
    with pytest.raises(StageError, match="'it rains'; say 'TCP reset'"):
        fault_of("it rains")


HA, HA2 = "hyperty://a.ex/ha", "hyperty://a.ex/ha2"
GREETING = msg("HA>RA.bus>HA2", f"1 create {HA} {HA2}", {"value": "hi"})
ANSWER = msg("HA2>RA.bus>HA", f"1 response {HA2} {HA}", {"code": 183, "value": 50})


def facts(observer, op):
    return [one for one in observer.items if one.fact.k is Kind.MSG and one.fact.op is op]


async def test_a_hyperty_sends_and_answers_what_the_script_says(autojump_clock):
    script, observer, names = scenario(GREETING, ANSWER), Observer(), Names()
    async with open_stage(script, observer, names) as stage:
        begun = len(observer.items)
        for step in script.steps:
            assert stage.is_cue(step)
            await stage.act(step)
        await wait_all_tasks_blocked()
        said = [one.message for one in facts(observer, Op.SUBMIT) if one.number >= begun]
        assert [(one.type.value, one.from_, one.body) for one in said] == [
            ("create", names.actual(HA), {"value": "hi"}),
            ("response", names.actual(HA2), {"code": 183, "value": 50}),
        ]


async def test_what_nobody_asked_cannot_be_answered(autojump_clock):
    script = scenario(ANSWER)
    async with open_stage(script, Observer(), Names()) as stage:
        with pytest.raises(StageError, match="nothing to answer"):
            await stage.act(script.steps[0])


async def test_a_frame_forged_on_a_wire_reaches_the_stub(autojump_clock):
    forged = msg(
        "MN.a~wire~SA",
        f"9 create hyperty://c.ex/hc {HA}",
        {"via": ["hyperty-runtime://a.ex/ra/protostub/1"]},
        drop="loop",
    )
    script, observer = scenario(GREETING, forged), Observer()
    async with open_stage(script, observer, Names()) as stage:
        await stage.act(script.steps[1])
        with trio.fail_after(1):
            while facts(observer, Op.DROP)[-1].fact.reason != "loop":
                await observer.more(len(observer.items))


async def test_a_runtime_whose_session_is_closed_takes_leave(autojump_clock):
    closed = state("session", "MN.a|hyperty-runtime://a.ex/ra", "open", "closed")
    script, observer = scenario(GREETING, closed), Observer()
    async with open_stage(script, observer, Names()) as stage:
        await stage.act(script.steps[1])
        steps = [one.fact.new for one in observer.items if one.fact.machine == "session"]
        assert steps == ["open", "closed"]


async def test_a_reset_session_comes_back_by_itself(autojump_clock):
    lost = state("session", "MN.a|hyperty-runtime://a.ex/ra", "open", "detached")
    script, observer = scenario(GREETING, fault("TCP reset"), lost), Observer()
    async with open_stage(script, observer, Names()) as stage:
        await stage.act(script.steps[1])
        steps = []
        while steps != ["open", "detached", "open"]:
            await observer.more(len(observer.items))
            steps = [one.fact.new for one in observer.items if one.fact.machine == "session"]


async def test_a_fault_without_a_victim_is_an_error(autojump_clock):
    script = scenario(GREETING, fault("data channel closed"))
    async with open_stage(script, Observer(), Names()) as stage:
        with pytest.raises(StageError, match="no step of a P2P connection says which"):
            await stage.act(script.steps[1])


@pytest.mark.parametrize(
    ("call", "why"),
    [
        ("RA.alloc.allocate(scheme=hyperty, colour=red)", "takes no colour"),
        ("RA.alloc.allocate(scheme=comm, reuse=True) -> miss", "only addresses of hyperties"),
        ("RA.alloc.allocate(scheme=hyperty, reuse=True) -> [HA] newAddress=false", "came to: miss"),
        ("RA.alloc.allocate(scheme=hyperty, reuseURL='hyperty://a.ex/x') -> miss", "to: error"),
        ("RA.registry.forget(HB)", "nobody knows how"),
        ("RX.alloc.allocate(scheme=hyperty)", "no runtime of the scenario"),
    ],
)
async def test_a_call_that_cannot_be_made_is_an_error(call, why, autojump_clock):
    script = scenario(GREETING, {"k": "call", "what": call})
    async with open_stage(script, Observer(), Names()) as stage:
        with pytest.raises(StageError, match=why):
            await stage.act(script.steps[1])


async def test_what_is_only_recalled_is_no_work(autojump_clock):
    script = scenario(GREETING, {"k": "call", "what": "tie-break: the smaller address wins"})
    async with open_stage(script, Observer(), Names()) as stage:
        assert stage.is_cue(script.steps[1])
        await stage.act(script.steps[1])


async def test_addresses_are_allocated_by_a_call(autojump_clock):
    call = {"k": "call", "what": "RA.alloc.allocate(scheme=connection, number=2)"}
    script, observer = scenario(GREETING, call), Observer()
    async with open_stage(script, observer, Names()) as stage:
        await stage.act(script.steps[1])
        allocated = [one.fact.key for one in observer.items if one.fact.machine == "address"]
        assert len([key for key in allocated if key and "connection://a.ex/" in key]) == 2


async def test_a_runtime_goes_by_a_call(autojump_clock):
    script, observer = scenario(GREETING, {"k": "call", "what": "RA goes"}), Observer()
    async with open_stage(script, observer, Names()) as stage:
        await stage.act(script.steps[1])
        steps = [one.fact.new for one in observer.items if one.fact.machine == "session"]
        assert steps == ["open", "closed"]


async def test_what_a_composition_calls_its_wishes_and_faults_is_played(autojump_clock):
    """A counterexample of the composition check speaks of `a` and `b`, and of `the link`."""
    ra, rb = "hyperty-runtime://a.ex/ra", "hyperty-runtime://b.ex/rb"
    key = f"{ra}|{rb}|requester"
    outcome = await play(
        scenario(
            {"k": "call", "what": "a asks for the other"},
            state("p2p", key, None, "created"),
            state("p2p", key, "created", "in-progress"),
            state("p2p", key, "in-progress", "live"),
            fault("the link is cut"),
            state("p2p", key, "live", "disconnected"),
        )
    )
    assert outcome.difference is None
