"""Messages between two domains whose runtimes know only their own node (MN-19, MN-20, I-M10)."""

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from fsm.registry.resolve.links import Topology
from specs.limits.protocol import DEPLOY_TIMEOUT, RETRY_COOL_DOWN
from specs.reply_code import DropReason
from tests.actors.node.foreign.faulty_sandboxes import deaf_sandbox, no_sandbox, sandbox_that_says
from tests.support.runtime.abroad import PLACES, STUB_B, B, DomainOptions, open_two
from transports.link import Kind

pytestmark = pytest.mark.timeout(240)

NOWHERE = "hyperty://c.ex/somebody"
UP = ["created", "in-progress", "live"]


async def all_at_once(ask, count):
    """Ask so often at the same time; return the answers."""
    answers = []

    async def one():
        answers.append(await ask())

    async with trio.open_nursery() as nursery:
        for _ in range(count):
            nursery.start_soon(one)
    return answers


def states(side, machine="stub_connection"):
    return [new for _, _, new in side.steps(machine)]


async def test_a_request_goes_by_the_stub_of_the_own_node_and_is_answered(autojump_clock):
    async with open_two() as world:
        answer = await world.a.ask(world.b, "offer")
        assert (answer.code, answer.body["value"]) == (200, "offer")
        assert world.a.steps("stub_deployment") == [
            (STUB_B, "[*]", "deploying"),
            (STUB_B, "deploying", "deployed"),
        ]
        assert states(world.a) == UP
        assert len(world.network.open_wires(Kind.WEBSOCKET)) == 3


async def test_via_names_every_stub_that_was_crossed(autojump_clock):
    async with open_two() as world:
        await world.a.ask(world.b)
        (asked,) = world.b.hyperty.asked
    assert asked.via == (
        "hyperty-runtime://a.ex/ra/protostub/1",
        STUB_B,
        "hyperty-runtime://b.ex/rb/protostub/1",
    )


async def test_both_directions_have_a_stub_each_and_answers_return_where_they_came(autojump_clock):
    async with open_two() as world:
        assert (await world.a.ask(world.b)).code == 200
        assert (await world.b.ask(world.a)).code == 200
        assert (await world.a.ask(world.b)).code == 200
        assert states(world.a) == states(world.b) == UP
        views = {view.runtime for view in await world.b.node.sessions()}
        assert "domain://msg-node.a.ex" in views


async def test_in_the_triangle_no_node_has_a_stub(autojump_clock):
    options = DomainOptions(topology=Topology.TRIANGLE, a_knows={}, b_knows={})
    async with open_two(options) as world:
        assert (await world.a.ask(world.b)).code == 200
        assert (await world.b.ask(world.a)).code == 200
        assert states(world.a) == states(world.b) == []


async def test_many_first_messages_deploy_one_stub(autojump_clock):
    async with open_two() as world:
        world.a.sandboxes.close()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(world.a.sandboxes.open_after, 1.0)
            answers = await all_at_once(lambda: world.a.ask(world.b), 200)
        assert [one.code for one in answers] == [200] * 200
        assert states(world.a, "stub_deployment") == ["deploying", "deployed"]


async def test_a_domain_that_is_not_configured_is_answered_404(autojump_clock):
    async with open_two() as world:
        assert (await world.a.ask(NOWHERE)).code == 404
        assert world.a.steps("stub_deployment") == []


async def test_a_sandbox_that_cannot_be_had_is_503_and_left_alone_for_a_while(autojump_clock):
    async with open_two(DomainOptions(spawn=no_sandbox)) as world:
        first, second = await world.a.ask(world.b), await world.a.ask(world.b)
        assert (first.code, second.code) == (503, 503)
        assert states(world.a, "stub_deployment") == ["deploying", "deployment-failed"]
        await trio.sleep(RETRY_COOL_DOWN)
        await world.a.ask(world.b)
        assert states(world.a, "stub_deployment") == ["deploying", "deployment-failed"] * 2


async def test_a_sandbox_that_never_gets_ready_is_given_up_in_time(autojump_clock):
    async with open_two(DomainOptions(spawn=deaf_sandbox)) as world:
        begun = trio.current_time()
        answers = await all_at_once(lambda: world.a.ask(world.b), 3)
        assert [one.code for one in answers] == [503] * 3
        assert trio.current_time() - begun == DEPLOY_TIMEOUT
        assert states(world.a, "stub_deployment") == ["deploying", "deployment-failed"]


async def test_a_node_that_is_not_there_is_503(autojump_clock):
    async with open_two(DomainOptions(a_knows={B: "ws://127.0.0.1:49999/link"})) as world:
        assert (await world.a.ask(world.b)).code == 503
        assert states(world.a)[-1] == "failed"


