"""What another domain's node, or whoever has its session, tries and does not get (S14, T18)."""

import pytest
import trio

from actors.kit.counters import Tally
from fsm.registry.node_rights import Observation
from specs.limits.protocol import HOP_LIMIT, PEER_OFFENCES, QUARANTINE
from specs.reply_code import DropReason
from tests.support.node.legacy_peer import plain_peer
from tests.support.node.node_peer import ALLOCATION, DR, MN, RA, RB, RX, SESSION, SM, open_world

NODE = "domain://msg-node.b.ex"
HX = "hyperty://b.ex/hx"


async def test_a_node_is_given_no_address_of_this_domain(autojump_clock):
    async with open_world() as world:
        peer = await world.peer(NODE)
        answer = await peer.ask(
            "create", f"{NODE}/ua", ALLOCATION, scheme="hyperty", value={"number": 1}
        )
        assert answer.code == 403


@pytest.mark.parametrize(
    "record",
    [
        {"url": "hyperty://a.ex/nobody", "runtime": RA},
        {"url": "hyperty://a.ex/nobody", "runtime": NODE},
        {"url": "hyperty://c.ex/nobody", "runtime": NODE},
    ],
)
async def test_a_node_registers_nothing_of_others(record, autojump_clock):
    async with open_world() as world:
        await world.peer(RA)
        peer = await world.peer(NODE)
        value = {**record, "status": "live", "expires": 60}
        assert (await peer.ask("create", f"{NODE}/sm", DR, value=value)).code in {401, 403}


@pytest.mark.parametrize("kind", ["execute", "response"])
@pytest.mark.parametrize("to", [SESSION, SM, MN, f"{MN}/policy", f"{MN}/protostub/b.ex/status"])
async def test_messages_of_a_foreign_node_to_parts_of_the_node_change_nothing(
    kind, to, autojump_clock
):
    async with open_world() as world:
        ra = await world.peer(RA)
        peer = await world.peer(NODE)
        before = await world.node.sessions()
        body = {"value": {"sessionToken": "x"}, "method": "nothing"}
        for _ in range(3):
            await peer.post(kind, HX, to, **body, **({"code": 200} if kind == "response" else {}))
        await trio.sleep(1)
        after = {view.runtime: view.addresses for view in await world.node.sessions()}
        assert after == {view.runtime: view.addresses for view in before}
        assert await ra.silence()


async def test_a_foreign_node_without_the_owners_consent_receives_no_changes(autojump_clock):
    async with open_world(observation=Observation.OWNER) as world:
        ra = await world.peer(RA)
        (url,) = await ra.allocate("comm")
        await ra.ask("subscribe", f"{RA}/sm", SM, resources=[f"{url}/subscription"], source=RA)
        peer = await world.peer(NODE)
        wanted = [f"{url}/changes", f"{url}/children/chat"]
        assert (await peer.ask("subscribe", f"{NODE}/sm", SM, resources=wanted)).code == 200
        await peer.post("subscribe", f"{NODE}/sm", f"{url}/subscription")
        asked = await ra.hear()
        await ra.post_answer(asked, 403)
        assert (await peer.hear()).code == 403
        await ra.post("update", url, f"{url}/changes", value="secret")
        assert await peer.silence()


@pytest.mark.parametrize("part", ["", "/subscription", "/secret/part"])
async def test_a_foreign_node_is_not_sent_messages_for_others(part, autojump_clock):
    async with open_world(observation=Observation.OWNER) as world:
        ra = await world.peer(RA)
        (url,) = await ra.allocate("comm")
        peer = await world.peer(NODE)
        for one in (f"{url}{part}", f"{RA}{part or '/sm'}", f"{MN}/sm"):
            assert (await peer.ask("subscribe", f"{NODE}/sm", SM, resources=[one])).code == 403


async def test_consent_is_not_its_to_give_for_others(autojump_clock):
    """An answer as the owner of an object here, never asked for, opens no path."""
    async with open_world(observation=Observation.OWNER) as world:
        ra = await world.peer(RA)
        (url,) = await ra.allocate("comm")
        peer = await world.peer(NODE)
        await peer.ask("subscribe", f"{NODE}/sm", SM, resources=[f"{url}/changes"])
        for from_ in (f"{url}/subscription", f"{url}/changes", url):
            await peer.post("response", from_, f"{NODE}/sm", code=200)
        await ra.post("update", url, f"{url}/changes", value="secret")
        assert await peer.silence()


# ---- whose the addresses of another domain are, while its node is reachable


async def test_a_local_runtime_does_not_take_a_foreign_nodes_addresses(autojump_clock):
    """MN-13 is for domains that cannot be asked: it must not divert what goes to one that can."""
    async with open_world() as world:
        peer = await world.peer(NODE)
        thief, other = await world.peer(RA), await world.peer(RB)
        assert (await thief.ask("read", HX, DR, resource=HX)).code == 401
        await other.post("create", f"{RB}/ua", HX, value=1)
        assert (await peer.hear()).to == HX
        assert await thief.silence()


