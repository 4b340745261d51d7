"""The session that another domain's node has here: it speaks for its domain only (S14, MN-18)."""

import pytest
import trio

from specs.limits.protocol import PEER_OFFENCES, QUARANTINE
from specs.reply_code import DropReason
from tests.support.node.node_peer import DR, RA, RX, SM, open_world

NODE = "domain://msg-node.b.ex"
HX, OWN = "hyperty://b.ex/hx", "hyperty://a.ex/nobody"


async def hyperty_of(world):
    ra = await world.peer(RA)
    (address,) = await ra.allocate()
    return ra, address


@pytest.mark.parametrize(
    "from_", [HX, f"{RX}/registry", f"{NODE}/sm", "comm://b.ex/o1/subscription", NODE]
)
async def test_a_node_sends_as_any_address_of_its_domain(autojump_clock, from_):
    async with open_world() as world:
        ra, address = await hyperty_of(world)
        peer = await world.peer(NODE)
        await peer.post("read", from_, address, source=from_)
        assert (await ra.hear()).from_ == from_


@pytest.mark.parametrize("from_", ["hyperty://c.ex/h", OWN, f"{RA}/registry", DR])
async def test_a_node_sends_only_as_its_own_domain(autojump_clock, from_):
    """SEC-08."""
    async with open_world() as world:
        ra, address = await hyperty_of(world)
        peer = await world.peer(NODE)
        assert (await peer.ask("read", from_, address)).code == 401
        assert (await peer.ask("read", HX, address, source=from_)).code == 401
        assert await ra.silence()


async def test_a_route_wins_over_sessions_and_bindings_of_runtimes(autojump_clock):
    """MN-13, MN-18: what a runtime calls itself proves nothing, once its domain can be reached."""
    async with open_world() as world:
        ra, address = await hyperty_of(world)
        runtime = await world.peer(RX)
        assert (await runtime.ask("read", HX, DR, resource=HX)).code == 404
        peer = await world.peer(NODE)
        for own in (HX, f"{RX}/registry"):
            await peer.post("read", own, address)
            assert (await ra.hear()).from_ == own
            await ra.post("read", address, own)
            assert (await peer.hear()).to == own
        assert (await runtime.ask("read", HX, address)).code == 401
        assert await ra.silence()
        assert RX not in await world.states()
        answer = await (await world.outsider(RX)).control("open", runtimeURL=RX)
        assert answer.code == 403


async def test_without_logins_a_domain_whose_node_was_here_is_not_left_to_its_runtimes(
    autojump_clock,
):
    async with open_world() as world:
        runtime = await world.peer(RX)
        await runtime.ask("read", HX, DR, resource=HX)
        peer, ra = await world.peer(NODE), await world.peer(RA)
        await peer.control("close")
        assert (await ra.ask("read", f"{RA}/ua", HX)).code == 404
        assert (await runtime.ask("read", HX, f"{RA}/ua")).code == 401
        answer = await (await world.outsider(RX)).control("open", runtimeURL=RX)
        assert answer.code == 403


async def test_answers_return_over_the_session_that_asked(autojump_clock):
    async with open_world() as world:
        ra, address = await hyperty_of(world)
        peer = await world.peer(NODE)
        asked = await peer.post("read", HX, address)
        await ra.hear()
        await ra.post("response", address, HX, code=200)
        assert (await peer.hear()).to == asked.from_


async def test_a_message_for_an_unknown_address_is_answered_404_over_the_session(autojump_clock):
    async with open_world() as world:
        peer = await world.peer(NODE)
        assert (await peer.ask("read", HX, OWN)).code == 404


async def test_a_node_is_no_route_to_a_third_domain(autojump_clock):
    async with open_world() as world:
        peer = await world.peer(NODE)
        third = await world.peer("hyperty-runtime://c.ex/rc")
        await third.ask("read", "hyperty://c.ex/hc", DR, resource=HX)
        assert (await peer.ask("read", HX, "hyperty://c.ex/hc")).code == 403
        assert await third.silence()


async def test_a_node_that_goes_on_offending_is_shown_out_and_kept_out(autojump_clock):
    """SEC-08."""
    async with open_world() as world:
        peer = await world.peer(NODE)
        for _ in range(PEER_OFFENCES - 1):
            assert (await peer.ask("read", "hyperty://c.ex/h", OWN)).code == 401
        assert (await world.states())[NODE] == "open"
        await peer.post("update", "hyperty://c.ex/h", "hyperty://a.ex/o/changes")
        await trio.sleep(1)
        assert NODE not in await world.states()
        assert world.node.counters.drops[DropReason.UNKNOWN_SOURCE] == 1

        again = await world.outsider(NODE)
        assert (await again.control("open", runtimeURL=NODE)).code == 403
        await trio.sleep(QUARANTINE)
        assert (await (await world.outsider(NODE)).control("open", runtimeURL=NODE)).code == 200


async def test_a_message_to_an_unknown_address_is_no_offence(autojump_clock):
    async with open_world() as world:
        peer = await world.peer(NODE)
        for _ in range(2 * PEER_OFFENCES):
            assert (await peer.ask("read", HX, OWN)).code == 404
        assert (await world.states())[NODE] == "open"


async def test_a_peer_cannot_open_the_session_of_the_node_itself(autojump_clock):
    async with open_world() as world:
        own = await world.outsider("domain://msg-node.a.ex")
        assert (await own.control("open", runtimeURL=own.runtime)).code == 403


async def test_a_node_that_has_lost_its_token_gets_a_new_session_once_its_link_is_gone(
    autojump_clock,
):
    async with open_world() as world:
        first = await world.peer(NODE)
        second = await world.outsider(NODE)
        assert (await second.control("open", runtimeURL=NODE)).code == 409
        await first.link.aclose()
        await trio.sleep(1)
        assert (await second.control("open", runtimeURL=NODE)).code == 200


async def test_a_node_may_subscribe_what_is_public_and_hears_of_it(autojump_clock):
    async with open_world() as world:
        ra, address = await hyperty_of(world)
        peer = await world.peer(NODE)
        path = f"{address}/registration"
        answer = await peer.ask("subscribe", f"{NODE}/sm", SM, resources=[path])
        assert answer.code == 200
        record = {"url": address, "runtime": RA, "status": "live", "expires": 60}
        await ra.ask("create", f"{RA}/registry", DR, value=record)
        assert (await peer.hear()).to == path
