"""The end of a runtime at which others have invited its handler (SC-28, P2P-28)."""

from contextlib import AsyncExitStack

import trio

from specs.trace import Kind, Op
from tests.actors.runtime.stubs.test_node_restart import Place
from transports.link import Kind as Carrier


async def test_a_handlers_link_is_disconnected_before_its_row_and_listener_go(autojump_clock):
    place = Place()
    async with trio.open_nursery() as place.nursery:
        await place.start_node()
        async with AsyncExitStack() as stack:
            await place.join(stack, "ra", (Carrier.TCP,))
            await place.join(stack, "rb", (Carrier.TCP,))
            one, other = place.members
            await one.ask(other, 1)
            await one.wait_for("live", other)
            await other.wait_for("live", one)
            begun = len(other.tracer.facts)
        place.node.cancel()
    ended = [
        fact.table or fact.new
        for fact in other.tracer.facts[begun:]
        if (fact.k is Kind.STATE and fact.machine == "p2p_connection")
        or (fact.table == "p2p" and fact.op is Op.DEL)
        or (fact.table == "listeners" and fact.op is Op.DEL and "/conn/" in fact.key)
    ]
    assert ended[0] == "disconnected"
    assert set(ended[1:]) == {"p2p", "listeners"}
