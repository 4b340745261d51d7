"""Messages cross from node to node of a domain, once."""

import pytest
import trio

from actors.node.group.messages import Head, write_head
from fsm.registry.node_rights import Observation
from specs.limits.group import GROUP_LEASE
from specs.message import Message, MessageType
from specs.reply_code import DropReason
from tests.support.node.group_world import open_group, resumed
from tests.support.node.node_peer import RA, RB, SM
from transports.codec import encode
from transports.errors import LinkError

RC = "hyperty-runtime://a.ex/rc"


async def test_a_request_and_its_answer_cross(autojump_clock):
    async with open_group() as world:
        one, two = world.nodes
        alice, bob = await one.peer(RA), await two.peer(RB)
        (address,) = await bob.allocate()
        request = await alice.post("read", f"{RA}/sm", address)
        with trio.fail_after(10):
            heard = await bob.hear()
            assert (heard.id, heard.from_) == (request.id, request.from_)
            await bob.post_answer(heard, 200, value=7)
            answer = await alice.hear()
        assert answer.body["value"] == 7


async def test_messages_of_a_pair_keep_their_order(autojump_clock):
    async with open_group() as world:
        one, two = world.nodes
        alice, bob = await one.peer(RA), await two.peer(RB)
        sent = [
            (await alice.post("update", f"{RA}/sm", f"{RB}/sm", n=number)).id
            for number in range(200)
        ]
        with trio.fail_after(30):
            assert [(await bob.hear()).id for _ in sent] == sent


async def test_an_unknown_receiver_is_answered(autojump_clock):
    async with open_group() as world:
        one, _ = world.nodes
        alice = await one.peer(RA)
        answer = await alice.ask("read", f"{RA}/sm", "hyperty://a.ex/nobody")
        assert answer.code == 404


async def test_an_event_reaches_the_subscribers_at_all_nodes_once_each(autojump_clock):
    async with open_group(3) as world:
        peers = [
            await world.nodes[number % 3].peer(f"hyperty-runtime://a.ex/r{number}")
            for number in range(6)
        ]
        owner, *others = peers
        (url,) = await owner.allocate("comm")
        await owner.ask("subscribe", f"{owner.runtime}/sm", f"{owner.node}/sm", resources=[url])
        for peer in others:
            resources = [f"{url}/changes"]
            answer = await peer.ask(
                "subscribe", f"{peer.runtime}/sm", f"{peer.node}/sm", resources=resources
            )
            assert answer.code == 200, answer.body
        await trio.sleep(0.1)
        sent = await owner.post("update", url, f"{url}/changes", value=1)
        with trio.fail_after(10):
            for peer in others:
                assert (await peer.hear()).id == sent.id
        for peer in others:
            assert await peer.silence(0.2)
        crossed = [one for one in world.nodes[0].tracer.lines if one.actor == "group"]
        assert [one.op for one in crossed if one.to == f"{url}/changes"] == ["xmit", "xmit"]

        await others[0].ask(
            "unsubscribe", f"{others[0].runtime}/sm", f"{owner.node}/sm",
            resources=[f"{url}/changes"],
        )  # fmt: skip
        sent = await owner.post("update", url, f"{url}/changes", value=2)
        with trio.fail_after(10):
            for peer in others[1:]:
                assert (await peer.hear()).id == sent.id
        assert await others[0].silence(0.2)


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


async def test_no_row_says_that_a_fenced_node_has_subscribers(autojump_clock):
    async with open_group(3) as world:
        owner = await world.nodes[0].peer(RA)
        urls = [url for _ in range(9) for url in await owner.allocate("comm")]
        for number, member in enumerate(world.nodes):
            peer = await member.peer(f"hyperty-runtime://a.ex/r{number}")
            for url in urls:
                about = [f"{url}/changes"]
                answer = await peer.ask(
                    "subscribe", f"{peer.runtime}/sm", f"{peer.node}/sm", resources=about
                )
                assert answer.code == 200, answer.body
        assert len(world.store.rows("path/")) == 27
        world.store.stop()
        # Not when the nodes try to join: they know all rows before they are members.
        await trio.sleep(2 * GROUP_LEASE + 0.25)
        world.store.start()
        with trio.fail_after(2 * GROUP_LEASE):
            while world.store.rows("path/"):  # noqa: ASYNC110 - nothing tells
                await trio.sleep(1)


async def test_the_owner_of_an_address_is_the_same_at_all_nodes(autojump_clock):
    async with open_group() as world:
        one, two = world.nodes
        alice, bob = await one.peer(RA), await two.peer(RB)
        (address,) = await alice.allocate()
        answer = await bob.ask("read", address, f"{RA}/sm")
        assert answer.code == 401
        claim = await bob.ask("subscribe", f"{RB}/sm", f"{bob.node}/sm", resources=[address])
        assert claim.code == 403


async def test_a_released_address_is_claimed_by_its_last_owner_only(autojump_clock):
    async with open_group() as world:
        one, two = world.nodes
        alice, bob = await one.peer(RA), await two.peer(RB)
        (url,) = await alice.allocate("comm")
        freed = await alice.ask(
            "delete", f"{RA}/address-allocation", f"{alice.node}/address-allocation",
            childrenResources=[url],
        )  # fmt: skip
        assert freed.code == 200
        await trio.sleep(0.1)
        claim = await bob.ask("subscribe", f"{RB}/sm", f"{bob.node}/sm", resources=[url])
        assert claim.code == 403
        again = await resumed(two, RA, alice.token)
        claim = await again.ask("subscribe", f"{RA}/sm", f"{bob.node}/sm", resources=[url])
        assert claim.code == 200


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


