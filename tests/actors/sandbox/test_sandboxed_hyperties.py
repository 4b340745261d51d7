"""Hyperties in processes of their own: what becomes of one is no matter of others (R11, BUS-15)."""

import pytest
import trio

from actors.kit.supervision.supervisor import Intensity
from actors.pipe.plan import SandboxError
from actors.runtime.isolation import HypertyCode, NoCodeError
from actors.sandbox.sandbox import open_local_sandbox
from specs.limits.protocol import MAX_MESSAGE_BYTES, REPLY_TIMEOUT
from specs.message import reply_to
from specs.reply_code import Code
from tests.support.packages import code_of
from tests.support.runtime.rough import Rough, Sick
from tests.support.runtime.sandbox_world import H, open_sandbox_world, sandboxes_of_tests

pytestmark = pytest.mark.timeout(240)

NO_STUB = code_of("")
ROUGH, SICK = "tests.support.runtime.rough:Rough", "tests.support.runtime.rough:Sick"


async def beside(world):
    """Have somebody else of the runtime answered, as if nothing had been."""
    answer = await world.ask("x", to=f"{world.bus.agent.url}/nobody")
    assert answer.code == 404


async def well(world):
    """Ask until it answers: it may be on its way back."""
    with trio.fail_after(30):
        while (answer := await world.ask("well?", H)).code == 503:
            await trio.lowlevel.checkpoint()
    return answer.body["value"] == "well?"


async def test_in_a_sandbox_it_answers_asks_and_knows_its_address(autojump_clock):
    async with open_sandbox_world(NO_STUB, spawn=open_local_sandbox) as world:
        await world.host(ROUGH, open_local_sandbox)
        assert (await world.ask({"a": [1]}, H)).body["value"] == {"a": [1]}
        assert (await world.ask("url", H)).body["value"] == H
        asked = await world.ask({"ask": H, "value": 7}, H)
        assert asked.body["value"] == {"code": 200, "value": 7}
        there = await world.ask({"ask": f"{world.bus.agent.url}/x", "value": 7}, H)
        assert there.body["value"]["code"] == 404


async def test_an_unpicklable_class_is_refused_with_its_type(autojump_clock):
    async with open_sandbox_world(NO_STUB, spawn=open_local_sandbox) as world:
        await world.host(ROUGH, open_local_sandbox)
        large = await world.ask("x" * (MAX_MESSAGE_BYTES + 1), H)
        assert (large.code, large.body["description"]) == (413, "larger than 65536 bytes")
        strange = await world.ask(2**70, H)
        assert strange.code == 500
        assert strange.body["description"].startswith("its body is no JSON")


async def test_an_answer_that_cannot_be_handed_in_is_a_refusal_and_ends_nothing(autojump_clock):
    """R11, BUS-15: whoever is asked cannot end the sandbox of who asks."""
    async with open_sandbox_world(NO_STUB, spawn=open_local_sandbox) as world:
        await world.host(ROUGH, open_local_sandbox)
        other = "hyperty://a.ex/other"
        heard = await world.bus.component(other)
        answers = []
        async with trio.open_nursery() as nursery:

            async def have_it_ask():
                answers.append(await world.ask({"ask": other, "value": 1}, H))

            nursery.start_soon(have_it_ask)
            await world.bus.settle()
            (asked,) = world.bus.heard_by(heard)
            large = reply_to(asked, Code.OK, {"value": "x" * (MAX_MESSAGE_BYTES + 1)})
            await world.bus.port(other).post(large)
        assert answers[0].body["value"] == {"code": 413, "value": None}


async def test_a_request_without_answer_times_out_at_the_router_and_others_do_not(autojump_clock):
    """HYP-01, MSG-06: a hyperty that waits for ever still gives signs of life."""
    async with open_sandbox_world(NO_STUB, spawn=open_local_sandbox) as world:
        await world.host(ROUGH, open_local_sandbox)
        answers = []
        async with trio.open_nursery() as nursery:

            async def wait_in_vain():
                answers.append(await world.ask("sleep", H))

            nursery.start_soon(wait_in_vain)
            await world.bus.settle()
            assert (await world.ask("well?", H)).code == 200
            assert trio.current_time() == 0.0
        assert [one.code for one in answers] == [408]
        assert trio.current_time() == REPLY_TIMEOUT
        assert (await world.ask("well?", H)).code == 200


@pytest.mark.parametrize(("how", "code"), [("crash", 500), ("exit", 503), ("spin", 503)])
async def test_one_that_ends_is_answered_for_at_once_and_is_there_again(how, code):
    async with open_sandbox_world(NO_STUB) as world:
        await world.host(ROUGH, sandboxes_of_tests)
        assert (await world.ask(how, H)).code == code
        await beside(world)
        assert await well(world)


async def test_a_confined_process_writes_its_first_line_of_the_log(caplog):
    """What writes it is imported only then."""
    async with open_sandbox_world(NO_STUB) as world:
        await world.host(ROUGH, sandboxes_of_tests)
        assert (await world.ask("log", H)).body["value"] == "log"
        with trio.fail_after(60):
            while not (said := [one for one in caplog.records if one.event == "sandbox says"]):
                await trio.lowlevel.checkpoint()
        assert said[0].fields["text"].endswith("event=told number=7")


async def test_one_that_ends_too_often_is_given_up():
    async with open_sandbox_world(NO_STUB) as world:
        sandbox = await world.host(ROUGH, sandboxes_of_tests, Intensity(restarts=1))
        assert (await world.ask("exit", H)).code == 503
        assert await well(world)
        assert (await world.ask("exit", H)).code == 503
        with trio.fail_after(60):
            await sandbox.wait_stopped()
        await beside(world)


async def test_message_ids_of_a_hyperty_continue_in_its_next_process():
    """MSG-03: an id that comes twice would be taken for a repetition."""
    async with open_sandbox_world(NO_STUB) as world:
        await world.host(ROUGH, sandboxes_of_tests)
        for number in range(3):
            asked = await world.ask({"ask": H, "value": number}, H)
            assert asked.body["value"] == {"code": 200, "value": number}
        await world.ask("exit", H)
        assert await well(world)
        asked = await world.ask({"ask": H, "value": "again"}, H)
        assert asked.body["value"] == {"code": 200, "value": "again"}


@pytest.mark.parametrize(
    ("where", "why"),
    [
        (SICK, "ZeroDivisionError: never well"),
        ("tests.support.runtime.rough:Nobody", "has no Nobody"),
        ("tests.support.nowhere:Rough", "No module named"),
        ("actors.kit.ids:IdSource", "is no hyperty"),
    ],
)
async def test_one_that_cannot_start_says_why(where, why):
    async with open_sandbox_world(NO_STUB) as world:
        with pytest.raises(SandboxError, match=why):
            await world.host(where, sandboxes_of_tests)


def test_where_a_class_is_can_be_reported():
    assert HypertyCode.of(Rough) == HypertyCode(ROUGH)
    assert HypertyCode.of(Sick).where == SICK


@pytest.mark.parametrize("where", ["", "module", ":Class", "m:A.B", "m:f.<locals>.A", "__main__:A"])
def test_a_class_that_another_process_cannot_import_is_refused(where):
    with pytest.raises(NoCodeError, match="put the class into a module"):
        HypertyCode(where)
