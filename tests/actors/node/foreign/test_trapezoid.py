"""Messages between two domains whose runtimes know only their own node (MN-19, I-M10)."""

from tests.support.abroad import STUB_B, open_two


async def test_a_request_goes_by_the_stub_of_the_own_node_and_is_answered(autojump_clock):
    async with open_two() as world:
        answer = await world.a.ask(world.b, "offer")
        assert (answer.code, answer.body["value"]) == (200, "offer")
        assert world.a.steps("stub_deployment") == [
            (STUB_B, "[*]", "deploying"),
            (STUB_B, "deploying", "deployed"),
        ]
        assert [new for _, _, new in world.a.steps("stub_connection")] == [
            "created",
            "in-progress",
            "live",
        ]
