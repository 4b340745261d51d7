"""A peer that is gone without a word is found within 30 seconds (RELIABILITY R8).

Peers that hang up at once leave a few at a time.
"""

from urllib.parse import quote

import pytest
import trio

from specs.limits.protocol import PING_PERIOD, PONG_TIMEOUT
from specs.reply_code import LinkEnd
from tests.actors.node.session.toxic_proxy import open_proxy
from tests.support.node.legacy_peer import OLD, OLD_INSIDE, LegacyPeer, plain_peer, session_peer
from tests.support.node.node_peer import RA, Peer, open_world
from transports.link import Kind
from transports.system import open_system_network

FOUND = PING_PERIOD + PONG_TIMEOUT
FORMS = ("link", "plain", "session")


async def connect(world, form, place):
    """Open a session in one of the wire forms at a place before the node."""
    if form == "link":
        link = await world.network.dial(Kind.WEBSOCKET, f"{place}/link")
        world.links.append(link)
        await Peer(link, OLD_INSIDE).open()
        return link
    path = f"/stub/connect?runtimeURL={quote(OLD, '')}" if form == "plain" else "/ws"
    link = await world.network.dial(Kind.WEBSOCKET, place + path, None)
    world.links.append(link)
    if form == "session":
        await LegacyPeer(link).open()
    while await world.states() != {OLD_INSIDE: "open"}:  # noqa: ASYNC110 - as one would look
        await trio.sleep(0.05)
    return link


async def until(world, state):
    while await world.states() != {OLD_INSIDE: state}:  # noqa: ASYNC110 - likewise
        await trio.sleep(1)


async def read_on(link):
    while True:
        await link.receive()


@pytest.mark.parametrize("form", FORMS)
async def test_a_black_hole_is_found_in_every_wire_form(hasty_clock, form):
    async with (
        open_system_network() as network,
        open_world(network, allow_legacy=True) as world,
        open_proxy(world.node.url) as proxy,
    ):
        await connect(world, form, f"ws://127.0.0.1:{proxy.port}")
        proxy.timeout()

        with trio.fail_after(FOUND + 2):
            await until(world, "detached")
            while not world.ended():  # noqa: ASYNC110 - the link goes after its session
                await trio.sleep(0.1)
        assert world.ended() == {LinkEnd.SILENT: 1}


@pytest.mark.parametrize("form", ["plain", "session"])
async def test_an_old_stub_that_only_listens_stays(hasty_clock, form):
    async with (
        open_system_network() as network,
        open_world(network, allow_legacy=True) as world,
        trio.open_nursery() as nursery,
    ):
        link = await connect(world, form, world.node.url.removesuffix("/link"))
        nursery.start_soon(read_on, link)
        await trio.sleep(3 * FOUND)

        assert await world.states() == {OLD_INSIDE: "open"}
        nursery.cancel_scope.cancel()


def lost(_number, _frame):
    return ()


async def own_peer(world):
    return await world.peer(OLD_INSIDE)


@pytest.mark.parametrize("make", [own_peer, plain_peer, session_peer])
async def test_silence_of_a_stub_is_found_in_30_seconds_sharp(autojump_clock, make):
    async with open_world(allow_legacy=True) as world:
        await make(world)
        wire = world.network.wires[-1]
        wire.dialler.pattern = lost
        await trio.sleep(FOUND - 0.1)
        assert await world.states() == {OLD_INSIDE: "open"}

        await trio.sleep(0.2)
        assert await world.states() == {OLD_INSIDE: "detached"}


async def test_an_old_stub_is_found_although_a_write_to_it_is_stuck(autojump_clock):
    async with open_world(allow_legacy=True) as world:
        await plain_peer(world)
        world.network.wires[-1].dialler.pattern = lost
        ra = await world.peer(RA)
        await trio.sleep(FOUND - 2)
        for _ in range(50):
            await ra.post("create", f"{RA}/ua", f"{OLD_INSIDE}/ua", value=1)
        await trio.sleep(2.1)

        assert (await world.states())[OLD_INSIDE] == "detached"
