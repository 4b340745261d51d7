"""Messages between two domains whose runtimes know only their own node (MN-19, MN-20, I-M10)."""

import trio

from tests.actors.node.foreign.faulty_sandboxes import sandbox_that_says
from tests.support.runtime.abroad import DomainOptions, open_two


def states(side, machine="stub_connection"):
    return [new for _, _, new in side.steps(machine)]


async def test_a_stub_that_speaks_for_others_is_refused_and_ended(autojump_clock):
    lies = [
        {
            "id": number,
            "type": "create",
            "from": "hyperty://c.ex/liar",
            "to": "hyperty://a.ex/victim",
            "body": {"via": ["domain://msg-node.a.ex/protostub/b.ex"]},
        }
        for number in range(1, 11)
    ]
    async with open_two(DomainOptions(spawn=sandbox_that_says("post", {}, *lies))) as world:
        assert (await world.a.ask(world.b)).code == 503
        await trio.sleep(10)
        assert (await world.a.ask(world.b)).code == 503
        assert states(world.a, "stub_deployment") == ["deploying", "deployed"]
