"""What a handler raises costs one message; what a task raises costs a life of the hyperty."""

from contextlib import asynccontextmanager

import pytest
import trio
import trio.testing

import actors
from actors.kit.supervision.supervisor import Crash
from specs.limits.bus import LOGGED_AT_ONCE, LOGGED_FAILURES, TRACEBACKS, TRACEBACKS_AT_ONCE
from tests.actors.runtime.hyperty.mirror import Mirror
from tests.support.log import captured_log
from transports.memory import MemoryNetwork


@asynccontextmanager
async def runtime(**wanted):
    network = MemoryNetwork()
    async with actors.open_node("a.example", network=network) as node:
        config = actors.RuntimeConfig(domain="a.example", name="ra", node=node.url, **wanted)
        async with actors.open_runtime(config, network=network) as running:
            yield running


class Shop(actors.Hyperty):
    """Counts what it is asked, and fails in whatever way that says."""

    def __init__(self):
        self.asked = 0

    async def on_request(self, message):
        self.asked += 1
        match message.body["value"]:
            case "count":
                return self.asked
            case "raise":
                raise RuntimeError("a secret")
            case "group":
                async with trio.open_nursery() as nursery:
                    for _ in range(3):
                        nursery.start_soon(self.fall)
            case "cancel":
                with trio.CancelScope() as scope:
                    scope.cancel()
                    await trio.sleep_forever()
            case "mixed":
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self.fall_at_the_end)
                    await trio.sleep_forever()
            case "task":
                self.spawn(self.fall)
                await trio.sleep_forever()
        return None

    async def fall(self):
        raise ZeroDivisionError("of a task")

    async def fall_at_the_end(self):
        try:
            await trio.sleep_forever()
        finally:
            raise ZeroDivisionError("at the end")

    async def on_event(self, message):
        raise KeyError("of an event")

    async def on_subscribe(self, url, observer):
        raise KeyError("of a subscription")

    async def on_invited(self, invited):
        raise KeyError("of an invitation")


async def test_one_that_fails_faster_than_the_log_may_grow_is_counted_there(autojump_clock):
    """R11: four thousand lines a second took half of the time of all, and any disk."""
    surplus = 7
    fails = TRACEBACKS_AT_ONCE + LOGGED_AT_ONCE + surplus
    with captured_log() as lines:
        async with runtime() as here, await here.deploy(Shop, "shop") as shop:
            caller = await here.deploy(Mirror)
            for _ in range(fails):
                assert (await caller.request(shop.url, "raise")).code == 500
            await trio.sleep(1 / LOGGED_FAILURES)
            await caller.request(shop.url, "raise")
            await trio.sleep(1 / TRACEBACKS)
            await caller.request(shop.url, "raise")
            assert shop.errors == fails + 2
    failed = [one for one in lines if one["event"] == "handler failed"]
    assert len(failed) == fails - surplus + 2
    assert [one["unlogged"] for one in failed if "unlogged" in one] == [surplus]
    assert failed[-2]["unlogged"] == surplus


def test_a_group_that_holds_an_interrupt_is_parted():
    """With somebody to hear of the errors: else it passes through as a whole."""
    heard, group = [], BaseExceptionGroup("", [ValueError(), KeyboardInterrupt(), KeyError()])
    with pytest.raises(BaseExceptionGroup) as passed, Crash(heard.append) as crash:
        raise group
    assert [type(one) for one in passed.value.exceptions] == [KeyboardInterrupt]
    assert heard == [crash.error]
    assert [type(one) for one in crash.error.exceptions] == [ValueError, KeyError]
    with pytest.raises(BaseExceptionGroup) as whole, Crash():
        raise group
    assert whole.value is group


# ---- given up


async def test_a_hyperty_that_is_given_up_says_why(autojump_clock):
    with captured_log() as lines:
        async with runtime() as here:
            caller, shop = await here.deploy(Mirror), await here.deploy(Shop, "shop")
            for _ in range(4):
                assert (await caller.request(shop.url, "task")).code == 503
            failure = await shop.failed()
            assert (failure.name, failure.url) == ("shop", shop.url)
            assert isinstance(failure.cause, ZeroDivisionError)
            assert "ZeroDivisionError: of a task" in str(failure)
            assert shop.state is actors.HypertyState.FAILED
    (line,) = [one for one in lines if one["event"] == "hyperty given up"]
    assert (line["hyperty"], line["log_level"]) == ("shop", "error")
    assert line["exc_info"] is failure.cause


async def test_a_failed_hyperty_ends_the_runtime_if_configured(autojump_clock):
    async def run():
        async with runtime(stop_on_failure=True) as here:
            caller, shop = await here.deploy(Mirror), await here.deploy(Shop, "shop")
            for _ in range(4):
                await caller.request(shop.url, "task")
            await trio.sleep_forever()

    with pytest.raises(actors.HypertyFailedError) as failed:
        await run()
    assert isinstance(failed.value.cause, ZeroDivisionError)


async def test_a_policy_that_fails_refuses_and_ends_nothing(autojump_clock):
    """POL-01: what cannot be decided is refused."""

    class Broken(actors.Policy):
        def refusal(self, message, by):
            if message.body.get("value") == "count":
                raise ZeroDivisionError("a secret")

    async with runtime(policy=Broken()) as here:
        caller, shop = await here.deploy(Mirror), await here.deploy(Shop)
        answer = await caller.request(shop.url, "count")
        assert (answer.code, "secret" in answer.body["description"]) == (403, False)
        assert (await caller.request(shop.url, "other")).code == 200
