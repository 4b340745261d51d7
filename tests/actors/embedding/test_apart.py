"""Hyperties that a program runs in processes of their own."""

import pytest
import trio

import actors
from actors.hyperties import Caller, Echo
from actors.runtime.isolation import NoCodeError
from tests.support.runtime.apart import Finder, Reader, Thermometer


@pytest.mark.timeout(240)
async def test_a_hyperty_in_a_process_of_its_own_answers_until_its_block_is_left():
    async with (
        actors.open_node("a.example") as node,
        actors.open_runtime("a.example", "ra", node=node.url) as runtime,
    ):
        caller = await runtime.deploy(Caller)
        async with await runtime.deploy_apart(Echo) as echo:
            answer = await caller.request(echo.url, "over there")
            assert (answer.code, answer.body["value"]) == (200, "over there")
        assert (await caller.request(echo.url, "over there")).code == 404


@pytest.mark.timeout(240)
async def test_a_hyperty_in_a_process_of_its_own_reports_and_observes():
    async with (
        actors.open_node("a.example") as node,
        actors.open_runtime("a.example", "ra", node=node.url) as runtime,
        await runtime.deploy(Caller) as caller,
        await runtime.deploy_apart(Thermometer) as thermometer,
        await runtime.deploy_apart(Reader) as reader,
    ):
        url = (await caller.request(thermometer.url)).body["value"]
        async with caller.observe(url) as copy:
            assert copy.value["celsius"] == 21
            await caller.request(thermometer.url)
            await copy.wait_for(lambda value: value["celsius"] == 22)
            assert (await caller.request(reader.url, url)).body["value"] == 22
            await thermometer.undeploy()
            assert await copy.later_than(copy.version) is None


@pytest.mark.timeout(240)
async def test_a_hyperty_in_a_process_of_its_own_finds_others_and_follows_them():
    """M-26, M-29, M-30."""
    asked = trio.Event()

    class Leaver(actors.Hyperty):
        async def on_request(self, message):
            asked.set()

    async with (
        actors.open_node("a.example") as node,
        actors.open_runtime("a.example", "ra", node=node.url) as runtime,
        await runtime.deploy(Caller) as caller,
        await runtime.deploy_apart(Finder) as finder,
        trio.open_nursery() as nursery,
    ):
        leaver = await runtime.deploy(Leaver, "leaver")

        async def leave():
            await asked.wait()
            await leaver.undeploy()

        nursery.start_soon(leave)
        seen = (await caller.request(finder.url, "leaver")).value
    assert seen == [leaver.url, ["appeared", "live"], ["changed", "disconnected"]]


async def test_a_class_no_other_process_can_import_is_refused():
    class Here(actors.Hyperty):
        pass

    async with (
        actors.open_node("a.example") as node,
        actors.open_runtime("a.example", "ra", node=node.url) as runtime,
    ):
        with pytest.raises(NoCodeError, match="put the class into a module"):
            await runtime.deploy_apart(Here)
