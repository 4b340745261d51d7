"""Upstream's suite `object-allocation`, and beyond: addresses of data objects."""

import pytest

from tests.support.node.node_process import DOMAIN

SCHEMES = ("comm", "connection", "ctxt")


@pytest.mark.parametrize("scheme", SCHEMES)
async def test_objects_of_every_schema_are_given_addresses(join, scheme):
    """MN-10, ALC-01, C-48."""
    allocated = await (await join()).allocate(scheme, 3)

    assert len(set(allocated)) == 3
    assert all(one.startswith(f"{scheme}://{DOMAIN}/") for one in allocated)


@pytest.mark.parametrize("scheme", SCHEMES)
async def test_upstreams_address_for_objects_is_understood(join, scheme):
    """MN-10, C-42."""
    peer = await join()
    answer = await peer.ask(
        "CREATE", peer.part("registry/allocation"), f"{peer.node}/object-address-allocation",
        scheme=scheme, value={"number": 2},
    )  # fmt: skip
    assert answer["body"]["code"] == 200
    assert len(answer["body"]["value"]["allocated"]) == 2


async def test_an_object_is_its_reporters_alone(join):
    """I-A3, I-B10: only the owner speaks as it."""
    alice, bob = await join(), await join()
    (address,) = await alice.allocate("comm")

    assert await bob.code("update", address, bob.part("x"), value=1) == 401
    assert await bob.code("update", f"{address}/subscription", bob.part("x"), value=1) == 401


@pytest.mark.parametrize("part", ["", "/subscription", "/anything/below"])
async def test_the_whole_of_an_object_is_reached(join, part):
    """MN-01, MN-27, ADR-04: what is sent to a part of it comes to its owner."""
    alice, bob = await join(), await join()
    (address,) = await alice.allocate("comm")

    sent = await bob.say("read", bob.part("sm"), address + part, value=1)
    request = await alice.hear()
    await alice.answer(request)

    assert request["to"] == address + part
    assert (await bob.answer_to(sent))["body"]["code"] == 200


async def test_an_object_whose_name_begins_like_another_is_a_different_one(join):
    """ADR-04, U-33: borders of segments count."""
    alice, bob = await join(), await join()
    (address,) = await alice.allocate("comm")

    assert await bob.code("read", bob.part("sm"), f"{address}2") == 404
    assert await alice.code("read", f"{address}2", alice.part("x")) == 401


async def test_freed_objects_have_no_owner(join):
    """MN-12, ALC-03."""
    alice, bob = await join(), await join()
    addresses = await alice.allocate("ctxt", 2, allocationKey="k")

    to = f"{alice.node}/address-allocation"
    assert await alice.code("delete", alice.part("ua"), to, resource="k") == 200

    for address in addresses:
        assert await bob.code("read", bob.part("sm"), address) == 404


async def test_an_address_made_by_the_runtime_is_claimed_by_its_path(join):
    """ALC-02, C-44: upstream's newer runtimes make addresses themselves."""
    alice, bob = await join(), await join()
    own = f"hyperty://{DOMAIN}/made-by-{alice.name}"

    answer = await alice.paths("subscribe", own, source=alice.part("address-allocation"))
    sent = await bob.say("create", bob.part("ua"), own, value=1)
    request = await alice.hear()
    await alice.answer(request)

    assert answer["body"]["code"] == 200
    assert request["to"] == own
    assert (await bob.answer_to(sent))["body"]["code"] == 200


async def test_an_owned_address_cannot_be_claimed(join):
    """ALC-02, MN-14, C-44, U-28."""
    alice, bob = await join(), await join()
    (allocated,) = await alice.allocate()
    own = f"comm://{DOMAIN}/made-by-{alice.name}"
    await alice.paths("subscribe", own, source=alice.runtime)

    for address in (allocated, own):
        assert (await bob.paths("subscribe", address, source=bob.runtime))["body"]["code"] == 403
        assert await bob.code("read", address, bob.part("x")) == 401


async def test_a_claimed_address_comes_back_with_the_session(join):
    """ALC-02: who comes again and claims again is answered alike."""
    peer = await join()
    own = f"hyperty://{DOMAIN}/again-{peer.name}"

    for _ in range(2):
        assert (await peer.paths("subscribe", own, source=peer.runtime))["body"]["code"] == 200


async def test_an_object_made_by_the_runtime_is_claimed_with_its_parts(join):
    """ALC-02, MN-14, C-44, M-35: object and parts in one message."""
    alice, bob = await join(), await join()
    thing = f"comm://{DOMAIN}/whole-{alice.name}"
    parts = [thing, f"{thing}/subscription", f"{thing}/children/x"]

    answer = await alice.paths("subscribe", *parts, source=alice.runtime)
    await bob.say("create", bob.part("ua"), f"{thing}/subscription", value=1)

    assert answer["body"]["code"] == 200
    assert (await alice.hear())["to"] == f"{thing}/subscription"
