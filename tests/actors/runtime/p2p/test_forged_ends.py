"""A peer with a link throws nobody out, and sees nothing, in another's name (I-D1, S3, SYN-21)."""

from contextlib import asynccontextmanager

import pytest
import trio

from specs.limits.p2p import PROOF_TIMEOUT
from specs.message import Message, MessageType
from specs.reply_code import Code
from specs.trace import Op
from tests.support.link_world import pair


@asynccontextmanager
async def carol_and(other, **how):
    """Alice reports, bob observes, and carol has a link to one of them."""
    async with pair(**how) as two, two.domain.visitor("carol") as carol:
        member = two.domain[other]
        await carol.ask(member, "first")
        await carol.wait_for("live", member)
        await member.wait_for("live", carol)
        yield two, carol


async def still_follows(two):
    await two.obj.set("n", 1)
    await two.follows(2)
    assert two.copy.value == {"n": 1}
    assert two.obj.observers == (two.bob.address,)


async def answers(two, carol, forged):
    """Say it to alice; return with which codes she answers the one whose name was borrowed."""
    await two.say_as(carol, two.alice, forged)
    await trio.sleep(5)
    said = [one for one in two.alice.facts(Op.SYNTH) if one.id == forged.id]
    return [one.code for one in said if one.to == forged.from_]


@pytest.mark.parametrize("p2p", [True, False])
async def test_a_peer_cannot_unsubscribe_another_observer_over_a_link(p2p, autojump_clock):
    """M-43: the reporter's end finds out who leaves, as it does of who comes."""
    async with carol_and("alice", p2p=p2p) as (two, carol):
        manager, to = f"{two.bob.runtime.url}/sm", f"{two.obj.url}/subscription"
        body = {"source": two.bob.address}
        forged = Message(999, MessageType.UNSUBSCRIBE, manager, to, body)
        assert await answers(two, carol, forged) == [Code.UNAUTHENTICATED]
        await still_follows(two)


async def test_a_peer_cannot_read_as_another_over_a_link(autojump_clock):
    """M-41, SYN-18: the value is for observers."""
    async with carol_and("alice") as (two, carol):
        forged = Message(999, MessageType.READ, two.bob.address, two.obj.url, {})
        assert await answers(two, carol, forged) == [Code.UNAUTHENTICATED]


async def test_an_observer_reads_over_its_own_link(autojump_clock):
    """M-41: what its record says is believed."""
    async with pair(p2p=True) as two:
        await trio.sleep(1)  # children are read by the node
        before = len([one for one in two.domain.node_tracer.facts if one.to == two.obj.url])
        answer = await two.bob.hyperty.ask(two.obj.url, MessageType.READ, {})
        assert answer.body["value"]["version"] == 1
        at_node = [one for one in two.domain.node_tracer.facts if one.to == two.obj.url]
        assert len(at_node) == before


FORGED = {
    "the owner's end shuts bob out": (MessageType.UNSUBSCRIBE, True, True),
    "the reporter expels bob": (MessageType.UNSUBSCRIBE, False, False),
    "the object is back": (MessageType.SUBSCRIBE, True, True),
}


@pytest.mark.parametrize("p2p", [True, False])
@pytest.mark.parametrize("what", FORGED)
async def test_an_uninvolved_peer_cannot_report_that_an_observer_left(what, p2p, autojump_clock):
    """M-45, M-52: only by the link that was named for the object, or by the node."""
    kind, is_owners, is_to_manager = FORGED[what]
    async with carol_and("bob", p2p=p2p) as (two, carol):
        from_ = f"{two.obj.url}/subscription" if is_owners else two.alice.address
        to = f"{two.bob.runtime.url}/sm" if is_to_manager else two.bob.address
        body = {"resource": two.obj.url}
        if kind is MessageType.UNSUBSCRIBE and is_owners:
            body["observer"] = two.bob.address
        await two.say_as(carol, two.bob, Message(999, kind, from_, to, body))
        await trio.sleep(PROOF_TIMEOUT)
        await still_follows(two)
        dropped = [one for one in two.bob.facts(Op.DROP) if (one.to, one.from_) == (to, from_)]
        assert [one.reason for one in dropped] == ["unknown-source"]


@pytest.mark.parametrize("p2p", [True, False])
async def test_an_expelled_observer_is_notified_for_every_set_of_links(p2p, autojump_clock):
    """SYN-21: the word goes by the node, which knows the owner."""
    async with pair(p2p=p2p) as two:
        await two.obj.expel(two.bob.address)
        async for _ in two.copy.states():
            pass
        assert (two.copy.is_gone, two.obj.observers) == (True, ())
