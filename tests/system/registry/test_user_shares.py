"""What one user makes a node remember is bounded in bytes, over all sessions of the user.

The node is a process, and the attacker a WebSocket that sends what it likes. A second user is
served all the time.
"""

import time
from contextlib import asynccontextmanager

import pytest
import trio

from specs.limits.node import USER_ADDRESSES, USER_RECORD_BYTES
from specs.limits.protocol import MAX_ADDRESSES, MAX_ALLOCATION
from tests.support.node.issuer import ALICE, BOB, Issuer, opened
from tests.support.node.node_peer import DOMAIN, DR, Peer
from tests.support.node.node_process import UNHURRIED, node_process
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
    keys = tmp_path / "keys.json"
    keys.write_bytes(issuer.jwks())
    options = ("--domain", DOMAIN, "--jwks", str(keys), "--issuer", ISSUER, *UNHURRIED)
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
        before, sent, refusal = node.resident, 0, None
        for number in range(8):
            alice = await enter(f"alice-{number}", ALICE)
            urls = []
            while len(urls) < 512 and refusal is None:
                urls += await alice.allocate(number=MAX_ALLOCATION)
            for url in urls:
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
