"""A connector that is stopped by force still answers all that was asked of it (CON-07)."""

from functools import partial

import trio

from actors.kit.back_ends.requests import Asked
from actors.kit.counters import BackEnd
from actors.kit.supervision.actor import Actor
from actors.kit.supervision.supervisor import ChildSpec, open_supervisor
from actors.node.connectors.back_ends import Connector
from actors.node.connectors.service import Plan, Service
from actors.node.messages import Emitted
from fsm.registry.relay import RelayLimits
from specs.limits.protocol import GOODBYE_TIMEOUT
from specs.message import Message, MessageType
from tests.support.node.part_host import host_of

TO, BY = "domain://registry.a.ex", "hyperty-runtime://a.ex/r"


class Bus(Actor):
    """The bus of a node, which takes no answer for a while."""

    def __init__(self, answers, has_room):
        self.answers, self.has_room = answers, has_room

    async def handle(self, message):
        if isinstance(message, Emitted):
            await self.has_room.wait()
            self.answers.append((message.message.id, message.message.code))
        else:
            message(self)

    def attach(self, address, component):
        return None


class Silent(Service):
    """A back end that never answers."""

    def plan(self, asked):
        return Plan(trio.sleep_forever)

    def left(self, runtime):
        pass

    async def run(self, say):
        pass

    async def closing(self):
        pass

    async def aclose(self):
        pass


async def test_answers_that_could_not_be_sent_are_sent_when_it_stops(autojump_clock):
    answers, has_room = [], trio.Event()
    async with open_supervisor("node") as supervisor:
        make = partial(Bus, answers, has_room)
        bus = await supervisor.start_child(ChildSpec("bus", make, mailbox=1))
        host = host_of(supervisor, bus)
        limits = RelayLimits(8, 8, 10.0)
        make = partial(Connector, host, BackEnd.REGISTRY, TO, Silent(), limits)
        connector = await host.start("connector", make)
        for number in range(1, 7):
            request = Message(number, MessageType.READ, f"hyperty://a.ex/{number}", TO)
            await connector.tell(Asked(request, BY, None))
        # All are refused at once; the bus takes two, and the third has to wait.
        await trio.sleep(11)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(supervisor.stop_child, "connector")
            await trio.sleep(GOODBYE_TIMEOUT / 2)
            nursery.cancel_scope.cancel()
            has_room.set()
    assert answers == [(number, 504) for number in range(1, 7)]
