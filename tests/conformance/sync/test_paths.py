"""Paths that are refused: what is another's, what is the node's, what is none."""

import pytest

from tests.support.node.node_process import DOMAIN
from tests.support.wire.wire_sync import an_object, asked, change, values


@pytest.mark.parametrize("own", ["", "/sm", "/registry", "/p2phandler/1", "/subscription"])
async def test_paths_below_another_sessions_address_cannot_be_subscribed_to(join, own):
    """MN-14, I-M6, S3: a runtime's own addresses are not for others to hear."""
    alice, bob = await join(), await join()
    answer = await bob.paths("subscribe", bob.spelt(alice.inside) + own, source=bob.runtime)

    assert answer["body"]["code"] == 403
    await bob.say("read", bob.part("x"), bob.spelt(alice.inside) + (own or "/ua"))
    assert (await alice.hear())["type"] == "read"
    assert await bob.rest() == []


@pytest.mark.parametrize("part", ["", "/subscription"])
async def test_another_sessions_object_itself_cannot_be_subscribed_to(join, part):
    """MN-14, S3."""
    alice, bob = await join(), await join()
    thing = await an_object(alice)
    assert (await bob.paths("subscribe", thing + part))["body"]["code"] == 403


@pytest.mark.parametrize(
    "backend",
    [
        f"domain://msg-node.{DOMAIN}/sm", f"domain://registry.{DOMAIN}", f"domain://idm.{DOMAIN}",
        f"domain://registry.{DOMAIN}/changes", "global://registry",
    ],
)  # fmt: skip
async def test_parts_of_the_node_cannot_be_subscribed_to(join, backend):
    """MN-14, ADR-04, S3."""
    assert (await (await join()).paths("subscribe", backend))["body"]["code"] == 403


async def test_a_list_with_one_that_is_refused_binds_none(join):
    """MN-14: all or none."""
    alice, bob = await join(), await join()
    thing = await an_object(alice)

    answer = await bob.paths("subscribe", f"{thing}/changes", bob.spelt(alice.inside))
    await asked(alice, thing, bob, 200)
    await change(alice, thing, 1)
    await alice.rest()

    assert answer["body"]["code"] == 403
    assert values(await bob.rest()) == []


@pytest.mark.parametrize("wrong", [[7], "nonsense", ["no address"], {}, [None]])
async def test_an_invalid_address_is_no_path(join, wrong):
    """MN-25, MN-14: 400."""
    peer = await join()
    code = await peer.code("subscribe", peer.part("sm"), f"{peer.node}/sm", resources=wrong)
    assert code == 400


async def test_too_many_paths_at_once_are_refused(join):
    """MN-14: 413 for a list over 256."""
    peer = await join()
    many = [peer.part(f"p/{number}") for number in range(257)]
    assert (await peer.paths("subscribe", *many))["body"]["code"] == 413
