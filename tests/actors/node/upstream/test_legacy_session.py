"""Upstream's stubs with a session handshake, at a node that lets them in (C-65, M-14..M-16)."""

import pytest

from tests.support.node.legacy_peer import (
    OLD,
    OLD_INSIDE,
    plain_peer,
    session_outsider,
    session_peer,
)
from tests.support.node.node_peer import RA, open_world


def old_world(**config):
    return open_world(allow_legacy=True, **config)


async def test_opening_again_on_the_same_link_gives_the_same_token(autojump_clock):
    async with old_world() as world:
        old = await session_peer(world)

        assert (await old.session("open"))["body"] == {"code": 200, "runtimeToken": old.token}
        assert len(world.steps("session")) == 1


async def test_an_open_without_the_token_takes_no_foreign_session(autojump_clock):
    async with old_world() as world:
        old = await session_peer(world)
        await world.peer(RA)
        for runtime in (OLD, RA):
            thief = await session_outsider(world, runtime)
            assert (await thief.session("open"))["body"]["code"] == 409
        plain = await plain_peer(world)

        assert (await plain.hear())["body"]["code"] == 409
        assert await old.allocate()


@pytest.mark.parametrize("body", [b'{"code":99}', b'{"code":', b"7"])
async def test_what_replaces_a_malformed_answer_does_not_show_the_token(body, autojump_clock):
    """SEC-01: a message that the node makes in place of one that names its sender."""
    async with old_world() as world:
        old, new = await session_peer(world), await world.peer(RA)
        hidden = f"{OLD_INSIDE}/protostub/session"
        await new.post("read", f"{RA}/ua", hidden)
        asked = await old.hear()

        head = b'{"id":%d,"type":"response","from":"%s","to":"%s","body":%s'
        ends = old.session_url.encode(), asked["from"].encode()
        await old.link.send(head % (asked["id"], *ends, body) + b"}")

        answer = await new.hear()
        assert (answer.code, answer.from_) == (502, hidden)
        assert not any(old.token in str(fact) for fact in world.tracer.facts)


@pytest.mark.parametrize("peer", [plain_peer, session_peer])
async def test_upstream_is_not_told_that_a_request_is_given_up(peer, autojump_clock):
    async with old_world() as world:
        old, new = await peer(world), await world.peer(RA)
        hyperty = await old.allocate()
        (own,) = await new.allocate()
        request = await new.post("create", own, hyperty, value=1)
        await new.post("create", own, f"{hyperty}/events", givenUp=request.id)
        await new.post("create", own, f"{hyperty}/events", value={"givenUp": 1})

        heard = [await old.hear(), await old.hear()]
        assert [one["body"]["value"] for one in heard] == [1, {"givenUp": 1}]
