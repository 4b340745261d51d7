"""A connector that is stopped still answers all that was asked of it (CON-07)."""

from functools import partial

import trio

from actors.kit.back_ends.requests import Asked
from actors.kit.counters import BackEnd
from actors.kit.supervision.supervisor import open_supervisor
from actors.node.connectors.back_ends import Connector
from actors.node.connectors.service import Plan, Service
from fsm.registry.relay import RelayLimits
from specs.message import Message, MessageType
from tests.support.node.part_host import host_of

TO, BY = "domain://registry.a.ex", "hyperty-runtime://a.ex/r"


class Bus:
    """The bus of a node, which notes what is answered."""

    def __init__(self):
        self.answers = []

    def call(self, act, *args):
        act(*args)

    def emit(self, message, to_runtime):
        self.answers.append((message.id, message.code, to_runtime))

    def attach(self, address, component):
        pass

    detach = attach


class Silent(Service):
    """A back end that never answers."""

    def plan(self, asked):
        return Plan(trio.sleep_forever)

    def forget_runtime(self, runtime):
        pass

    async def run(self, say):
        pass

    async def closing(self):
        pass

    async def aclose(self):
        pass


async def test_what_is_open_is_answered_when_it_stops(autojump_clock):
    bus = Bus()
    async with open_supervisor("node") as supervisor:
        host = host_of(supervisor, bus)
        make = partial(Connector, host, BackEnd.REGISTRY, TO, Silent(), RelayLimits(4, 8, 10.0))
        connector = await host.start("connector", make)
        for number in range(1, 7):
            request = Message(number, MessageType.READ, f"hyperty://a.ex/{number}", TO)
            await connector.tell(Asked(request, BY, None))
        await trio.sleep(1)
        assert bus.answers == []
        await supervisor.stop_child("connector")
    assert bus.answers == [(number, 503, BY) for number in range(1, 7)]
