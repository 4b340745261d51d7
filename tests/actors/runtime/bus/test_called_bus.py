"""The Message BUS is called by others: their waits, their cancellations, and its own errors."""

import pytest
import trio
import trio.testing

from actors.kit.errors import ActorStoppedError, RestartLimitError
from actors.runtime.bus.messages import Origin, Permits
from actors.runtime.bus.mini_bus import MiniBus
from actors.runtime.bus.ports import SandboxPort
from specs.limits.bus import SUBMITTED
from specs.limits.protocol import REPLY_TIMEOUT
from specs.message import Message, MessageType
from tests.actors.runtime.bus.test_turns import hyperty_port
from tests.support.runtime.domain import open_domain
from tests.support.runtime.runtime_parts import PermitAll, R, open_bus
from tests.support.wire.wire import A, B, ask, event

BATCH = 64


class DenyAll(PermitAll):
    def refusal(self, message, by):
        return "no"


async def waits(ends, call, *args):
    """Note how a call ends, in a task that no runtime stops."""
    try:
        await call(*args)
    except ActorStoppedError as error:
        ends.append(str(error))


async def test_who_waits_outside_hears_that_the_runtime_closes():
    ends = []
    async with trio.open_nursery() as outside, open_bus() as world:
        await world.component(B)
        port = hyperty_port(world, A)
        await world.component(A)
        outside.start_soon(waits, ends, port.request, ask(1))
        outside.start_soon(waits, ends, world.port(A).caught_up, f"{B}/changes", "link")
        await world.settle()
        assert not ends
    assert ends == ["actor 'bus' has stopped"] * 2


@pytest.mark.parametrize("broken", ["_submit", "after"])
async def test_an_error_in_the_bus_ends_the_runtime_and_the_waits_of_others(
    broken, autojump_clock, monkeypatch
):
    """Not the hyperty whose message it was: it has done nothing wrong."""

    def fails(*_, **__):
        raise ZeroDivisionError

    ends = []
    async with trio.open_nursery() as outside:
        with pytest.RaisesGroup(RestartLimitError, flatten_subgroups=True):
            async with open_domain("ra", "rb") as domain:
                one, other = domain["ra"], domain["rb"]
                outside.start_soon(waits, ends, one.hyperty.request, "hyperty://a.example/nobody")
                await trio.lowlevel.checkpoint()
                bus = one.runtime.bus
                where = bus if broken == "_submit" else bus.admission
                monkeypatch.setattr(where, broken, fails)
                outside.start_soon(waits, ends, one.hyperty.request, other.address)
                await trio.sleep(1)
                monkeypatch.undo()
                await trio.sleep_forever()
    assert len(ends) == 2
    assert set(ends) == {"actor 'bus' has stopped"}


async def test_a_loop_of_refused_requests_can_be_cancelled():
    async with open_bus(DenyAll()) as world:
        await world.component(A)
        port = hyperty_port(world, A)
        codes = set()

        async def ask_for_ever():
            while True:
                codes.add((await port.request(ask(1))).code)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask_for_ever)
            while not codes:
                await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()
    assert codes == {403}


async def test_what_is_asked_after_the_cancellation_is_not_sent(world):
    heard = await world.component(B)
    await world.component(A)
    port = hyperty_port(world, A)
    with trio.CancelScope() as scope:
        scope.cancel()
        await port.request(ask(1))
    await world.settle()
    assert not heard


async def test_a_cancelled_post_leaves_no_place_taken(world):
    await world.component(A)
    port = hyperty_port(world, A)
    posted = 0
    for number in range(1, (SUBMITTED + 1) * BATCH + 1):
        with trio.CancelScope() as scope:
            scope.cancel()
            await port.post(event(number, A, f"{A}/changes"))
            posted += 1
        await trio.lowlevel.cancel_shielded_checkpoint()
    with trio.fail_after(60):
        await port.post(event(number + 1, A, f"{A}/changes"))


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


async def test_messages_of_two_tasks_keep_the_order_in_which_they_are_posted(world):
    """I-T7: also the one after which the poster lets others run."""
    heard = await world.component(B)
    await world.component(A)
    port = hyperty_port(world, A)
    numbers = iter(range(1, 4 * BATCH + 1))

    async def post():
        for number in numbers:
            await port.post(Message(number, MessageType.CREATE, A, B, {}))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(post)
        nursery.start_soon(post)
    await world.settle()
    came = [delivery.message.id for delivery in heard]
    assert came == sorted(came)
    assert len(came) == 4 * BATCH


async def test_what_is_due_next_is_not_looked_for_with_each_message(
    world, monkeypatch, autojump_clock
):
    """Where many messages wait, a look takes longer than to route a message."""
    await world.component(A)
    port, looks = hyperty_port(world, A), []
    deadline = world.bus._due

    def counted():
        looks.append(1)
        return deadline()

    monkeypatch.setattr(world.bus, "_due", counted)
    await trio.sleep(1)
    for number in range(1, 1001):
        await port.post(event(number, A, f"{A}/changes"))
    assert len(looks) < 10


async def test_waits_that_begin_between_two_looks_end_in_time(world, autojump_clock):
    """MSG-06."""
    await world.component(B)
    await world.component(A)
    port, ends = hyperty_port(world, A), []

    async def request(number, start):
        await trio.sleep(start)
        answer = await port.request(ask(number))
        ends.append((number, answer.code, round(trio.current_time() - begun - start, 6)))

    begun = trio.current_time()
    async with trio.open_nursery() as nursery:
        for number, start in enumerate((0, 0, 0.01, 0.049, 0.05, 0.07), start=1):
            nursery.start_soon(request, number, start)
    assert sorted(ends) == [(number, 408, REPLY_TIMEOUT) for number in range(1, 7)]


async def test_a_stub_that_brings_many_messages_lets_others_run(world):
    stub = f"{R}/protostub/1"
    await world.component(stub, Origin.NODE_STUB)
    await world.component(A)
    port, turns = SandboxPort(stub, world.bus, MiniBus("minibus", world.hops("minibus"))), []
    is_over = False

    async def other():
        while not is_over:
            turns.append(1)
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(other)
        for number in range(1, 20 * BATCH + 1):
            await port.post(event(number, B, f"{A}/changes"))
        is_over = True
    assert len(turns) > 10
