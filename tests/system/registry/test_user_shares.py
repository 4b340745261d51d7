"""What one user makes a node remember is bounded in bytes, over all sessions of the user.

The node is a process, and the attacker a WebSocket that sends what it likes. A second user is
served all the time.
"""

import time
from contextlib import asynccontextmanager, contextmanager

import pytest
import trio

from specs.limits.node import USER_ADDRESSES, USER_RECORD_BYTES, USER_WAITING_BYTES
from specs.limits.protocol import FRAME_MESSAGES, MAILBOX, MAX_ADDRESSES, MAX_ALLOCATION
from specs.message import Message, MessageType
from tests.support.node.issuer import ALICE, BOB, Issuer, opened
from tests.support.node.node_peer import DOMAIN, DR, Peer
from tests.support.node.node_process import UNHURRIED, node_process
from transports.codec import encode
from transports.link import Kind
from transports.system import open_system_network

pytestmark = pytest.mark.timeout(280)

ISSUER = "https://idp.ex"

MIB = 1_048_576


def nested(size):
    """Return a value whose text is short and whose objects are many."""
    return [[] for _ in range(size // 3)]


@pytest.fixture
def issuer():
    return Issuer(now=time.time())  # noqa: TID251 - tokens are of our time


@pytest.fixture
def node(tmp_path, issuer):
    with a_node(tmp_path, issuer) as process:
        yield process


@contextmanager
def a_node(tmp_path, issuer, *more):
    keys = tmp_path / "keys.json"
    keys.write_bytes(issuer.jwks())
    options = ("--domain", DOMAIN, "--jwks", str(keys), "--issuer", ISSUER, *UNHURRIED, *more)
    with node_process(tmp_path / "node.log", *options) as process:
        yield process


@asynccontextmanager
async def sessions(node, issuer):
    """Give what opens a session of a user; all are closed at the end."""
    links = []

    async def enter(name, user):
        links.append(await network.dial(Kind.WEBSOCKET, node.ready["url"]))
        peer = Peer(links[-1], f"hyperty-runtime://{DOMAIN}/{name}")
        answer = await opened(peer, issuer.token(sub=user))
        assert answer.code == 200, answer.body
        return peer

    async with open_system_network() as network:
        try:
            yield enter
        finally:
            async with trio.open_nursery() as nursery:
                for link in links:
                    nursery.start_soon(link.aclose)


async def register(peer, url, user, **more):
    value = {
        "url": url, "runtime": peer.runtime, "status": "live", "user": user, "expires": 3600,
        "descriptor": "hyperty-catalogue://catalogue.a.ex/.well-known/hyperty/Chat",
        "resources": [], "dataSchemes": [], **more,
    }  # fmt: skip
    return await peer.ask("create", f"{peer.runtime}/registry", DR, value=value)


async def is_served(peer, user):
    """Use everything that the other user has filled, once."""
    (url,) = await peer.allocate()
    answers = [
        await register(peer, url, user),
        await peer.ask("read", f"{peer.runtime}/registry", DR, resource=url),
        await peer.ask(
            "subscribe", f"{peer.runtime}/sm", f"{peer.node}/sm", resources=[f"{url}/own"]
        ),
    ]
    return [answer.code for answer in answers] == [200, 200, 200]


async def test_records_take_little_more_than_their_text_and_a_user_has_a_share(node, issuer):
    value, text = nested(14_000), 14_500
    async with sessions(node, issuer) as enter:
        bob = await enter("bob", BOB)
        assert await is_served(bob, BOB)
        before, sent, refusal, held = node.resident, 0, None, []
        for number in range(8):
            alice = await enter(f"alice-{number}", ALICE)
            held.append(alice)
            urls = []
            while len(urls) < 512 and refusal is None:
                urls += await alice.allocate(number=MAX_ALLOCATION)
            for at, url in enumerate(urls):
                if at % 100 == 0:  # those who only wait answer their pings, too
                    for one in (bob, *held):
                        await one.control("ping")
                answer = await register(alice, url, ALICE, x=value)
                if answer.code != 200:
                    refusal = answer
                    break
                sent += text
            assert await is_served(bob, BOB)
            if refusal is not None:
                break
        assert refusal.code == 413
        assert f"a user has at most {USER_RECORD_BYTES} bytes of records" in str(refusal.body)
        assert sent > 10 * MIB
        assert node.resident - before < 2 * sent + 64 * MIB
        assert await is_served(bob, BOB)
        assert (await register(alice, urls[0], ALICE)).code == 200, "a smaller one has room"
        # What a session that is over has left gives way to what its user registers now.
        assert (await held[0].control("close")).code == 200
        for url in urls[-3:]:
            assert (await register(alice, url, ALICE, x=value)).code == 200


async def test_the_records_of_a_runtime_whose_name_is_released_go_with_its_session(node, issuer):
    """Those of one that may come back are kept for a day, as disconnected."""
    async with sessions(node, issuer) as enter:
        bob = await enter("bob", BOB)
        for name, is_released in (("alice-1", True), ("alice-2", False)):
            alice = await enter(name, ALICE)
            (url,) = await alice.allocate()
            assert (await register(alice, url, ALICE)).code == 200
            if is_released:
                assert (await alice.control("release")).code == 202
            assert (await alice.control("close")).code == 200
            read = await bob.ask("read", f"{bob.runtime}/registry", DR, resource=url)
            assert read.code == (404 if is_released else 408)
        alice = await enter("alice-3", ALICE)
        assert (await alice.control("release", runtimeURL=name_of("alice-2"))).code == 200
        read = await bob.ask("read", f"{bob.runtime}/registry", DR, resource=url)
        assert read.code == 404


def name_of(runtime):
    return f"hyperty-runtime://{DOMAIN}/{runtime}"


async def away(enter, user, *names):
    """Open sessions and lose their links."""
    for name in names:
        peer = await enter(name, user)
        await peer.link.aclose()


async def leave_word(sender, names, each, size=60_000):
    """Send to runtimes that are away; return the reasons of those that were refused."""
    for name in names:
        for number in range(each):
            # A text of a message has at most 16,384 characters.
            value = [f"{number:<{size // 4}}"] * 4
            await sender.post("create", f"{sender.runtime}/ua", f"{name_of(name)}/ua", value=value)
    await sender.ask("unsubscribe", f"{sender.runtime}/sm", f"{sender.node}/sm", resources=[])
    refusals, sender.heard = sender.heard, []
    assert {one.code for one in refusals} <= {503}
    return [one.body["description"] for one in refusals]


async def test_what_waits_for_all_sessions_of_a_user_is_limited_and_others_are_served(node, issuer):
    names, each = [f"alice-{number}" for number in range(20)], 15
    async with sessions(node, issuer) as enter:
        carol = await enter("carol", BOB)
        await away(enter, BOB, "bob")
        await away(enter, ALICE, *names)
        before = node.resident
        refused = await leave_word(carol, names, each)
        room = USER_WAITING_BYTES // (2 * 60_200 + 1024)
        assert abs(len(names) * each - len(refused) - room) < 5
        limit = f"a user has at most {USER_WAITING_BYTES} bytes of messages that wait"
        assert all(why.startswith(limit) for why in refused)
        assert node.resident - before < 2 * USER_WAITING_BYTES
        assert await leave_word(carol, ["bob"], each) == []
        # What a session that is over has left gives way at once.
        again = await enter(names[0], ALICE)
        assert (await again.control("close")).code == 200
        await away(enter, ALICE, names[0])
        assert await leave_word(carol, names[:1], each) == []


async def flood(peer, asks):
    """Send searches as fast as the node takes them; return the reasons of refusals."""
    search = {"resource": f"/hyperty/user/{BOB}"}
    sent = [
        encode(Message(number, MessageType.READ, f"{peer.runtime}/registry", DR, search))
        for number in range(1000, 1000 + asks)
    ]
    refusals = []

    async def hear():
        for _ in range(asks):
            answer = await peer.hear()
            if answer.code != 200:
                refusals.append(answer.body["description"])

    async with trio.open_nursery() as nursery:
        nursery.start_soon(hear)
        for at in range(0, asks, FRAME_MESSAGES):
            await peer.raw(b"\n".join(sent[at : at + FRAME_MESSAGES]))
    return refusals


async def test_one_user_does_not_fill_the_mailbox_of_a_part_of_the_node(node, issuer):
    refusals, read, each = [], [], 500

    async with sessions(node, issuer) as enter:
        bob = await enter("bob", BOB)
        (url,) = await bob.allocate()
        assert (await register(bob, url, BOB)).code == 200
        alices = [await enter(f"alice-{number}", ALICE) for number in range(20)]

        async def attack(peer):
            refusals.extend(await flood(peer, each))

        async def use():
            while True:
                answer = await bob.ask("read", f"{bob.runtime}/registry", DR, resource=url)
                read.append(answer.code)

        async with trio.open_nursery() as users:
            users.start_soon(use)
            async with trio.open_nursery() as attackers:
                for peer in alices:
                    attackers.start_soon(attack, peer)
            users.cancel_scope.cancel()
    assert set(read) == {200}
    assert {*refusals} == {f"a user has at most {MAILBOX // 2} requests open at the node"}


async def test_when_a_node_is_full_the_user_gives_way_that_holds_most(tmp_path, issuer):
    names, each = [f"alice-{number}" for number in range(8)], 8
    with a_node(tmp_path, issuer, "--outbox-budget", "8MiB") as node:
        async with sessions(node, issuer) as enter:
            carol = await enter("carol", BOB)
            await away(enter, BOB, "bob")
            await away(enter, ALICE, *names)
            assert await leave_word(carol, ["bob"], each + 2) == []
            assert await leave_word(carol, names, each) != []
            back = await enter("bob", BOB)
            with trio.fail_after(60):
                heard = [await back.hear() for _ in range(each + 2)]
            numbers = [one.body["value"][0].strip() for one in heard]
            assert numbers == [*map(str, range(each + 2))]


async def test_addresses_are_counted_over_all_sessions_of_a_user_and_returned(node, issuer):
    async with sessions(node, issuer) as enter:
        bob = await enter("bob", BOB)
        held = []
        for number in range(USER_ADDRESSES // MAX_ADDRESSES + 1):
            peer = await enter(f"alice-{number}", ALICE)
            held.append(peer)
            answer = await fill(peer)
        assert answer.code == 413
        assert f"a user has at most {USER_ADDRESSES} addresses" in str(answer.body)
        assert await is_served(bob, BOB)
        # What ends gives its share back.
        assert (await held[0].control("close")).code == 200
        assert len(await held[-1].allocate(number=MAX_ALLOCATION)) == MAX_ALLOCATION


async def fill(peer):
    """Allocate addresses until that is refused; return the refusal."""
    while True:
        answer = await peer.ask(
            "create", f"{peer.runtime}/address-allocation", f"{peer.node}/address-allocation",
            scheme="hyperty", value={"number": MAX_ALLOCATION},
        )  # fmt: skip
        if answer.code != 200:
            return answer
