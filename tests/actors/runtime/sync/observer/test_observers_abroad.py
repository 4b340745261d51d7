"""Observers abroad, whose path is set at their own node (SYN-08, SYN-11, SYN-21, C-49)."""

import pytest
import trio

import actors
from tests.support.runtime.abroad import open_two


def observation(side):
    """What became of the paths on changes at a node, and whose they are."""
    return [
        (key.partition("|")[2], new)
        for key, _, new in side.steps("node_subscription")
        if "/changes|" in key
    ]


async def test_a_refused_one_leaves_no_path_at_its_node(autojump_clock):
    async with open_two() as world:
        room, guest = world.a.hyperty, world.b.hyperty
        async with room.report("comm", {}) as thing:
            with pytest.raises(actors.ObjectError, match="is not invited") as refused:
                async with guest.observe(thing.url):
                    pytest.fail("it was let in")
            assert refused.value.code == 403
            await trio.sleep(5)
            assert observation(world.b)[-1][1] == "removed"
