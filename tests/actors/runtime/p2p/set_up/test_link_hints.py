"""Hints of a sender in a whole domain: how a link to the receiver is set up (RES-16)."""

from actors.kit.counters import Tally
from specs.message import MessageType
from specs.trace import Kind, Op
from tests.support.log import captured_log
from tests.support.runtime.domain import open_domain

REQUESTER = "hyperty-catalogue://catalogue.a.example/.well-known/protocolstub/P2PRequester"


def hints(member):
    """How many hints of a runtime's senders were wrong."""
    return member.runtime.counters.tallies[Tally.HINTS].total()


async def ask(member, other, handler):
    """Send a request with a hint; the answer."""
    body = {"value": 1, "p2pHandler": handler, "p2pRequester": REQUESTER}
    return await member.runtime.order("ua", MessageType.CREATE, other.address, body)


async def test_a_true_hint_leads_to_a_link(autojump_clock):
    async with open_domain("alice", "bob") as domain:
        alice, bob = domain["alice"], domain["bob"]
        assert (await ask(alice, bob, f"{bob.runtime.url}/p2phandler/1")).code == 200
        await alice.wait_for("live", bob)
        assert hints(alice) == 0


async def test_a_wrong_hint_is_counted_and_logged_and_its_link_ends(autojump_clock):
    async with open_domain("alice", "bob", "carol") as domain:
        alice, bob, carol = domain["alice"], domain["bob"], domain["carol"]
        with captured_log() as lines:
            answer = await ask(alice, bob, f"{carol.runtime.url}/p2phandler/1")
            assert answer.code == 200
            await alice.wait_for("live", bob)
        assert (bob.hyperty.heard, carol.hyperty.heard) == ([1], [])
        assert hints(alice) == 1
        assert [one["event"] for one in lines if "hint" in one["event"]] == ["link hint refused"]
        assert [fact.to for fact in alice.facts(Op.REFUSED, Kind.RESOLVE)] == [bob.address]
        await alice.wait_for(None, carol)