async def test_use_of_this_node_by_a_runtime_of_its_domain_is_no_offence_of_the_node(
    autojump_clock,
):
    """Or one user of a domain that has two ways here could have its node kept out."""
    async with open_world() as world:
        rx = await world.peer(RX)
        await rx.ask("read", HX, DR, resource=HX)
        peer = await world.peer(NODE)
        for _ in range(2 * PEER_OFFENCES):
            assert (await peer.ask("read", HX, DR, resource=HX)).code == 404
        assert (await world.states())[NODE] == "open"


async def test_an_address_taken_before_its_node_connected_is_released(autojump_clock):
    read = {"type": "read", "from": HX, "to": DR, "body": {"resource": HX}}
    async with open_world(allow_legacy=True) as world:
        thief = await plain_peer(world, RX)
        assert (await thief.ask(id=1, **read))["body"]["code"] == 404
        peer = await world.peer(NODE)
        assert (await thief.ask(id=2, **read))["body"]["code"] == 401
        ra = await world.peer(RA)
        await ra.post("create", f"{RA}/ua", HX, value=1)
        assert (await peer.hear()).to == HX
        assert (await peer.ask("read", HX, DR, resource=HX)).code == 404


@pytest.mark.parametrize("field", ["from", "source"])
async def test_a_session_speaks_for_no_other_domain(field, autojump_clock):
    """Also for one that nobody here knows, and whoever of that domain comes has its name."""
    async with open_world() as world:
        ra = await world.peer(RA)
        for number in range(100):
            name = f"hyperty://other.example/{number}"
            from_, body = (name, {}) if field == "from" else (f"{RA}/ua", {"source": name})
            assert (await ra.ask("read", from_, DR, resource=RA, **body)).code == 401
        (view,) = await world.node.sessions()
        assert not [one for one in view.addresses if "other.example" in one]
        assert world.node.counters.tallies[Tally.REFUSALS] == {(401,): 100}
        owner = await world.peer("hyperty-runtime://other.example/r")
        assert (await owner.ask("read", name, DR, resource=RA)).code == 404


# ---- what would make this node an offender there


async def third_party(world):
    """A runtime of a third domain that is here with an address of its own."""
    rc = await world.peer("hyperty-runtime://c.ex/rc")
    await rc.ask("read", "hyperty://c.ex/hc", DR, resource=HX)
    return rc


@pytest.mark.parametrize(
    ("from_", "source", "code"),
    [("hyperty://c.ex/hc", None, 403), (f"{RA}/sm", "hyperty://c.ex/free", 401)],
)
async def test_this_node_carries_nothing_of_a_third_domain(from_, source, code, autojump_clock):
    async with open_world() as world:
        peer = await world.peer(NODE)
        who = await third_party(world) if source is None else await world.peer(RA)
        body = {} if source is None else {"source": source}
        assert (await who.ask("create", from_, HX, value=1, **body)).code == code
        await who.post("update", from_, HX, value=1, **body)
        assert await peer.silence()


async def test_a_foreign_node_observes_only_objects_of_this_domain(autojump_clock):
    async with open_world() as world:
        ra = await world.peer(RA)
        (url,) = await ra.allocate("comm")
        peer = await world.peer(NODE)
        await peer.ask("subscribe", f"{NODE}/sm", SM, resources=[f"{url}/children/chat"])
        rc = await third_party(world)
        await rc.post("create", "hyperty://c.ex/hc", f"{url}/children/chat", value=1)
        await ra.post("create", url, f"{url}/children/chat", value=2)
        assert (await peer.hear()).body["value"] == 2


# ---- circles of domains


async def test_a_message_of_another_domain_that_crossed_too_many_stubs_goes_no_further(
    autojump_clock,
):
    """MN-20, I-L4: also one that no stub has carried twice."""
    async with open_world() as world:
        ra, peer = await world.peer(RA), await world.peer(NODE)
        hops = [f"domain://msg-node.d{n}.ex/protostub/d{n + 1}.ex" for n in range(HOP_LIMIT + 1)]
        most = await peer.post("create", HX, f"{RA}/ua", value=1, via=hops[1:])
        assert (await ra.hear()).id == most.id
        await peer.post("create", HX, f"{RA}/ua", value=2, via=hops)
        await peer.post("create", HX, f"{RA}/ua", value=3, via=[*hops[2:], hops[2]])
        assert await ra.silence()
        assert world.node.counters.drops[DropReason.LOOP] == 2


async def test_offences_of_long_ago_are_forgotten(autojump_clock):
    async with open_world() as world:
        peer = await world.peer(NODE)
        for _ in range(PEER_OFFENCES - 1):
            await peer.ask("read", "hyperty://c.ex/h", DR, resource=HX)
        with trio.move_on_after(QUARANTINE):
            while True:
                await peer.hear()
        for _ in range(PEER_OFFENCES - 1):
            await peer.ask("read", "hyperty://c.ex/h", DR, resource=HX)
        assert (await world.states())[NODE] == "open"
