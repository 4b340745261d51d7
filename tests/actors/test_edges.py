"""What strangers met at the edges of addresses, names of domains and files."""

import pytest

import actors
from actors.runtime.config import RuntimeConfig
from specs.reply_code import Code


class Echo(actors.Hyperty):
    async def on_request(self, message):
        return message.body.get("value")


async def test_a_request_of_a_hyperty_that_was_undeployed_is_answered_410(autojump_clock):
    async with (
        actors.open_node("a.ex") as node,
        actors.open_runtime("a.ex", "ra", node=node.url) as runtime,
    ):
        echo, gone = await runtime.deploy(Echo), await runtime.deploy(Echo)
        await gone.undeploy()
        answer = await gone.request(echo.url, 1)
        assert answer.code == Code.GONE
        assert "deployed" in answer.body["description"]


async def test_names_of_domains_compare_without_case(autojump_clock):
    async with (
        actors.open_node("A.Example") as node,
        actors.open_runtime(RuntimeConfig(domain="a.EXAMPLE", name="ra", node=node.url)) as runtime,
    ):
        echo, caller = await runtime.deploy(Echo), await runtime.deploy(Echo)
        assert echo.url.startswith("hyperty://a.example/")
        assert (await caller.request(echo.url, 1)).value == 1
        assert node.domain == "a.example"


@pytest.mark.parametrize("option", ["registry", "state"])
async def test_a_database_in_memory_is_no_file_of_a_node(option):
    config = actors.NodeConfig(domain="a.ex", **{option: ":memory:"})
    with pytest.raises(actors.ProtoflyError, match=":memory: names no file"):
        async with actors.open_node(config):
            pass


async def test_a_database_in_memory_is_no_store_of_a_runtime():
    async with actors.open_node("a.ex") as node:
        config = RuntimeConfig(domain="a.ex", name="ra", node=node.url, store=":memory:")
        with pytest.raises(actors.ProtoflyError, match=":memory: names no file"):
            async with actors.open_runtime(config):
                pass
