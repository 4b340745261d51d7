"""Runtimes and nodes in a program on asyncio."""

import asyncio
import threading
from contextlib import asynccontextmanager, suppress

import anyio
import pytest
import trio

import actors
from actors import aio
from actors.aio import TrioThread

HANGS = 60


def run(main):
    async def bounded():
        async with asyncio.timeout(HANGS):
            return await main()

    try:
        return asyncio.run(bounded())
    finally:
        assert "protofly trio" not in {thread.name for thread in threading.enumerate()}


@asynccontextmanager
async def world():
    async with (
        aio.open_node("a.example") as node,
        aio.open_runtime("a.example", "bob", node=node.url) as bob,
        aio.open_runtime("a.example", "alice", node=node.url) as alice,
    ):
        yield bob, alice


def test_the_api_of_trio_says_what_to_do_under_asyncio():
    async def main():
        for opening in (
            actors.open_node("a.example"),
            actors.open_runtime("a.example", "bob", node="ws://127.0.0.1:1"),
        ):
            with pytest.raises(actors.NotTrioError, match=r"actors\.aio .*docs/asyncio\.md"):
                async with opening:
                    pass

    run(main)


def test_requests_events_and_refusals():
    events = []

    async def greet(message):
        await asyncio.sleep(0)
        if message.value is None:
            raise actors.Refused(actors.Code.FORBIDDEN, "nobody is to be greeted")
        return f"Hello, {message.value}!"

    async def note(message):
        events.append(message.value)

    async def main():
        async with world() as (bob, alice), bob.deploy(greet, event=note) as greeter:
            await alice.send(greeter, "an event")
            answers = await asyncio.gather(*(alice.request(greeter, n) for n in range(30)))
            assert [answer.value for answer in answers] == [f"Hello, {n}!" for n in range(30)]
            refused = await alice.request(greeter)
            assert (refused.code, refused.body["description"]) == (403, "nobody is to be greeted")
            with pytest.raises(actors.NotJsonError):
                await alice.request(greeter, object())
        assert events == ["an event"]

    run(main)


def test_an_object_is_reported_and_observed_and_the_reader_sets_the_pace():
    async def main():
        async with world() as (bob, alice):
            reported = bob.report("ctxt", {"n": 0}, public=True)
            async with reported as counter, alice.observe(counter.url) as copy:
                assert (copy.value, counter.value) == ({"n": 0}, {"n": 0})
                changes = copy.changes()
                for n in range(1, 6):
                    await counter.set("n", n)
                assert [(await anext(changes)).new for _ in range(5)] == [1, 2, 3, 4, 5]
            with pytest.raises(actors.ObjectError):
                async with alice.observe(counter.url):
                    pass

    run(main)


def test_a_handler_that_is_none_and_a_node_that_is_away():
    async def main():
        with pytest.raises(actors.BadUrlError):
            async with aio.open_runtime("a.example", "bob", node="nowhere"):
                pass
        async with aio.open_runtime("a.example", "bob", node="ws://127.0.0.1:1") as bob:
            with pytest.raises(TypeError, match="no coroutine function"):
                async with bob.deploy(lambda message: None):
                    pass
            with pytest.raises(actors.AllocationError):
                await bob.request("hyperty://a.example/x")
            # A call that failed is no verdict on the next.
            with pytest.raises(actors.AllocationError):
                await bob.request("hyperty://a.example/x")

    run(main)


def test_a_cancelled_call_cancels_its_function_and_a_left_context_all_of_them():
    started, ends = asyncio.Event(), []

    async def sleep(name, thread):
        thread.tell(started.set)
        try:
            await trio.sleep_forever()
        finally:
            ends.append(name)

    async def main():
        async with TrioThread.open() as thread:
            cancelled = asyncio.ensure_future(thread.run(sleep, "cancelled", thread))
            await started.wait()
            cancelled.cancel()
            with pytest.raises(asyncio.CancelledError):
                await cancelled
            assert ends == ["cancelled"]
            started.clear()
            left = asyncio.ensure_future(thread.run(sleep, "left", thread))
            await started.wait()
        with pytest.raises(actors.ActorStoppedError):
            await left
        assert ends == ["cancelled", "left"]
        with pytest.raises(actors.ActorStoppedError):
            await thread.run(trio.lowlevel.checkpoint)

    run(main)


