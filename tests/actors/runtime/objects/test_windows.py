"""Requests of one process at one receiver: the senders take turns, and a wait can be given up."""

import pytest
import trio

from actors.runtime.objects.participant import RequestPlace
from specs.limits.bus import OPEN_REQUESTS, PEER_WAITING

TO = "hyperty://a.example/receiver"


async def hold(windows, sender, order, done):
    async with RequestPlace(windows, sender, TO):
        order.append(sender)
        await done.wait()


async def test_a_sender_that_asks_much_does_not_keep_another_waiting():
    windows, order, first, rest = {}, [], trio.Event(), trio.Event()
    async with trio.open_nursery() as nursery:
        for number in range(4 * OPEN_REQUESTS):
            done = first if number < 3 else rest
            nursery.start_soon(hold, windows, "ab"[number % 2], order, done)
            await trio.lowlevel.checkpoint()
        await trio.testing.wait_all_tasks_blocked()
        assert len(order) == PEER_WAITING == 2 * OPEN_REQUESTS
        nursery.start_soon(hold, windows, "c", order, rest)
        await trio.testing.wait_all_tasks_blocked()
        assert "c" not in order
        first.set()
        await trio.testing.wait_all_tasks_blocked()
        assert sorted(order[PEER_WAITING:]) == ["a", "b", "c"]
        rest.set()
    assert len(order) == 4 * OPEN_REQUESTS + 1
    assert not windows


async def test_a_wait_that_is_given_up_leaves_nothing():
    windows, order, done = {}, [], trio.Event()
    async with trio.open_nursery() as nursery:
        for _ in range(OPEN_REQUESTS):
            nursery.start_soon(hold, windows, "a", order, done)
        await trio.testing.wait_all_tasks_blocked()
        with trio.CancelScope() as scope:
            scope.cancel()
            async with RequestPlace(windows, "a", TO):
                pytest.fail("there is no place")
        assert scope.cancelled_caught
        async with RequestPlace(windows, "a", f"{TO}/else"):
            done.set()
    assert not windows
