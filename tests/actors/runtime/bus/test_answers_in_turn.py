"""A task of an actor goes on behind what its actor heard before the answer, and before the rest."""

from functools import partial

import pytest
import trio
from typing_extensions import override

from actors.kit.counters import Counters
from actors.kit.supervision.actor import Actor, Delivery, Reply
from actors.kit.supervision.supervisor import ChildSpec
from actors.runtime.bus.message_bus import DeadMail
from actors.runtime.bus.messages import Turn
from specs.message import MessageType
from tests.support.runtime.parties import parties
from tests.support.wire.wire import A, B, answer, ask, event


class Asking(Actor):
    """Asks in a task, and notes in which order it hears what."""

    def __init__(self, port, number, log):
        self.port, self.number, self.log = port, number, log

    @override
    async def start(self):
        self.port.take_turns(self.me)
        self.port.open_address(A, self.me)
        self.spawn(self.ask)

    async def ask(self):
        answered = await self.port.request(ask(self.number, from_=A, to=B))
        self.log.append(answered.code)

    @override
    async def stop(self):
        self.port.close_address(A, self.me)

    @override
    async def handle(self, message):
        match message:
            case Turn():
                await message.take()
            case Delivery():
                self.log.append(message.message.id)


@pytest.mark.parametrize("mailbox", [64, 1])
async def test_a_task_goes_on_in_the_turn_of_its_answer(mailbox, world):
    """I-B7; with a full mailbox it goes on at once, rather than never."""
    await world.component(B)
    other = world.port(B)
    for one in range(10, 210, 10):  # The order of two tasks is a matter of chance.
        log: list[int] = []
        make = partial(Asking, world.port(A), one, log)
        await world.supervisor.start_child(ChildSpec("asking", make, mailbox=mailbox))
        await world.settle()
        for number in (one + 2, one + 3):
            other.send(event(number, B, A))
        other.send(answer(ask(one, from_=A, to=B)))
        other.send(event(one + 4, B, A))
        await world.settle()
        await world.supervisor.stop_child("asking")
        if mailbox > 1:
            assert log == [one + 2, one + 3, 200, one + 4]
        else:
            assert 200 in log


def test_an_answer_whose_task_has_ended_is_no_dead_letter():
    """It counts neither where it takes no turn: the task ends with its actor."""
    counters, reply = Counters(), Reply()
    dead = DeadMail(None, counters)
    dead("sm", Turn(reply, answer(ask(1))))
    assert counters.dead_letters == {}
    dead("sm", object())
    assert counters.dead_letters == {"sm": 1}


@pytest.mark.parametrize("time", range(6), ids=str)
async def test_an_observer_that_asks_again_while_it_is_expelled_stays(time, autojump_clock):
    """SYN-21: the notice of its expulsion and the answer to its new request come at once.

    Several times: the order of two tasks is a matter of chance.
    """
    async with parties() as (alice, bob):
        url = await alice.create(t=0)
        assert (await bob.observe(url)).code == 200
        bus, held = bob.member.runtime.bus, []
        submit = bus.submit

        def together(submitted):
            message = submitted.message
            if (message.from_, message.to) != (f"{url}/subscription", bob.manager):
                submit(submitted)
                return
            held.append(submitted)
            while message.is_response and held:
                submit(held.pop(0))

        bus.submit = together
        await alice.ask(MessageType.UNSUBSCRIBE, resource=url, observer=bob.url)
        await trio.sleep(1)
        assert [one.message.type for one in held] == [MessageType.UNSUBSCRIBE]
        assert (await bob.observe(url)).code == 200
        bus.submit = submit
        _, observed = await bob.member.runtime.sync.urls()
        assert url in observed
        await alice.change(url, "t", 5)
        await trio.sleep(2)
        assert [one.type for one in bob.member.hyperty.events] == [MessageType.UPDATE]