def test_a_handler_is_cancelled_with_its_hyperty():
    begun, ends = asyncio.Event(), []

    async def wait(_):
        begun.set()
        try:
            await asyncio.sleep(HANGS)
        finally:
            ends.append("cancelled")

    async def main():
        async with world() as (bob, alice):
            async with bob.deploy(wait) as waiting:
                asking = asyncio.ensure_future(alice.request(waiting))
                await begun.wait()
            assert ends == ["cancelled"]
            assert (await asking).code == 503

    run(main)


def test_a_context_that_fails_cancels_its_block():
    class CrashedError(Exception):
        pass

    now = trio.Event()

    @asynccontextmanager
    async def crashing():
        async with trio.open_nursery() as nursery:
            nursery.start_soon(crash)
            yield "entered"

    async def crash():
        await now.wait()
        raise CrashedError

    async def order_crash():
        now.set()

    async def be_crashed(thread):
        async with thread.enter(crashing()):
            await thread.run(order_crash)
            await asyncio.sleep(HANGS)

    async def main():
        async with TrioThread.open() as thread:
            with pytest.raises((CrashedError, ExceptionGroup)) as caught:
                await be_crashed(thread)
            error = caught.value
            while isinstance(error, ExceptionGroup):
                (error,) = error.exceptions
            assert isinstance(error, CrashedError)
            # An error of the block is its own.
            with pytest.raises(KeyError):
                async with thread.enter(aside()):
                    raise KeyError

    @asynccontextmanager
    async def aside():
        yield

    run(main)


def test_a_start_that_is_cancelled_leaves_no_thread():
    async def main():
        async def open_one():
            async with aio.open_node("a.example"):
                await asyncio.sleep(HANGS)

        # The thread may start faster or slower than the cancellation comes.
        for _ in range(50):
            opening = asyncio.ensure_future(open_one())
            await asyncio.sleep(0)
            opening.cancel()
            with pytest.raises(asyncio.CancelledError):
                await opening

    run(main)


def test_a_scope_of_anyio_waits_for_the_end_of_trio_too():
    ends = []

    async def end_late(begun):
        begun()
        try:
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                for _ in range(50):
                    await trio.lowlevel.checkpoint()
            ends.append("ended")

    async def main():
        with anyio.CancelScope() as scope:
            async with TrioThread.open() as thread:
                await thread.run(end_late, lambda: thread.tell(scope.cancel))
        assert scope.cancelled_caught
        assert ends == ["ended"]
        assert "protofly trio" not in {each.name for each in threading.enumerate()}

    run(main)


def test_a_crash_of_trio_ends_the_block_of_a_node_with_the_cause():
    async def crash():
        raise SystemExit

    async def crash_within(crashes):
        async with aio.open_node("a.example") as node:
            crashes.append(asyncio.ensure_future(node.thread.run(crash)))
            await asyncio.sleep(HANGS)

    async def main():
        crashes = []
        with pytest.raises(actors.ActorStoppedError) as caught:
            await crash_within(crashes)
        assert isinstance(caught.value.__cause__, SystemExit)
        with pytest.raises(actors.ActorStoppedError):
            await crashes[0]

    run(main)


# Without the guard, Trio raises an internal error in its thread, and the end of the block shows it.
def test_calls_while_the_thread_ends_are_refused():
    async def call(thread):
        while True:
            await thread.run(trio.lowlevel.checkpoint)

    async def main():
        for _ in range(100):
            async with TrioThread.open() as thread:
                calls = [asyncio.ensure_future(call(thread)) for _ in range(8)]
                await thread.run(trio.lowlevel.checkpoint)
            for each in calls:
                with pytest.raises(actors.ActorStoppedError):
                    await each

    run(main)


def test_a_handler_that_ends_late_is_awaited_and_one_that_is_cancelled_harms_nobody():
    begun, ends = asyncio.Event(), []

    async def end_late(_):
        begun.set()
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(HANGS)
        # Longer than it takes to undeploy it and to come back.
        for _ in range(5000):
            await asyncio.sleep(0)
        ends.append("ended")

    async def cancel_itself(_):
        raise asyncio.CancelledError

    async def main():
        async with world() as (bob, alice):
            async with bob.deploy(end_late) as late:
                asking = asyncio.ensure_future(alice.request(late))
                await begun.wait()
            assert ends == ["ended"]
            await asking
            async with bob.deploy(cancel_itself) as cancelled:
                assert (await alice.request(cancelled)).code == 500
                assert (await alice.request(cancelled)).code == 500

    run(main)
