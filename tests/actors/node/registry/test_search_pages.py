"""Searches of a domain registry come in pages that no session fills (M-26..M-28, REG-08)."""

import pytest
import trio

from specs.limits.protocol import FRAME_MESSAGES, MAILBOX, SEARCH_PAGE
from specs.message import Message, MessageType
from tests.support.node.issuer import ALICE, BOB, Issuer, login_by, opened
from tests.support.node.legacy_peer import plain_peer
from tests.support.node.node_peer import DR, RA, RB, open_world
from tests.support.node.upstream import OLD
from tests.support.trace.records import create, read, record, update
from transports.codec import encode

ROOM = "/hyperty/name/room"


async def fill(peer, count, **more):
    """Register many records as one session; return their addresses, oldest first."""
    urls = []
    while len(urls) < count:
        urls += await peer.allocate(number=min(200, count - len(urls)))
    for url in urls:
        value = {**record(url, peer.runtime, **{"name": "room", **more})}
        answer = await create(peer, {key: one for key, one in value.items() if one is not None})
        assert answer.code == 200, answer.body
    return urls


def urls_in(answer):
    return [one["url"] for one in answer.body["value"]]


async def all_pages(peer, resource, **more):
    pages, after = [], {}
    while True:
        answer = await read(peer, resource, **more, **after)
        assert answer.code in {200, 408}
        pages.append(urls_in(answer))
        if "next" not in answer.body:
            return pages
        after = {"after": answer.body["next"]}


async def test_pages_are_newest_first_and_hold_as_many_as_asked_for(autojump_clock):
    async with open_world() as world:
        rb = await world.peer(RB)
        urls = await fill(rb, 7)
        newest = urls[::-1]
        assert await all_pages(rb, ROOM, limit=3) == [newest[:3], newest[3:6], newest[6:]]
        assert await all_pages(rb, ROOM) == [newest]


async def test_a_keep_alive_or_change_makes_a_record_no_newer(autojump_clock):
    async with open_world() as world:
        rb = await world.peer(RB)
        urls = await fill(rb, 3)
        await update(rb, urls[0])
        await update(rb, urls[0], value={"status": "live", "resources": ["more"]})
        assert await all_pages(rb, ROOM) == [urls[::-1]]


@pytest.mark.parametrize("is_first", [True, False], ids=["older", "newer"])
@pytest.mark.parametrize("pad", ["", "x" * 15_000], ids=["small", "padded"])
async def test_many_records_of_one_session_hide_no_other(is_first, pad, autojump_clock):
    """Registered before or after the victim's, small or padded."""
    async with open_world() as world:
        victim, attacker = await world.peer(RA), await world.peer(RB)
        count = 40 if pad else 400
        if is_first:
            await fill(attacker, count, pad=pad)
        (url,) = await fill(victim, 1)
        if not is_first:
            await fill(attacker, count, pad=pad)
        first, *others = await all_pages(victim, ROOM)
        assert url in first
        assert len(first) <= SEARCH_PAGE // 4 + 1
        everything = [one for page in (first, *others) for one in page]
        assert len(everything) == len(set(everything)) == count + 1


async def test_records_that_come_and_go_between_pages_shift_nothing(autojump_clock):
    async with open_world() as world:
        ra, rb = await world.peer(RA), await world.peer(RB)
        mine, theirs = await fill(ra, 10), await fill(rb, 30)
        first = await read(ra, ROOM, limit=8)
        await fill(ra, 5)
        for url in [mine[0], theirs[0], theirs[-1], theirs[-3]]:
            peer = ra if url in mine else rb
            await update(peer, url, attribute="status", value="disconnected")
        found = urls_in(first)
        after = first.body["next"]
        while after is not None:
            answer = await read(ra, ROOM, limit=8, after=after)
            found += urls_in(answer)
            after = answer.body.get("next")
        stays = {*mine, *theirs} - {mine[0], theirs[0], theirs[-1], theirs[-3]}
        assert len(found) == len(set(found))
        assert stays <= set(found) <= {*mine, *theirs}


async def test_pages_go_on_over_a_restart(tmp_path):
    path = tmp_path / "r.sqlite"
    async with open_world(registry=path) as world:
        rb = await world.peer(RB)
        urls = await fill(rb, 5)
        await rb.control("close")
        first = await read(await world.peer(RA), ROOM, limit=2)
    async with open_world(registry=path) as world:
        ra = await world.peer("hyperty-runtime://a.ex/rc")
        await fill(ra, 1)
        rest = await read(ra, ROOM, limit=5, after=first.body["next"])
        assert urls_in(first) + urls_in(rest) == urls[::-1]


async def test_records_that_are_away_come_in_pages_too(autojump_clock):
    async with open_world() as world:
        ra, rb = await world.peer(RA), await world.peer(RB)
        urls = await fill(rb, 5)
        await rb.control("close")
        answer = await read(ra, ROOM, limit=3)
        assert (answer.code, urls_in(answer)) == (408, urls[:1:-1])
        assert await all_pages(ra, ROOM, limit=3) == [urls[:1:-1], urls[1::-1]]


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"limit": 0}, "limit must be >= 1 and <= 256"),
        ({"limit": 257}, "limit must be >= 1 and <= 256"),
        ({"limit": "7"}, "limit must be a whole number, not '7'"),
        ({"limit": True}, "limit must be a whole number, not True"),
        ({"after": ""}, "after must not be empty"),
        ({"after": 7}, "after must be text, not 7"),
        ({"after": "bogus"}, "after is no cursor that this search has returned"),
        ({"after": "x" * 2000}, "after is no cursor that this search has returned"),
    ],
    ids=range(8),
)
async def test_a_wrong_limit_or_cursor_gets_400(more, why, autojump_clock):
    async with open_world() as world:
        rb = await world.peer(RB)
        await fill(rb, 2)
        answer = await read(rb, ROOM, **more)
        assert answer.code == 400
        assert why in answer.body["description"]


