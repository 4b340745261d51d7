"""What a handler raises costs one message; what a task raises costs a life of the hyperty."""

import re
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

ID = re.compile(r"error ([0-9a-f]{12})$")


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


async def test_fifty_exceptions_in_a_burst_leave_the_hyperty_and_its_state(autojump_clock):
    async with runtime() as here, await here.deploy(Shop, "shop") as shop:
        caller = await here.deploy(Mirror)
        codes = [(await caller.request(shop.url, "raise")).code for _ in range(50)]
        assert codes == [500] * 50
        answer = await caller.request(shop.url, "count")
        assert (answer.code, answer.body["value"]) == (200, 51)
        assert (shop.state, shop.errors) == (actors.HypertyState.RUNNING, 50)


async def test_an_exception_is_logged_once_under_the_id_of_its_answer(autojump_clock):
    with captured_log() as lines:
        async with runtime() as here, await here.deploy(Shop, "shop") as shop:
            answer = await (await here.deploy(Mirror)).request(shop.url, "raise")
            url = shop.url
    why = answer.body["description"]
    assert "secret" not in why
    (line,) = [one for one in lines if one["log_level"] == "error"]
    assert (line["event"], line["hyperty"], line["url"]) == ("handler failed", "shop", url)
    assert line["correlation"] == ID.search(why)[1]
    assert isinstance(line["exc_info"], RuntimeError)
    assert line["exc_info"].__traceback__ is not None


async def test_one_that_fails_all_the_time_logs_few_tracebacks(autojump_clock):
    """R11: a traceback takes as long as thirty requests of others."""
    with captured_log() as lines:
        async with runtime() as here, await here.deploy(Shop, "shop") as shop:
            caller = await here.deploy(Mirror)
            for _ in range(TRACEBACKS_AT_ONCE + 5):
                await caller.request(shop.url, "raise")
            await trio.sleep(1 / TRACEBACKS)
            await caller.request(shop.url, "raise")
    failed = [one for one in lines if one["event"] == "handler failed"]
    traced = [isinstance(one.get("exc_info"), RuntimeError) for one in failed]
    assert traced == [True] * TRACEBACKS_AT_ONCE + [False] * 5 + [True]
    told = {(one["error"], len(one["correlation"])) for one in failed if "error" in one}
    assert told == {("RuntimeError: a secret", 12)}


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


async def test_a_group_of_a_handlers_nursery_is_one_error(autojump_clock):
    with captured_log() as lines:
        async with runtime() as here, await here.deploy(Shop) as shop:
            caller = await here.deploy(Mirror)
            assert (await caller.request(shop.url, "group")).code == 500
            assert (await caller.request(shop.url, "cancel")).code == 200
            assert shop.errors == 1
    (line,) = [one for one in lines if one["log_level"] == "error"]
    assert len(line["exc_info"].exceptions) == 3


async def test_cancellation_passes_a_handler_that_fails_on_it(autojump_clock):
    """The error is on record, the hyperty stops at once, and the requester is notified."""
    answers = []
    with captured_log() as lines:
        async with runtime() as here:
            caller, shop = await here.deploy(Mirror), await here.deploy(Shop)

            async def ask():
                answers.append(await caller.request(shop.url, "mixed"))

            async with trio.open_nursery() as nursery:
                nursery.start_soon(ask)
                await trio.testing.wait_all_tasks_blocked()
                assert (await caller.request(shop.url, "task")).code == 503
            assert (await caller.request(shop.url, "count")).body["value"] == 1
            assert shop.errors == 1
    assert [answer.code for answer in answers] == [503]
    events = [one["event"] for one in lines if one["log_level"] == "error"]
    assert events == ["handler failed", "actor crashed"]


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


async def test_no_handler_of_an_application_ends_it(autojump_clock):
    """HYP-01: events, decisions, invitations."""
    async with runtime() as here:
        shop, guest = await here.deploy(Shop), await here.deploy(Mirror)
        async with shop.report("comm", {}) as thing:
            with pytest.raises(actors.ObjectError, match="did not decide: 500"):
                async with guest.observe(thing.url):
                    pytest.fail("it is not let in")
        async with guest.report("comm", {}) as thing:
            with pytest.raises(actors.ObjectError, match="500"):
                await thing.invite(shop.url)
        assert shop.errors == 2
        assert (await guest.request(shop.url, "count")).body["value"] == 1
        assert shop.state == "running"


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


async def test_one_that_is_undeployed_has_not_failed(autojump_clock):
    async with runtime() as here:
        shop, other = await here.deploy(Shop), await here.deploy(Shop)
        await shop.undeploy()
        assert (await shop.failed(), shop.state) == (None, "undeployed")
    assert (await other.failed(), other.state) == (None, "undeployed")


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


# ---- in a process of its own


@pytest.mark.timeout(240)
async def test_in_a_process_a_hyperty_continues_after_an_error_that_is_logged_here():
    with captured_log() as lines:
        async with (
            actors.open_node("a.example") as node,
            actors.open_runtime("a.example", "ra", node=node.url) as here,
            await here.deploy_apart(Mirror, "far") as far,
            await here.deploy(Mirror) as caller,
        ):
            answers = [await caller.request(far.url, {"fail": 0}) for _ in range(50)]
            assert (await caller.request(far.url, {"number": 0})).body["value"] == 51
            assert (far.state, far.errors) == ("running", 50)
            url = far.url
        assert await far.failed() is None
    whys = [answer.body["description"] for answer in answers]
    assert {answer.code for answer in answers} == {500}
    assert not any("secret" in why for why in whys)
    reported = [one for one in lines if one["event"] == "handler failed"]
    assert [one["correlation"] for one in reported] == [ID.search(why)[1] for why in whys]
    assert {(one["hyperty"], one["url"]) for one in reported} == {("far", url)}
    assert all("secret of the inside" in (one.get("exception") or one["error"]) for one in reported)
    assert sum("\n" in one.get("exception", "") for one in reported) >= TRACEBACKS_AT_ONCE
