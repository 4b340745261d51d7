"""Upstream's suite `hyperty-allocation`, and beyond: addresses handed out and taken back."""

import pytest

from tests.support.node.node_process import DOMAIN
from tests.support.wire.wire_forms import OWN_FORMS

ALLOCATORS = ("address-allocation", "hyperty-address-allocation", "object-address-allocation")


async def allocation(peer, **body):
    """Return code and addresses of an answer to an allocation."""
    answer = await peer.ask(
        "create", peer.part("address-allocation"), f"{peer.node}/address-allocation", **body
    )
    return answer["body"]["code"], answer["body"].get("value", {}).get("allocated")


async def freed(peer, **body):
    to = f"{peer.node}/address-allocation"
    return await peer.code("delete", peer.part("address-allocation"), to, **body)


async def owns(peer, address):
    """Say whether a session may speak as an address."""
    return await peer.code("read", address, f"{peer.inside}/nobody") == 404


@pytest.mark.parametrize("number", [1, 3, 256])
async def test_as_many_fresh_addresses_as_asked_for_come_back(join, number):
    """MN-10, ALC-01, I-A1, I-A4, M-18."""
    peer = await join()

    code, allocated = await allocation(peer, scheme="hyperty", value={"number": number})

    assert code == 200
    assert len(set(allocated)) == len(allocated) == number
    assert all(one.startswith(f"hyperty://{DOMAIN}/") for one in allocated)


async def test_the_answer_comes_from_where_it_was_asked(join):
    """MN-10, ADR-04, I-M13."""
    peer = await join()
    for part in ALLOCATORS:
        to = f"{peer.node}/{part}"
        answer = await peer.ask(
            "create", peer.part("ua"), to, scheme="hyperty", value={"number": 1}
        )
        assert answer["body"]["code"] == 200
        assert answer["from"] == (f"{peer.node}/{ALLOCATORS[0]}" if peer.form in OWN_FORMS else to)


@pytest.mark.parametrize("value", [{"number": 0}, {"number": -1}, {"number": "x"}, {}, None, [1]])
async def test_a_number_that_is_none_gets_400(join, value):
    """MN-10, C-45."""
    assert await allocation(await join(), scheme="hyperty", value=value) == (400, None)


@pytest.mark.parametrize("scheme", ["nonsense", "domain", "hyperty-runtime", "user", "", 7])
async def test_a_scheme_that_is_not_allocated_gets_400(join, scheme):
    """MN-10, C-48."""
    assert await allocation(await join(), scheme=scheme, value={"number": 1}) == (400, None)


async def test_more_at_once_than_the_limit_is_refused_whole(join):
    """MN-10: at most 256 a request."""
    code, allocated = await allocation(await join(), scheme="hyperty", value={"number": 257})

    assert code in {400, 413}
    assert allocated is None


@pytest.mark.parametrize("type_", ["read", "update", "execute", "subscribe"])
async def test_allocation_knows_create_and_delete_only(join, type_):
    """MN-25."""
    peer = await join()
    assert await peer.code(type_, peer.part("ua"), f"{peer.node}/address-allocation") == 400


async def test_two_sessions_never_get_the_same_address(join):
    """MN-10, I-A1."""
    one, other = await join(), await join()
    assert not set(await one.allocate(number=50)) & set(await other.allocate(number=50))


async def test_an_allocated_address_is_the_sessions_own_and_reachable(join):
    """MN-10, I-A3: it may be spoken as, and what is sent to it arrives."""
    alice, bob = await join(), await join()
    (ha,), (hb,) = await alice.allocate(), await bob.allocate()

    sent = await alice.say("create", ha, hb, value="hi")
    request = await bob.hear()
    await bob.answer(request, value="ho")

    assert (request["from"], request["to"]) == (ha, hb)
    assert request["body"]["value"] == "hi"
    answer = await alice.answer_to(sent)
    assert (answer["body"]["code"], answer["body"]["value"]) == (200, "ho")


