"""What is over leaves nothing: entries, listeners, files, rows (P2P-28, I-P19, I-C5)."""

import tempfile

import pytest
import trio

from fsm.judge.trace_line import Verdict
from specs.limits.protocol import SESSION_IDLE
from specs.trace import Kind, Op
from tests.support.runtime.domain import (
    NODE_PLACE,
    P2P_KINDS,
    P2P_PLACES,
    DomainOptions,
    go_live,
    judged,
    open_domain,
)
from transports.link import Kind as Carrier
from transports.system import open_system_network


@pytest.mark.parametrize("carrier", P2P_KINDS)
async def test_a_peer_that_leaves_takes_entry_listener_and_files_with_it(
    carrier, tmp_path, monkeypatch
):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    async def nothing_is_left():
        await trio.lowlevel.checkpoint()
        return not list(tmp_path.iterdir())

    options = DomainOptions(kinds=(carrier,), network=open_system_network)
    with trio.fail_after(30):
        async with open_domain("alice", "bob", options=options) as domain:
            await go_live(domain)
            alice, bob = domain["alice"], domain["bob"]
            is_unix = carrier is Carrier.UNIX
            assert len(list(tmp_path.rglob("*.sock"))) == (2 if is_unix else 0)
            await alice.runtime.leave()
            await bob.wait_for(None, alice)
            assert await alice.runtime.links() == await bob.runtime.links() == ()
            await bob.tracer.until(nothing_is_left)
    assert list(tmp_path.iterdir()) == []
    rows = set()
    for fact in bob.facts(Op.ADD, Kind.TABLE) + bob.facts(Op.DEL, Kind.TABLE):
        if fact.table == "listeners":
            rows ^= {(fact.key, fact.val)}
    left = [key for key, _ in rows if "/conn/" in key or key.endswith("/registry/changes")]
    assert left == []


def silent(_number, _frame):
    return ()


def kill(domain, victim):
    """Make a runtime as good as dead: nobody hears it, nobody reaches it, it says no goodbye."""
    network = domain.network
    at = list(domain.members).index(victim)
    for wire in (network.open_wires(Carrier.WEBSOCKET)[at], *network.open_wires(Carrier.TCP)):
        wire.dialler.pattern = wire.acceptor.pattern = silent
    network.disturb(NODE_PLACE, silent, silent)
    for place in P2P_PLACES:
        network.refuse(place)


def left_at(tracer, tables):
    """The rows that came and did not go."""
    rows = {}
    for fact in tracer.facts:
        if fact.k is Kind.TABLE and fact.table in tables and fact.op in {Op.ADD, Op.DEL}:
            key = fact.table, fact.key, fact.val
            rows[key] = rows.get(key, 0) + (1 if fact.op is Op.ADD else -1)
    return [key for (_, key, _), number in rows.items() if number > 0]


@pytest.mark.parametrize("victim", ["alice", "bob"], ids=["requester", "handler"])
async def test_a_peer_that_is_killed_leaves_nothing_of_its_links(victim, autojump_clock):
    """P2P-14, P2P-28, R9: whoever is left over clears away what both had."""
    survivor = {"alice": "bob", "bob": "alice"}[victim]
    async with open_domain("alice", "bob") as domain:
        await go_live(domain)
        kill(domain, victim)
        left, dead = domain[survivor], domain[victim]
        await left.ask(dead, "are you there?")
        with trio.fail_after(2 * SESSION_IDLE):
            while await left.status(dead) is not None:  # noqa: ASYNC110 - as a person would look
                await trio.sleep(1)
        await trio.sleep(2 * SESSION_IDLE)
        assert await left.runtime.links() == ()
        listeners = left_at(left.tracer, {"listeners"})
        at_node = left_at(domain.node_tracer, {"subs", "alloc"})
        assert sorted(at_node) == sorted([left.runtime.handler, left.address])
    own = left.runtime.handler
    kept = [one for one in listeners if "/p2p" in one and not one.startswith(f"{own}/status")]
    assert set(kept) <= {own}
    assert not [one for one in listeners if "connection://" in one or "/conn/" in one]
    assert judged(left).verdict is Verdict.CONFORMANT
