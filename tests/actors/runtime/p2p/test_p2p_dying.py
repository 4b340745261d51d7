"""A live link dies in the middle of a thousand messages (R10, P2P-15, I-P15, I-P22, I-B7)."""

import pytest
import trio

from fsm.judge.trace_line import Verdict
from specs.limits.protocol import PING_PERIOD, PONG_TIMEOUT
from tests.support.runtime.domain import go_live, judged, open_domain
from transports.link import Kind as Carrier

SAID = 300
BATCH = 50


def lost(wire):
    """Both ends hear of it."""
    wire.cut()


def black_holed(wire):
    """Nothing arrives at either end any more, and nobody hears of it."""
    wire.dialler.pattern = wire.acceptor.pattern = lambda *_: ()


def half_open(wire):
    """What the requester writes arrives; what it is to read does not."""
    wire.acceptor.pattern = lambda *_: ()


def half_closed(wire):
    """The other way round."""
    wire.dialler.pattern = lambda *_: ()


@pytest.mark.parametrize(
    ("harm", "sender"),
    [
        (lost, "alice"),
        (black_holed, "bob"),
        (half_open, "alice"),
        (half_open, "bob"),
        (half_closed, "alice"),
        pytest.param(lost, "bob", marks=pytest.mark.soak),
        pytest.param(black_holed, "alice", marks=pytest.mark.soak),
        pytest.param(half_closed, "bob", marks=pytest.mark.soak),
    ],
    ids=lambda one: getattr(one, "__name__", one),
)
async def test_all_messages_arrive_once_each_and_in_order(harm, sender, autojump_clock):
    receiver = {"alice": "bob", "bob": "alice"}[sender]
    async with open_domain("alice", "bob") as domain:
        await go_live(domain)
        one, other = domain[sender], domain[receiver]
        other.hyperty.heard.clear()
        for number in range(SAID):
            await one.post(other, number)
            if number % BATCH == 0:
                await trio.sleep(0.01)
            if number == SAID // 2:
                for wire in domain.network.open_wires(Carrier.TCP):
                    harm(wire)
        await trio.sleep(PING_PERIOD + PONG_TIMEOUT + 5)
        assert other.hyperty.heard == list(range(SAID))
        assert "disconnected" in [new for _, new in one.steps()]
        await go_live(domain)
    for member in domain.members.values():
        assert judged(member).verdict is Verdict.CONFORMANT
