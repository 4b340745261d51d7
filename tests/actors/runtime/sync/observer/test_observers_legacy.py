"""Upstream observers of our objects: let in, shut out (SYN-11, SYN-18, SYN-19, SYN-21, C-75)."""

from contextlib import asynccontextmanager
from types import SimpleNamespace

import pytest
import trio

import actors
from actors.node.config import NodeConfig
from tests.support.node.legacy_peer import OLD, OLD_INSIDE, plain_peer, session_peer
from tests.support.node.node_peer import SM
from tests.support.report_world import Closed, Open
from transports.memory import MemoryNetwork

DOORS = pytest.mark.parametrize("door", [plain_peer, session_peer])
HYPERTY, INSIDE = f"{OLD}/hb", f"{OLD_INSIDE}/hb"


@asynccontextmanager
async def met(door, make=Open, **wanted):
    """A reporter of ours, and an upstream peer that has set its path on the object."""
    network = MemoryNetwork()
    config = NodeConfig(domain="a.ex", allow_legacy=True)
    async with (
        actors.open_node(config, network=network) as node,
        actors.open_runtime("a.ex", "ra", node=node.url, network=network) as here,
    ):
        room = await here.deploy(make)
        world = SimpleNamespace(node=node, network=network, links=[])
        async with room.report("comm", {"n": 0}, **wanted) as thing:
            yield thing, await door(world)
        for link in world.links:
            await link.aclose()


async def ask(old, type_, to, body, from_=f"{OLD}/sm"):
    """Return the body of the answer to a message; what else is heard is kept."""
    ask.last += 1
    await old.say(id=ask.last, type=type_, from_=from_, to=to, body=body)
    kept = []
    with trio.fail_after(10):
        while True:
            heard = await old.hear()
            if heard["type"] == "response" and int(heard["id"]) == ask.last:
                old.heard[:0] = kept
                return heard["body"]
            kept.append(heard)


ask.last = 0


async def observe(old, thing):
    """Observe as upstream does: the path first, then the object."""
    await ask(old, "subscribe", SM, {"resources": [f"{thing.url}/changes"]})
    return await ask(old, "subscribe", f"{thing.url}/subscription", {"source": HYPERTY})


async def changes(old):
    """The versions heard meanwhile."""
    found = []
    while not await old.silence():
        found += [one["body"].get("version") for one in old.heard if one["type"] == "update"]
        old.heard.clear()
    return list(dict.fromkeys(found))


@DOORS
async def test_a_refused_legacy_observer_gets_the_reason(door, autojump_clock):
    async with met(door, Closed) as (thing, old):
        answer = await observe(old, thing)
        assert answer["code"] == 403
        assert "is not invited" in answer["description"]
        assert (await ask(old, "read", thing.url, {}, HYPERTY))["code"] == 401
