"""Hyperties that a program runs in processes of their own."""

import pytest

import actors
from actors.runtime.isolation import NoCodeError


async def test_a_class_no_other_process_can_import_is_refused():
    class Here(actors.Hyperty):
        pass

    async with (
        actors.open_node("a.example") as node,
        actors.open_runtime("a.example", "ra", node=node.url) as runtime,
    ):
        with pytest.raises(NoCodeError, match="put the class into a module"):
            await runtime.deploy_apart(Here)
