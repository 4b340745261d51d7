"""The Message BUS is called by others: their waits, their cancellations, and its own errors."""

import pytest
import trio
import trio.testing

from actors.kit.errors import ActorStoppedError
from actors.runtime.bus.message_bus import MessageBus
from actors.runtime.bus.messages import Permits
from specs.limits.bus import SUBMITTED
from tests.actors.runtime.bus.test_turns import hyperty_port
from tests.support.calls_made import calls_of
from tests.support.wire.wire import A, event


async def waits(ends, call, *args):
    """Note how a call ends, in a task that no runtime stops."""
    try:
        await call(*args)
    except ActorStoppedError as error:
        ends.append(str(error))


async def test_each_message_to_a_closed_bus_is_refused(world):
    port = hyperty_port(world, A)
    world.bus.close()
    with trio.fail_after(60):
        for number in range(SUBMITTED + 1):
            with pytest.raises(ActorStoppedError):
                await port.post(event(number + 1, A, f"{A}/changes"))


async def test_no_message_passes_a_sender_that_waits_for_its_turn():
    permits = Permits()
    while permits.enter_nowait():
        pass
    async with trio.open_nursery() as nursery:
        for _ in range(2):
            nursery.start_soon(permits.enter)
        await trio.testing.wait_all_tasks_blocked()
        permits.give_back()
        permits.give_back()
        assert not permits.enter_nowait()


async def test_what_is_due_next_is_not_looked_for_with_each_message(world, autojump_clock):
    """Where many messages wait, a look takes longer than to route a message."""
    await world.component(A)
    port = hyperty_port(world, A)
    await trio.sleep(1)
    with calls_of(MessageBus._due) as looks:
        for number in range(1, 1001):
            await port.post(event(number, A, f"{A}/changes"))
    assert 0 < len(looks) < 10
