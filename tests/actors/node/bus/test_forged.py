"""Forged sources and other people's addresses, at a whole node: a sample (S1, S3)."""

import json
import math
from contextlib import asynccontextmanager

import pytest

from actors.node.limits import NodeLimits
from fsm.limits.rates import Rate
from fsm.registry.node_rights import Observation
from tests.actors.node.bus.forgery import RB, VICTIMS, variants
from tests.support.node.legacy_peer import plain_peer, session_peer
from tests.support.node.node_peer import RA, SM, open_world
from tests.support.node.upstream import OLD

PATIENT = NodeLimits(messages=Rate(math.inf, 1), max_malformed=math.inf)
"""Whoever sends much nonsense is shown out otherwise."""

KINDS = ["ours", plain_peer, session_peer]


@asynccontextmanager
async def forger(kind):
    """A node, whoever forges, and whom it would harm."""
    async with open_world(
        allow_legacy=True, observation=Observation.OWNER, limits=PATIENT
    ) as world:
        victim = await world.peer(RB)
        await victim.allocate("comm", 2)
        if kind == "ours":
            yield world, await world.peer(RA), RA, victim
        else:
            yield world, await kind(world), OLD, victim


async def answers(peer):
    """Return what a peer of either kind has heard."""
    await peer.silence(0.05)
    heard, peer.heard = peer.heard, []
    return heard


@pytest.mark.parametrize("where", ["from", "source"])
@pytest.mark.parametrize("kind", KINDS)
async def test_s1_a_forged_source_affects_no_session(kind, where, autojump_clock):
    async with forger(kind) as (world, peer, own, victim):
        before = len([fact for fact in world.tracer.facts if fact.table == "alloc"])
        texts = [*VICTIMS, *variants(7, 400)]
        for id_, text in enumerate(texts, start=1):
            source = {"source": text} if where == "source" else {}
            reported = {"id": id_, "type": "create", "from": f"{own}/ua" if source else text,
                    "to": f"{RB}/ua", "body": {"value": 1, **source}}  # fmt: skip
            await peer.raw(json.dumps(reported).encode())
        await answers(peer)

        heard = [one.body.get("source", one.from_) for one in await answers(victim)]
        inside = own.replace("runtime://", "hyperty-runtime://") if kind != "ours" else own
        bound = [fact.key for fact in world.tracer.facts if fact.table == "alloc"][before:]
        assert all(one.startswith((f"{inside}/", *bound)) or one == inside for one in heard)
        assert all("a.ex/" not in one or one.startswith("hyperty-runtime") for one in bound)
        assert not any(one == RB or one.startswith(f"{RB}/") for one in bound)


@pytest.mark.parametrize("kind", KINDS)
async def test_s3_other_peoples_addresses_are_not_heard(kind, autojump_clock):
    async with forger(kind) as (world, peer, own, victim):
        (view,) = [one for one in await world.node.sessions() if one.runtime == RB]
        objects = [
            f"{one}{part}" for one in view.addresses for part in ("", "/subscription", "/status")
        ]
        for id_, text in enumerate(
            [*VICTIMS, *objects, f"{RB}/status", *variants(8, 300)], start=1
        ):
            reported = {"id": id_, "type": "subscribe", "from": f"{own}/sm", "to": SM,
                    "body": {"resources": [text]}}  # fmt: skip
            await peer.raw(json.dumps(reported).encode())
        await answers(peer)

        for to in (*objects, *(f"{one}/changes" for one in view.addresses), f"{RB}/status"):
            from_ = to.removesuffix("/status")
            await victim.post("update", from_.removesuffix("/changes"), to, value="secret")
        assert "secret" not in str(await answers(peer))
        views = {one.runtime: one.paths for one in await world.node.sessions()}
        assert not any(path.startswith(RB) for paths in views.values() for path in paths)