async def test_a_node_of_another_domain_than_it_should_be_is_503(autojump_clock):
    wrong = {"c.ex": f"{PLACES[B]}/link"}
    async with open_two(DomainOptions(a_knows=wrong, b_knows=wrong)) as world:
        answer = await world.a.ask(NOWHERE)
        assert answer.code == 503
        assert states(world.a)[-1] == "failed"


async def test_two_nodes_that_send_a_domain_to_each_other_end_it_at_once(autojump_clock):
    ways = ({"c.ex": f"{PLACES[B]}/link"}, {"c.ex": f"{PLACES['a.ex']}/link"})
    async with open_two(DomainOptions(a_knows=ways[0], b_knows=ways[1])) as world:
        begun = trio.current_time()
        assert (await world.a.ask(NOWHERE)).code == 503
        assert trio.current_time() - begun < 5
        assert world.b.steps("stub_deployment") == []


async def test_a_sandbox_that_crashes_takes_only_its_path_with_it(autojump_clock):
    async with open_two() as world:
        await world.a.ask(world.b)
        session = [v.link for v in await world.a.node.sessions() if "hyperty" in v.runtime]
        world.b.hyperty.silent = True
        async with trio.open_nursery() as nursery:
            answers = []
            nursery.start_soon(ask_into, world, answers)
            await wait_all_tasks_blocked()
            await trio.sleep(1)
            await world.a.sandboxes.kill()
        assert [one.code for one in answers] == [503]
        world.b.hyperty.silent = False

        assert (await world.a.ask(world.b)).code == 200
        assert session == [v.link for v in await world.a.node.sessions() if "hyperty" in v.runtime]
        assert states(world.a) == [*UP, "disconnected", *UP]
        assert states(world.b, "session").count("open") == 3


async def ask_into(world, answers):
    answers.append(await world.a.ask(world.b))


async def test_after_too_many_crashes_a_domain_rests(autojump_clock):
    async with open_two() as world:
        codes = []
        for _ in range(5):
            codes.append((await world.a.ask(world.b)).code)
            await world.a.sandboxes.kill()
            await wait_all_tasks_blocked()
            await trio.sleep(0.1)
        assert codes == [200] * 4 + [503]
        assert (await world.b.ask(world.a)).code == 200
        await trio.sleep(60)
        assert (await world.a.ask(world.b)).code == 200


async def test_a_sandbox_that_shows_no_sign_of_life_is_ended(autojump_clock):
    async with open_two() as world:
        await world.a.ask(world.b)
        world.a.sandboxes.links[-1].pattern = lambda number, frame: ()
        await trio.sleep(10)
        assert states(world.a)[-1] == "disconnected"
        assert (await world.a.ask(world.b)).code == 200


async def test_a_cut_link_is_dialled_again_and_its_session_kept(autojump_clock):
    async with open_two() as world:
        await world.a.ask(world.b)
        wire = world.network.open_wires(Kind.WEBSOCKET)[2]
        wire.cut()
        await wait_all_tasks_blocked()
        assert (await world.a.ask(world.b)).code == 200
        assert states(world.a) == [*UP, "disconnected", "live"]
        assert states(world.b, "session")[-2:] == ["detached", "open"]
        assert states(world.a, "stub_deployment") == ["deploying", "deployed"]


async def test_a_stub_that_steps_by_no_table_is_ended_and_on_record(autojump_clock):
    wrong = {"cause": "established", "new": "live"}
    async with open_two(DomainOptions(spawn=sandbox_that_says("step", wrong))) as world:
        assert (await world.a.ask(world.b)).code == 503
        assert world.a.node.monitor_violations == 1


async def test_an_unknown_status_of_a_stub_is_ignored(autojump_clock):
    lie = {"type": "update", "from": STUB_B, "to": f"{STUB_B}/status", "body": {"value": "live"}}
    async with open_two(
        DomainOptions(spawn=sandbox_that_says("post", {}, {"id": 1, **lie}))
    ) as world:
        with trio.move_on_after(1):
            await world.a.ask(world.b)
        assert world.a.node.counters.drops[DropReason.FORGED_STATUS] == 1


async def test_a_stub_that_speaks_for_others_is_refused_and_ended(autojump_clock):
    lies = [
        {
            "id": number,
            "type": "create",
            "from": "hyperty://c.ex/liar",
            "to": "hyperty://a.ex/victim",
            "body": {"via": [STUB_B]},
        }
        for number in range(1, 11)
    ]
    async with open_two(DomainOptions(spawn=sandbox_that_says("post", {}, *lies))) as world:
        assert (await world.a.ask(world.b)).code == 503
        await trio.sleep(10)
        assert (await world.a.ask(world.b)).code == 503
        assert states(world.a, "stub_deployment") == ["deploying", "deployed"]