async def test_freeing_a_list_frees_exactly_that(join):
    """MN-12, ALC-03, M-20."""
    peer = await join()
    first, second, third = await peer.allocate(number=3)

    assert await freed(peer, childrenResources=[first, third]) == 200

    assert [await owns(peer, one) for one in (first, second, third)] == [False, True, False]


async def test_freeing_a_key_frees_exactly_its_block(join):
    """MN-11, ALC-03, I-A5, M-19."""
    peer = await join()
    block = await peer.allocate(number=2, allocationKey="block")
    (other,) = await peer.allocate(allocationKey="other")
    (without,) = await peer.allocate()

    assert await freed(peer, resource="block") == 200

    assert [await owns(peer, one) for one in (*block, other, without)] == [False, False, True, True]


async def test_a_key_may_stand_where_upstreams_tests_write_it(join):
    """MN-11, C-46: `value.allocationKey`."""
    peer = await join()
    (address,) = await peer.allocate(allocationKey="k")

    assert await freed(peer, value={"allocationKey": "k"}) == 200

    assert not await owns(peer, address)


async def test_one_address_may_be_freed_by_resource(join):
    """MN-12, C-46."""
    peer = await join()
    first, second = await peer.allocate(number=2)

    assert await freed(peer, resource=first) == 200

    assert [await owns(peer, one) for one in (first, second)] == [False, True]


async def test_a_key_is_the_sessions_own(join):
    """MN-11: another session's block of the same name is untouched."""
    alice, bob = await join(), await join()
    (hers,) = await alice.allocate(allocationKey="same")
    (his,) = await bob.allocate(allocationKey="same")

    assert await freed(bob, resource="same") == 200

    assert await owns(alice, hers)
    assert not await owns(bob, his)


async def test_freeing_again_or_freeing_an_unknown_address_is_accepted(join):
    """MN-12, ALC-03, C-47."""
    peer = await join()
    (address,) = await peer.allocate()

    for body in (
        {"childrenResources": [address]},
        {"childrenResources": [address]},
        {"childrenResources": [f"hyperty://{DOMAIN}/never"]},
        {"resource": "no such key"},
    ):
        assert await freed(peer, **body) == 200


async def test_a_session_that_does_not_own_the_whole_list_frees_nothing(join):
    """MN-12, I-A6: 403, all or none."""
    alice, bob = await join(), await join()
    (hers,), (his,) = await alice.allocate(), await bob.allocate()

    assert await freed(bob, childrenResources=[his, hers]) == 403
    assert await freed(bob, resource=hers) == 403

    assert await owns(alice, hers)
    assert await owns(bob, his)


async def test_a_freed_address_has_no_owner_and_is_never_given_again(join):
    """MN-12, I-A1, I-A2: not to speak as, not to reach, not to claim."""
    alice, bob = await join(), await join()
    (address,) = await alice.allocate()
    await freed(alice, childrenResources=[address])

    assert await alice.code("read", address, alice.part("x")) == 401
    assert await bob.code("read", bob.part("ua"), address) == 404
    assert (await bob.paths("subscribe", address, source=bob.runtime))["body"]["code"] == 403
    assert address not in await alice.allocate(number=100)


async def test_an_address_that_was_freed_takes_its_paths_along(join):
    """MN-12: who subscribed it hears no more of it."""
    alice, bob = await join(), await join()
    (address,) = await alice.allocate()
    await alice.paths("subscribe", f"{address}/children/x")
    await freed(alice, childrenResources=[address])

    # A hyperty that does not observe is answered just that, whether there is such an object or not.
    child = {"resource": f"{bob.part('ua')}#1", "value": 1}
    assert await bob.code("create", bob.part("ua"), f"{address}/children/x", **child) == 403
    assert await alice.rest() == []


async def test_a_request_that_names_neither_key_nor_list_gets_400(join):
    """MN-12, MN-25."""
    peer = await join()
    assert await freed(peer) == 400
    assert await freed(peer, childrenResources=[]) in {200, 400}
    assert await freed(peer, childrenResources=[["nested"]]) == 400
