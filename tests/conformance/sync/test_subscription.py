"""Upstream's suite `subscription`, and beyond: who gets what is published, and who does not."""

import pytest

from tests.support.node.node_process import DOMAIN
from tests.support.wire.wire_socket import Left
from tests.support.wire.wire_sync import an_object, asked, change, observe, resources, values


async def test_published_events_reach_subscribers(join):
    """MN-02, MN-14, MN-16, I-M5: once, as it was sent."""
    alice, bob = await join(), await join()
    thing = await an_object(alice)
    await observe(alice, thing, bob)

    await change(alice, thing, "news")
    heard = await bob.hear()

    assert (heard["type"], heard["from"], heard["to"]) == ("update", thing, f"{thing}/changes")
    assert heard["body"]["value"] == "news"
    assert await bob.rest() == []


async def test_the_answer_to_a_subscription_is_200_from_its_manager(join):
    """MN-14, ADR-04, I-M13."""
    peer = await join()
    answer = await peer.paths(
        "subscribe", peer.part("p2phandler/1"), source=peer.part("p2phandler/1")
    )

    assert answer["body"]["code"] == 200
    assert (answer["from"], answer["to"]) == (f"{peer.node}/sm", peer.part("sm"))


async def test_fan_out_is_exact(join):
    """MN-16, I-M5: each who subscribed, nobody else, each once."""
    alice, *others = [await join() for _ in range(5)]
    outsider = others.pop()
    thing = await an_object(alice)
    for one in others:
        await observe(alice, thing, one)

    await change(alice, thing, 7)
    await alice.rest()

    assert [values(await one.rest()) for one in others] == [[7], [7], [7]]
    assert await outsider.rest() == []


async def test_the_publisher_is_not_sent_its_own_changes(join):
    """MN-16, C-85, I-L5: not back over the link it came from."""
    alice, bob = await join(), await join()
    thing = await an_object(alice)
    await alice.paths("subscribe", *resources(thing), source=alice.runtime)
    await observe(alice, thing, bob)

    await change(alice, thing, 1)

    assert values(await alice.rest()) == []
    assert values(await bob.rest()) == [1]


async def test_children_are_reported_to_their_author_too(join):
    """MN-16, C-85, M-49."""
    alice, bob = await join(), await join()
    thing = await an_object(alice, "children/resources")
    await observe(alice, thing, bob, "children/resources")

    await alice.say("update", thing, f"{thing}/children/resources", resource="x#1", value=2)

    assert values(await alice.rest()) == [2]
    assert values(await bob.rest()) == [2]


async def test_a_child_with_an_endless_number_is_refused_and_the_node_continues(join):
    """MN-16, I-D10: Python reads no number of 5,000 digits."""
    alice, bob = await join(), await join()
    thing = await an_object(alice, "children/resources")
    await observe(alice, thing, bob, "changes", "children/resources")

    (writer,) = await bob.allocate()
    endless = f"{bob.spelt(writer)}#{'1' * 5000}"
    to = f"{thing}/children/resources"
    assert await bob.code("create", writer, to, resource=endless, value=1) == 403
    await change(alice, thing, "alive")
    await alice.rest()

    assert values(await bob.rest()) == ["alive"]


async def test_changes_of_one_object_arrive_in_order(join):
    """MN-16, I-M14."""
    alice, bob, carol = [await join() for _ in range(3)]
    thing = await an_object(alice)
    await observe(alice, thing, bob)
    await observe(alice, thing, carol)

    for number in range(50):
        await change(alice, thing, number)
    await alice.rest()

    assert values(await bob.rest()) == values(await carol.rest()) == list(range(50))


async def test_subscribing_twice_delivers_once(join):
    """MN-14: idempotent."""
    alice, bob = await join(), await join()
    thing = await an_object(alice)
    await observe(alice, thing, bob)
    await observe(alice, thing, bob)

    await change(alice, thing, 1)
    await alice.rest()

    assert values(await bob.rest()) == [1]


async def test_an_unsubscribed_observer_receives_nothing_more(join):
    """MN-15, I-M7: from the 200 on."""
    alice, bob, carol = [await join() for _ in range(3)]
    thing = await an_object(alice)
    await observe(alice, thing, bob)
    await observe(alice, thing, carol)

    answer = await bob.paths("unsubscribe", *resources(thing), source=bob.runtime)
    await change(alice, thing, 1)
    await alice.rest()

    assert answer["body"]["code"] == 200
    assert values(await bob.rest()) == []
    assert values(await carol.rest()) == [1]


async def test_unsubscribing_removes_exactly_what_is_named(join):
    """MN-15."""
    alice, bob = await join(), await join()
    thing = await an_object(alice, "children/a")
    await observe(alice, thing, bob, "changes", "children/a")

    await bob.paths("unsubscribe", f"{thing}/changes")
    await change(alice, thing, "changes")
    await alice.say("update", thing, f"{thing}/children/a", resource="x#1", value="child")
    await alice.rest()

    assert values(await bob.rest()) == ["child"]


