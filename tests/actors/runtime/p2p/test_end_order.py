"""The end of a runtime with a direct link (SC-28, P2P-28)."""

from contextlib import AsyncExitStack

import pytest
import trio

from fsm.judge.trace_line import Verdict
from specs.trace import Kind, Op
from tests.actors.runtime.stubs.test_node_restart import Place
from tests.support.runtime.domain import judged
from transports.link import Kind as Carrier


@pytest.mark.parametrize("role", ["handler", "requester"])
async def test_a_link_is_disconnected_before_its_row_and_listener_go(role, autojump_clock):
    place = Place()
    async with trio.open_nursery() as place.nursery:
        await place.start_node()
        async with AsyncExitStack() as stack:
            await place.join(stack, "ra", (Carrier.TCP,))
            await place.join(stack, "rb", (Carrier.TCP,))
            one, other = place.members
            # The one that joined last ends first.
            await (one.ask(other, 1) if role == "handler" else other.ask(one, 1))
            await one.wait_for("live", other)
            await other.wait_for("live", one)
            begun = len(other.tracer.facts)
        place.node.cancel()
    mark = "/conn/" if role == "handler" else "/p2prequester/"
    ended = [
        fact.table or fact.new
        for fact in other.tracer.facts[begun:]
        if (fact.k is Kind.STATE and fact.machine == "p2p_connection")
        or (fact.table == "p2p" and fact.op is Op.DEL)
        or (fact.table == "listeners" and fact.op is Op.DEL and mark in fact.key)
    ]
    assert ended[0] == "disconnected"
    assert set(ended[1:]) == {"p2p", "listeners"}
    assert {judged(member).verdict for member in place.members} == {Verdict.CONFORMANT}
