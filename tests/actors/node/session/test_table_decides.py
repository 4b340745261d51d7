"""What a state forbids, the state decides: a changed table changes the behaviour (I-M1, I-S9)."""

import attrs
import pytest

from fsm.machines.session import SESSION, State, Trigger
from fsm.machines.stub_connection import NODE_LINK, LinkState, LinkTrigger
from fsm.session import node_session, stub_client
from fsm.session import stub_client_io as ev
from fsm.session.stub_client import StubClientCore
from specs.bodies.word import SessionMethod
from specs.reply_code import Code
from tests.support.node.node_peer import RB, open_world
from tests.support.wire.wire import ask


def leading(table, trigger, target):
    """Return a table in which a trigger leads elsewhere."""
    rows = tuple(
        attrs.evolve(row, target=target) if row.trigger is trigger else row for row in table.rows
    )
    return attrs.evolve(table, rows=rows)


def detach(monkeypatch):
    """Let sessions be detached from their beginning, while they have a link."""
    changed = leading(SESSION, Trigger.OPENED, State.DETACHED)
    monkeypatch.setattr(node_session, "SESSION", changed)


async def test_a_session_that_is_detached_serves_no_requests(autojump_clock, monkeypatch):
    detach(monkeypatch)
    async with open_world() as world:
        peer = await world.outsider()
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
async def test_what_is_for_a_session_that_is_detached_waits(
    autojump_clock, monkeypatch, is_detached
):
    async with open_world() as world:
        sender = await world.peer()
        if is_detached:
            detach(monkeypatch)
        receiver = await world.outsider(RB)
        await receiver.control("open", runtimeURL=RB)
        await sender.post("create", f"{sender.runtime}/ua", f"{RB}/ua")
        assert await receiver.silence() is is_detached


@pytest.mark.parametrize(
    ("target", "effect"), [(LinkState.OPEN, ev.Write), (LinkState.PROVING, ev.Queued)]
)
def test_a_stub_writes_in_the_states_of_its_link_that_permit_it(monkeypatch, target, effect):
    changed = leading(NODE_LINK, LinkTrigger.SESSION_OPENED, target)
    monkeypatch.setattr(stub_client, "NODE_LINK", changed)
    core = StubClientCore("S", lambda: 0.0)
    core.begin()
    opened = ev.SessionAnswered(SessionMethod.OPEN, 200, "token")
    for happened in (ev.ConnectAsked(), ev.Dialled(), opened):
        core.feed(happened, 0.0)
    assert core.feed(ev.SendAsked(ask(1)), 0.0) == [effect(ask(1))]
