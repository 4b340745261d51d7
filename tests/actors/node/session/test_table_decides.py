"""What a state forbids, the state decides: a changed table changes the behaviour (I-M1, I-S9).

The table is changed while the program runs, and who looks is a peer at the other end of a link.
"""

from contextlib import contextmanager, nullcontext

import pytest
import trio

from actors.runtime.app import open_runtime
from actors.runtime.config import RuntimeConfig
from fsm.engine import machine_of
from fsm.machines.session import SESSION, State, Trigger
from fsm.machines.stub_connection import NODE_LINK, LinkState, LinkTrigger
from specs.limits.protocol import OPEN_TIMEOUT
from specs.reply_code import Code
from specs.trace import ABSENT
from tests.support.node.node_peer import DOMAIN, RB, open_world
from tests.support.runtime.abroad import Shy
from tests.support.trace.census import uncounted
from tests.support.trace.memory import MemoryTracer
from transports.link import Kind


@contextmanager
def leading(table, trigger, source, target):
    """Let a trigger lead elsewhere; the census of steps counts none of this machine meanwhile."""
    (row,) = machine_of(table).get_transitions(trigger, str(source))
    before, row.dest = row.dest, target.value
    try:
        with uncounted(table.name):
            yield
    finally:
        row.dest = before


def detached():
    """Let sessions be detached from their beginning, while they have a link."""
    return leading(SESSION, Trigger.OPENED, ABSENT, State.DETACHED)


async def test_a_session_that_is_detached_serves_no_requests(autojump_clock):
    async with open_world() as world:
        peer = await world.outsider()
        with detached():
            answer = await peer.control("open", runtimeURL=peer.runtime)
        assert answer.code == Code.OK
        assert await world.states() == {peer.runtime: "detached"}
        asked = await peer.ask(
            "create",
            f"{peer.runtime}/ua",
            "domain://msg-node.a.ex/address-allocation",
            scheme="hyperty",
            value={"number": 1},
        )
        assert asked.code == Code.UNAUTHENTICATED
        assert "open a session" in asked.body["description"]


@pytest.mark.parametrize("is_detached", [False, True])
async def test_what_is_for_a_session_that_is_detached_waits(autojump_clock, is_detached):
    async with open_world() as world:
        sender = await world.peer()
        receiver = await world.outsider(RB)
        with detached() if is_detached else nullcontext():
            await receiver.control("open", runtimeURL=RB)
        await sender.post("create", f"{sender.runtime}/ua", f"{RB}/ua")
        assert await receiver.silence() is is_detached


@pytest.mark.parametrize("may_write", [True, False])
async def test_a_runtime_writes_in_the_states_of_its_link_that_permit_it(autojump_clock, may_write):
    waiting = leading(NODE_LINK, LinkTrigger.SESSION_OPENED, LinkState.PROVING, LinkState.OPENING)
    hyperty = Shy()
    async with open_world() as world:
        config = RuntimeConfig(domain=DOMAIN, name="ra", node=world.node.url)
        async with open_runtime(config, world.network, MemoryTracer()) as runtime:
            await runtime.deploy("echo", lambda: hyperty)
            async with trio.open_nursery() as nursery:
                with nullcontext() if may_write else waiting:
                    for wire in world.network.open_wires(Kind.WEBSOCKET):
                        wire.cut()
                    peer = await world.peer(RB)
                    await trio.sleep(OPEN_TIMEOUT / 3)
                    nursery.start_soon(hyperty.request, f"{RB}/ua", "hello")
                    assert await peer.silence(OPEN_TIMEOUT / 3) is not may_write
                request = await peer.hear()
                await peer.post_answer(request, Code.OK)
