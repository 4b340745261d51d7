"""Messages cross from node to node of a domain, once."""

import pytest
import trio

from fsm.registry.node_rights import Observation
from tests.support.node.group_world import open_group, resumed
from tests.support.node.node_peer import RA, RB
from transports.errors import LinkError

RC = "hyperty-runtime://a.ex/rc"


async def test_each_subscriber_is_answered_when_other_nodes_can_know_its_node(autojump_clock):
    """The second one of a node, too, though it needs no row of its own."""
    async with open_group() as world:
        one, two = world.nodes
        owner = await two.peer(RA)
        (url,) = await owner.allocate("comm")
        peers = [await one.peer(f"hyperty-runtime://a.ex/r{number}") for number in range(2)]
        written = []

        async def subscribed(peer) -> None:
            answer = await peer.ask(
                "subscribe", f"{peer.runtime}/sm", f"{peer.node}/sm", resources=[f"{url}/changes"]
            )
            assert answer.code == 200, answer.body
            written.append(len(world.store.rows("path/")))

        world.store.slow(1.0, one.engine)
        async with trio.open_nursery() as nursery:
            for peer in peers:
                nursery.start_soon(subscribed, peer)
        assert written == [1, 1]


async def test_a_message_under_way_to_where_a_runtime_was_is_passed_on(autojump_clock):
    """The node that has it still sends to the old node, which has not heard of the move yet."""
    async with open_group(3) as world:
        one, two, three = world.nodes
        peer, other = await one.peer(RA), await three.peer(RC)
        world.store.slow(0.5, three.engine)
        again = await resumed(two, RA, peer.token)
        sent = await other.post("update", f"{RC}/sm", f"{RA}/sm", value=1)
        with trio.fail_after(10):
            assert (await again.hear()).id == sent.id


async def test_two_claims_of_one_address_at_once_have_one_winner(autojump_clock):
    async with open_group() as world:
        one, two = world.nodes
        url = "comm://a.ex/mine"
        peers = [await one.peer(RA), await two.peer(RB)]
        codes = []

        async def claim(peer) -> None:
            try:
                answer = await peer.ask(
                    "subscribe", f"{peer.runtime}/sm", f"{peer.node}/sm", resources=[url]
                )
                codes.append(answer.code)
            except LinkError:
                codes.append(None)

        async with trio.open_nursery() as nursery:
            for peer in peers:
                nursery.start_soon(claim, peer)
        assert codes.count(200) == 1
        (row,) = world.store.rows("owner/")
        assert row.key == f"owner/{url}"


async def observed(one, two):
    """Let a runtime at one node observe an object of a runtime at another, with its consent."""
    owner, observer = await one.peer(RA), await two.peer(RB)
    (url,) = await owner.allocate("comm")
    paths = [url, f"{url}/subscription"]
    await owner.ask("subscribe", f"{RA}/sm", f"{owner.node}/sm", resources=paths)
    path = [f"{url}/changes"]
    set_ = await observer.ask("subscribe", f"{RB}/sm", f"{owner.node}/sm", resources=path)
    assert set_.code == 200
    asked = await observer.post("subscribe", f"{RB}/sm", f"{url}/subscription", source=f"{RB}/sm")
    with trio.fail_after(10):
        heard = await owner.hear()
        assert heard.id == asked.id
        await owner.post_answer(heard, 200, value={"n": 0})
        assert (await observer.hear()).code == 200
    return owner, observer, url


@pytest.mark.parametrize("expired", [False, True])
async def test_an_owner_takes_its_consent_back_at_another_node(autojump_clock, expired):
    async with open_group(observation=Observation.OWNER) as world:
        one, two = world.nodes
        owner, observer, url = await observed(one, two)
        cut = await owner.ask(
            "unsubscribe", f"{RA}/sm", f"{owner.node}/sm",
            resources=[f"{url}/changes"], observer=f"{RB}/sm", runtime=RB, expired=expired,
        )  # fmt: skip
        assert cut.code == 200, cut.body
        await owner.post("update", url, f"{url}/changes", value=1)
        assert await observer.silence(1)
