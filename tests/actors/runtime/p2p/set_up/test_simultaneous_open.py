"""Two whole runtimes ask each other for a link at once: one link comes of it and stays."""

import pytest
import trio

from actors.kit.supervision.actor import Delivery
from actors.runtime.registry import registry
from fsm.judge.trace_line import Verdict
from specs.addresses.address import runtime_of
from specs.limits.protocol import P2P_TIMEOUT
from specs.reply_code import Code
from tests.support.runtime.domain import judged, open_domain

PAUSE = 2.0
"""Seconds that what a stub and its registry tell each other takes, where that is slow."""

HEARS, ORDERS = "hears", "orders"


def made_slow(monkeypatch, slow):
    """Let registries hear their handlers late, or their orders come late: `alice hears`."""

    def is_slow(address, what):
        return f"{runtime_of(address).rpartition('/')[2]} {what}" in slow

    handle, order = registry.Registry.handle, registry.RegistryClient.order

    async def late(of, message):
        await trio.sleep(PAUSE)
        await handle(of, message)

    async def hears(of, message):
        is_by_handler = isinstance(message, Delivery) and "/p2phandler/" in message.message.from_
        if is_by_handler and is_slow(of._config.runtime, HEARS):
            of.spawn(late, of, message)
        else:
            await handle(of, message)

    async def orders(talk, stub, command):
        await trio.sleep(PAUSE if is_slow(stub, ORDERS) else 0.0)
        return await order(talk, stub, command)

    monkeypatch.setattr(registry.Registry, "handle", hears)
    monkeypatch.setattr(registry.RegistryClient, "order", orders)


SLOW = [
    (),
    ("alice hears",),
    ("bob hears",),
    ("alice hears", "bob hears"),
    ("bob orders",),
    ("alice hears", "bob orders"),
    ("alice hears", "bob hears", "alice orders", "bob orders"),
]


@pytest.mark.parametrize("slow", SLOW, ids=lambda slow: ", ".join(slow) or "nobody")
async def test_one_link_is_live_and_stays_however_late_local_messages_are(
    autojump_clock, monkeypatch, slow
):
    """P2P-27, I-P6, I-P20: alice's runtime has the smaller address."""
    made_slow(monkeypatch, slow)
    async with open_domain("alice", "bob") as domain:
        alice, bob = domain["alice"], domain["bob"]
        answers = []

        async def asks(one, other, value):
            answers.append((await one.ask(other, value)).code)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(asks, alice, bob, 1)
            nursery.start_soon(asks, bob, alice, 2)
        await alice.wait_for("live", bob)
        await bob.wait_for("live", alice)
        before = await links(alice), await links(bob)
        for value in range(int(2 * P2P_TIMEOUT)):
            await trio.sleep(1.0)
            await asks(alice, bob, value)
            await asks(bob, alice, value)
        assert (await links(alice), await links(bob)) == before
        assert "disconnected" not in {state for _, state in alice.steps() + bob.steps()}
    assert set(answers) == {Code.OK}
    live = [role for role, state in alice.steps() + bob.steps() if state == "live"]
    assert live == ["requester", "handler"]
    assert ("requester", "failed") in bob.steps()
    assert {judged(one).verdict for one in (alice, bob)} == {Verdict.CONFORMANT}


async def links(member):
    return [(entry.role, entry.link, entry.status) for entry in await member.runtime.links()]