async def test_unsubscribing_an_unknown_path_is_accepted(join):
    """MN-15: 200."""
    peer = await join()
    answer = await peer.paths("unsubscribe", f"comm://{DOMAIN}/never/changes")
    assert answer["body"]["code"] == 200


async def test_one_session_unsubscribes_for_itself_only(join):
    """MN-15: the binding of another stays."""
    alice, bob, carol = [await join() for _ in range(3)]
    thing = await an_object(alice)
    await observe(alice, thing, bob)

    await carol.paths("unsubscribe", *resources(thing))
    await change(alice, thing, 1)
    await alice.rest()

    assert values(await bob.rest()) == [1]


async def test_the_source_of_a_path_may_be_any_address_of_the_session(join):
    """MN-14, C-29: runtime, stub, hyperty."""
    peer = await join()
    (hyperty,) = await peer.allocate()
    for source in (peer.runtime, peer.part("p2phandler/1"), hyperty):
        answer = await peer.paths("subscribe", peer.part("p2phandler/1"), source=source)
        assert answer["body"]["code"] == 200


@pytest.mark.parametrize("type_", ["subscribe", "unsubscribe"])
async def test_the_source_of_a_path_is_never_another_sessions(join, type_):
    """MN-14, I-B10, U-30: 401 or 403, and nothing is bound."""
    alice, bob = await join(), await join()
    (hers,) = await alice.allocate()
    for source in (alice.runtime, alice.part("sm"), hers):
        answer = await bob.paths(type_, bob.part("p2phandler/1"), source=source)
        assert answer["body"]["code"] in {401, 403}


async def test_the_path_of_a_stub_brings_its_messages(join):
    """MN-14, M-01: what is sent to the P2P handler arrives."""
    alice, bob = await join(), await join()
    handler = alice.part("p2phandler/1")
    await alice.paths("subscribe", handler, source=handler)

    await bob.say("create", bob.part("p2prequester/1"), bob.spelt(f"{alice.inside}/p2phandler/1"))
    assert (await alice.hear())["to"] == handler


@pytest.mark.parametrize("key", ["resources", "subscribe", "resource"])
@pytest.mark.parametrize("listed", [list, lambda one: one[0]], ids=["list", "one"])
async def test_lists_of_paths_may_have_any_of_upstreams_names(join, key, listed):
    """MN-14, MN-17, C-09."""
    alice, bob = await join(), await join()
    thing = await an_object(alice)

    body = {key: listed(resources(thing)), "source": bob.runtime}
    assert await bob.code("subscribe", bob.part("sm"), f"{bob.node}/sm", **body) == 200
    await asked(alice, thing, bob, 200)
    await change(alice, thing, 1)
    await alice.rest()

    assert values(await bob.rest()) == [1]


async def test_two_lists_must_agree(join):
    """MN-14, C-09: two that differ are refused, never guessed."""
    peer = await join()
    to, one, two = f"{peer.node}/sm", peer.part("a"), peer.part("b")

    assert (
        await peer.code("subscribe", peer.part("sm"), to, resources=[one], subscribe=[two]) == 400
    )
    assert await peer.code("subscribe", peer.part("sm"), to, resources=[one], resource=one) == 200
    assert await peer.code("subscribe", peer.part("sm"), to) == 400


async def test_the_seeds_form_names_an_object_and_its_children(join):
    """MN-17, C-11, N10: upper case, `resource` and `childrenResources`."""
    alice, bob = await join(), await join()
    thing = await an_object(alice, "children/resources")

    answer = await bob.ask(
        "SUBSCRIBE", bob.part("sm"), f"{bob.node}/sm",
        resource=thing, childrenResources=["resources"],
    )  # fmt: skip
    await asked(alice, thing, bob, 200)
    await change(alice, thing, "changes")
    await alice.say("update", thing, f"{thing}/children/resources", resource="x#1", value="child")
    await alice.rest()

    assert answer["body"]["code"] == 200
    assert values(await bob.rest()) == ["changes", "child"]


async def test_events_without_subscribers_are_dropped_silently(join):
    """MN-27: events to nobody are fine."""
    alice = await join()
    thing = await an_object(alice)
    await change(alice, thing, 1)

    assert await alice.rest() == []


async def test_an_unsubscribed_runtime_is_sent_nothing(join):
    """MN-07, I-M4: others still are."""
    alice, bob, carol = [await join() for _ in range(3)]
    thing = await an_object(alice)
    await observe(alice, thing, bob)
    await observe(alice, thing, carol)
    await bob.close()

    await change(alice, thing, 1)
    await alice.rest()

    assert values(await carol.rest()) == [1]


async def test_paths_do_not_come_back_after_a_close(join):
    """MN-07, I-M4: a new session of the same runtime begins empty."""
    alice, bob = await join(), await join()
    thing = await an_object(alice)
    await observe(alice, thing, bob)
    await bob.close()
    with pytest.raises(Left):
        await bob.farewell()

    again = await join(name=bob.name)
    await change(alice, thing, 1)
    await alice.rest()

    assert values(await again.rest()) == []