async def test_an_observer_at_another_node_hears_after_consent_only(autojump_clock):
    async with open_group(observation=Observation.OWNER) as world:
        one, two = world.nodes
        owner, observer, url = await observed(one, two)
        stranger = await two.peer(RC)
        await stranger.ask(
            "subscribe", f"{RC}/sm", f"{owner.node}/sm", resources=[f"{url}/changes"]
        )
        sent = await owner.post("update", url, f"{url}/changes", value=1)
        with trio.fail_after(10):
            assert (await observer.hear()).id == sent.id
        assert await stranger.silence(1)


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


@pytest.mark.parametrize("home", [1, 2], ids=["that of the receiver", "a third one"])
async def test_a_message_is_refused_that_the_next_one_overtook_by_another_node(
    autojump_clock, home
):
    """I-B7: the node that its sender has left is slow to reach the engine."""
    async with open_group(3) as world:
        one, two, _ = world.nodes
        alice, bob = await one.peer(RA), await two.peer(RB)
        (address,) = await bob.allocate()
        sender = f"{RA}/sm"
        await alice.post("update", sender, address)
        with trio.fail_after(10):
            await bob.hear()
        world.store.slow(2.0, one.engine)
        early = await alice.post("read", sender, address)
        await trio.sleep(0.1)
        again = await resumed(world.nodes[home], RA, alice.token)
        later = [
            await again.post("update", sender, address),
            await again.post("update", sender, f"{RB}/other"),
        ]
        with trio.fail_after(10):
            assert [(await bob.hear()).id for _ in later] == [one.id for one in later]
            answer = await again.hear()
        assert (answer.id, answer.code) == (early.id, 503)
        assert "has moved" in answer.body["description"]
        last = await again.post("update", sender, address)
        with trio.fail_after(10):
            assert (await bob.hear()).id == last.id


async def test_a_message_that_nothing_overtook_is_delivered_after_its_sender_has_moved(
    autojump_clock,
):
    async with open_group(3) as world:
        one, two, three = world.nodes
        alice, bob = await one.peer(RA), await two.peer(RB)
        world.store.slow(2.0, one.engine)
        early = await alice.post("update", f"{RA}/sm", f"{RB}/sm")
        await trio.sleep(0.1)
        again = await resumed(three, RA, alice.token)
        other = await again.post("update", f"{RA}/other", f"{RB}/sm")
        with trio.fail_after(10):
            assert [(await bob.hear()).id for _ in range(2)] == [other.id, early.id]


async def test_a_message_is_refused_that_was_overtaken_on_its_way_by_the_node_its_receiver_left(
    autojump_clock,
):
    """I-B7: the later one came to the receiver's new node at once."""
    async with open_group(1) as world:
        (one,) = world.nodes
        bob = await one.peer(RB)
        (row,) = world.store.rows("node/")
        sent = [(3, 1), (7, 1), (4, 2), (8, 2)]
        async with world.store.open() as other:
            for number, hops in sent:
                said = Message(number, MessageType.UPDATE, f"{RA}/sm", f"{RB}/sm", {"value": 1})
                head = write_head(Head("n", 1, RB, RA, 5, hops))
                await other.publish(
                    row.key.removeprefix("node/"), [b"\n".join((head, encode(said)))]
                )
        with trio.fail_after(GROUP_LEASE):
            assert [(await bob.hear()).id for _ in range(3)] == [3, 7, 8]
        assert one.node.counters.drops[DropReason.SESSION_GONE] == 1


@pytest.mark.parametrize("sender", [0, 1, 2], ids=["its new node", "its old node", "a third one"])
async def test_a_request_finds_a_runtime_that_has_moved_and_sets_its_paths_anew(
    autojump_clock, sender
):
    """MN-03: its old node still has the path, as far as others know, and no subscriber."""
    async with open_group(3) as world:
        one, two, _ = world.nodes
        bob = await two.peer(RB)
        (address,) = await bob.allocate()
        assert (await bob.ask("subscribe", RB, SM, resources=[address])).code == 200
        alice = await world.nodes[sender].peer(RA)
        await bob.link.aclose()
        await trio.sleep(1)
        world.store.slow(1.0)  # the row of the path goes a second later
        again = await resumed(one, RB, bob.token)
        request = await alice.post("read", f"{RA}/sm", address)
        with trio.fail_after(10):
            heard = await again.hear()
        assert heard.id == request.id


async def test_a_request_to_runtimes_of_which_some_are_out_of_reach_goes_to_none(autojump_clock):
    """A child that some have and others not would differ for ever."""
    async with open_group() as world:
        one, two = world.nodes
        owner, here, there = await one.peer(RA), await one.peer(RB), await two.peer(RC)
        (url,) = await owner.allocate("comm")
        resources = [f"{url}/children/resources"]
        for peer in owner, here, there:
            answer = await peer.ask(
                "subscribe", f"{peer.runtime}/sm", SM, resources=[*resources, f"{url}/changes"]
            )
            assert answer.code == 200, answer.body
        await trio.sleep(1)
        reached = await owner.post("create", url, resources[0], value={})
        with trio.fail_after(10):
            assert [(await one.hear()).id for one in (here, there)] == [reached.id] * 2
            assert (await owner.hear()).id == reached.id  # as every subscriber
        world.store.stop()
        await trio.sleep(0.5)
        refused = await owner.post("create", url, resources[0], value={})
        with trio.fail_after(10):
            answer = await owner.hear()
        assert (answer.id, answer.code) == (refused.id, 503)
        assert await here.silence(0.5)
        world.store.start()
        await trio.sleep(1)