async def test_the_cursor_of_another_search_gets_400(autojump_clock):
    async with open_world() as world:
        rb = await world.peer(RB)
        (url, _) = await fill(rb, 2)
        after = (await read(rb, ROOM, limit=1)).body["next"]
        for other in ("/hyperty/name/hall", "/comm/name/room"):
            assert (await read(rb, other, after=after)).code == 400
        assert (await read(rb, ROOM, after=after, criteria={"resources": ["chat"]})).code == 400
        for more in ({"after": after}, {"limit": 1}):
            refused = await read(rb, url, **more)
            assert "for a search, not for one record" in refused.body["description"]


async def test_upstreams_peers_get_the_first_page_and_no_word_they_do_not_know(autojump_clock):
    async with open_world(allow_legacy=True) as world:
        urls = await fill(await world.peer(RB), 300)
        peer = await plain_peer(world)
        asked = {"id": "1", "type": "READ", "from_": f"{OLD}/registry", "to": DR}
        answer = await peer.ask(**asked, body={"resource": ROOM})
        assert [one["url"] for one in answer["body"]["value"]][:3] == urls[:-4:-1]
        assert "next" not in answer["body"]


async def test_with_logins_nobody_registers_beside_a_user(autojump_clock):
    """Neither under the victim's name nor its GUID, so a search by user finds the user only."""
    issuer = Issuer()
    async with open_world(login=login_by(issuer)) as world:
        victim, thief = await world.outsider(RA), await world.outsider(RB)
        assert (await opened(victim, issuer.token(sub=ALICE))).code == 200
        assert (await opened(thief, issuer.token(sub=BOB))).code == 200
        (url,) = await fill(victim, 1, user=ALICE)
        for claim in ({"user": ALICE}, {"user": BOB, "guid": "user-guid://alice"}):
            (mine,) = await thief.allocate()
            assert (await create(thief, record(mine, RB, **claim))).code == 403
        await fill(thief, 40, user=BOB)
        assert await all_pages(thief, f"/hyperty/user/{ALICE}") == [[url]]


BUSY = [f"hyperty-runtime://a.ex/busy{number}" for number in range(5)]
EACH = 40
FEW = 40


async def logged_in(world, issuer, runtime, user):
    peer = await world.outsider(runtime)
    assert (await opened(peer, issuer.token(sub=user))).code == 200
    return peer


@pytest.mark.parametrize("resource", ["record", ROOM], ids=["read", "search"])
async def test_searches_of_one_user_keep_no_other_user_waiting(resource, autojump_clock):
    """The other one waits for a few of them, however many there are."""
    issuer = Issuer()
    async with open_world(login=login_by(issuer)) as world, trio.open_nursery() as nursery:
        busy = [await logged_in(world, issuer, runtime, BOB) for runtime in BUSY]
        alice = await logged_in(world, issuer, RA, ALICE)
        (url,) = await fill(alice, 1, user=ALICE)
        answered = 0

        async def count(peer):
            nonlocal answered
            for _ in range(EACH):
                assert (await peer.hear()).code == 200
                answered += 1

        for peer in busy:
            asker, search = f"{peer.runtime}/registry", {"resource": ROOM}
            numbers = range(100, 100 + EACH)
            searches = [Message(each, MessageType.READ, asker, DR, search) for each in numbers]
            await peer.link.send(b"\n".join(map(encode, searches)))
            nursery.start_soon(count, peer)
        asked = url if resource == "record" else resource
        request = await alice.post("read", f"{RA}/registry", DR, resource=asked)
        answer = await alice.hear()
        assert (answer.id, answer.code) == (request.id, 200)
        before = answered
    assert answered == EACH * len(busy)
    assert before < answered // 4


async def test_who_asks_for_most_is_refused_when_more_searches_wait_than_may(autojump_clock):
    """What waits no more is refused one by one; the searches of others are all made."""
    async with open_world() as world, trio.open_nursery() as nursery:
        alice = await world.peer(RA)
        (url,) = await fill(alice, 1)
        codes = {}

        async def ask(runtime, count):
            peer = await world.peer(runtime)
            asker, search = f"{runtime}/registry", {"resource": ROOM}
            for first in range(0, count, FRAME_MESSAGES):
                numbers = range(100 + first, 100 + min(first + FRAME_MESSAGES, count))
                searches = [Message(each, MessageType.READ, asker, DR, search) for each in numbers]
                await peer.link.send(b"\n".join(map(encode, searches)))
            codes[runtime] = [(await peer.hear()).code for _ in range(count)]

        for runtime in BUSY[:3]:
            nursery.start_soon(ask, runtime, MAILBOX // 2)
        nursery.start_soon(ask, BUSY[3], FEW)
        assert (await read(alice, url)).code == 200
    assert codes.pop(BUSY[3]) == [200] * FEW
    made = [each.count(200) for each in codes.values()]
    refused = [each.count(503) for each in codes.values()]
    assert sum(made) + sum(refused) == 3 * MAILBOX // 2
    assert sum(made) >= MAILBOX - FEW
    assert min(made) >= MAILBOX // 4
    assert any(refused)
