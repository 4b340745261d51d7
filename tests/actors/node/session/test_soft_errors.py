"""A peer that sends nonsense is borne for a while, then left (RELIABILITY L4)."""

import json

import pytest
import trio

from specs.limits.protocol import (
    MAX_JSON_DEPTH,
    MAX_JSON_KEYS,
    MAX_JSON_TEXT,
    MAX_LIST,
    MAX_MALFORMED,
    MAX_MESSAGE_BYTES,
)
from specs.reply_code import DropReason, LinkEnd
from tests.support.node.legacy_peer import OLD, plain_peer, session_peer
from tests.support.node.node_peer import RA, RB, open_world
from transports.errors import CloseReason, LinkBrokenError

NONSENSE = b'{"id":1,"type":"nonsense","from":"%s/ua","to":"%s/ua"}' % (RA.encode(), RB.encode())


def deep(levels):
    value = 0
    for _ in range(levels):
        value = [value]
    return value


TOO_MUCH = {
    "depth": {"value": deep(MAX_JSON_DEPTH)},
    "keys": {"value": {f"k{n}": 0 for n in range(MAX_JSON_KEYS + 1)}},
    "text": {"value": "x" * (MAX_JSON_TEXT + 1)},
    "list": {"resources": [f"{RB}/ua"] * (MAX_LIST + 1)},
    "message": {"value": ["x" * MAX_JSON_TEXT] * (MAX_MESSAGE_BYTES // MAX_JSON_TEXT)},
}


def message(body, type_="create"):
    wire = {"id": 7, "type": type_, "from": f"{RA}/ua", "to": f"{RB}/ua", "body": body}
    return json.dumps(wire).encode()


@pytest.mark.parametrize("much", TOO_MUCH)
async def test_a_message_over_a_limit_is_refused_with_413_and_counted(autojump_clock, much):
    async with open_world() as world:
        ra = await world.peer(RA)
        type_ = "subscribe" if much == "list" else "create"
        await ra.link.send(message(TOO_MUCH[much], type_))

        answer = await ra.hear()
        assert (answer.id, answer.code) == (7, 413)
        assert world.node.counters.drops[DropReason.MALFORMED] == 1
        assert (await ra.control("ping")).code == 200


async def test_ten_are_borne_and_answered(autojump_clock):
    async with open_world() as world:
        ra = await world.peer(RA)
        for _ in range(MAX_MALFORMED):
            await ra.link.send(NONSENSE)

        assert [(await ra.hear()).code for _ in range(MAX_MALFORMED)] == [400] * MAX_MALFORMED
        assert (await ra.control("ping")).code == 200


async def test_the_eleventh_in_a_minute_is_answered_and_ends_the_link(autojump_clock):
    async with open_world() as world:
        ra, rb = await world.peer(RA), await world.peer(RB)
        for _ in range(MAX_MALFORMED + 1):
            await ra.link.send(NONSENSE)

        assert [(await ra.hear()).code for _ in range(MAX_MALFORMED + 1)] == [400] * 11
        with pytest.raises(LinkBrokenError) as broken:
            await ra.hear()
        assert broken.value.close_reason is CloseReason.REFUSED
        assert world.ended() == {LinkEnd.MALFORMED: 1}
        assert (await world.states()) == {RA: "detached", RB: "open"}
        assert (await rb.control("ping")).code == 200


async def test_ten_in_every_minute_are_borne_for_ever(autojump_clock):
    async with open_world() as world:
        ra = await world.peer(RA)
        for _ in range(50):
            await ra.link.send(NONSENSE)
            assert (await ra.hear()).code == 400
            await trio.sleep(6.1)

        assert (await ra.control("ping")).code == 200


async def test_a_session_may_come_back_after_its_link_was_left(autojump_clock):
    async with open_world() as world:
        ra = await world.peer(RA)
        await ra.link.send(b"\n".join([NONSENSE] * 20))
        with pytest.raises(LinkBrokenError):
            await ra.read_on()

        again = await world.outsider(RA)
        assert (await again.control("re-open", runtimeURL=RA, token=ra.token)).code == 200


@pytest.mark.parametrize("connect", [plain_peer, session_peer])
async def test_old_stubs_are_borne_no_longer(autojump_clock, connect):
    async with open_world(allow_legacy=True) as world:
        old = await connect(world)
        for _ in range(MAX_MALFORMED + 1):
            await old.raw(b'{"id":1,"type":"nonsense","from":"%s/ua","to":"x"}' % OLD.encode())

        with pytest.raises(LinkBrokenError) as broken:
            await old.read_on()
        assert broken.value.close_reason is CloseReason.REFUSED
