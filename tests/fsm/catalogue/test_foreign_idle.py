"""A node releases the stub of another domain that was idle (PFY-03, MN-19, STB-15)."""

import math

import pytest

from fsm.catalogue import foreign_io as ft
from fsm.catalogue.foreign import ForeignCore
from fsm.machines.stub_connection import State
from fsm.session.node_session_io import OutboundMessage
from specs.limits.foreign_code import FOREIGN_DOMAINS
from specs.message import Message, MessageType, reply_to, stamped

NODE, B = "domain://msg-node.a.ex", "b.ex"
STUB = f"{NODE}/protostub/{B}"
SM = "domain://msg-node.b.ex/sm"
IDLE = 60.0


def asked(number=1, kind=MessageType.CREATE, to="hyperty://b.ex/hb", **body):
    return Message(number, kind, f"{NODE}/sm", to, body)


def send(message):
    return ft.Send(B, OutboundMessage(message, b"x"))


def answered(core, request, now):
    core.feed(ft.SandboxPosted(STUB, stamped(reply_to(request, 200), STUB)), now)


@pytest.fixture
def core():
    """A core with a stub that is live, and whose first request is answered."""
    core = ForeignCore(NODE, {B}, IDLE)
    core.feed(send(asked()), 0)
    assert core.deadline() < IDLE
    core.feed(ft.SandboxReady(STUB), 0)
    core.feed(ft.SandboxStatus(STUB, State.LIVE, ""), 0)
    answered(core, asked(), 1)
    return core


def tick(core, now):
    assert core.deadline() == now
    return core.feed(ft.Tick(), now)


def test_an_idle_stub_ends_and_its_successor_has_another_name(core):
    assert tick(core, 1 + IDLE) == [ft.End(STUB, "it was idle")]
    assert core.deadline() == math.inf
    assert core.feed(ft.SandboxGone(STUB, "ended"), 62) == []
    *_, opened = core.feed(send(asked(2)), 63)
    assert opened.stub == f"{STUB}/2"


def test_messages_that_come_while_it_ends_wait_for_the_successor_in_order(core):
    tick(core, 1 + IDLE)
    assert core.feed(send(asked(2)), 61) == []
    assert core.feed(send(asked(3)), 61) == []
    _, opened = core.feed(ft.SandboxGone(STUB, "ended"), 62)
    _, *handed = core.feed(ft.SandboxReady(opened.stub), 62)
    assert [one.entry.message.id for one in handed] == [2, 3]


def test_messages_that_wait_are_refused_if_the_node_leaves(core):
    tick(core, 1 + IDLE)
    core.feed(send(asked(2)), 61)
    core.feed(ft.Leave(), 61)
    (refused,) = core.feed(ft.SandboxGone(STUB, "ended"), 62)
    assert (refused.message.id, refused.code) == (2, 503)


def test_an_open_request_keeps_the_stub_until_nobody_waits_any_more(core):
    core.feed(send(asked(2)), 1 + IDLE - 1)
    assert core.deadline() == 2 * IDLE
    core.feed(send(asked(3)), 2 * IDLE - 1)
    assert tick(core, 3 * IDLE - 1) == [ft.End(STUB, "it was idle")]


def test_a_subscription_keeps_the_stub_until_it_is_given_up(core):
    path = {"resources": ["comm://b.ex/1/changes"]}
    subscribe = asked(2, MessageType.SUBSCRIBE, SM, **path)
    core.feed(send(subscribe), 1)
    answered(core, subscribe, 1)
    assert tick(core, 1 + IDLE) == []
    unsubscribe = asked(3, MessageType.UNSUBSCRIBE, SM, **path)
    core.feed(send(unsubscribe), 2 * IDLE)
    answered(core, unsubscribe, 2 * IDLE)
    assert tick(core, 3 * IDLE) == [ft.End(STUB, "it was idle")]


@pytest.mark.parametrize("state", [State.IN_PROGRESS, State.DISCONNECTED])
def test_a_stub_that_may_hold_messages_back_stays(core, state):
    core.feed(ft.SandboxStatus(STUB, state, ""), 2)
    assert tick(core, 1 + IDLE) == []


def test_so_many_domains_are_tried_and_no_more():
    class Everything:
        def __contains__(self, _):
            return True

    core = ForeignCore(NODE, Everything())
    for number in range(FOREIGN_DOMAINS):
        *_, opened = core.feed(ft.Send(f"d{number}.ex", OutboundMessage(asked(), b"x")), 0)
        core.feed(ft.SandboxGone(opened.stub, "no descriptor"), 0)
    (refused,) = core.feed(ft.Send("one-more.ex", OutboundMessage(asked(), b"x")), 0)
    assert (refused.code, refused.retry_after) == (413, None)
    assert f"has tried {FOREIGN_DOMAINS} other domains" in refused.why
