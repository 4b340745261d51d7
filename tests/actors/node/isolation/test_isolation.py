"""One part that breaks does not take the node with it."""

import pytest

from actors.node.links.acceptor import LinkAcceptor
from tests.support.node.node_peer import RA, RB, open_world
from transports.errors import LinkBrokenError


async def test_a_crashing_connection_affects_no_other_connection(autojump_clock, monkeypatch):
    read = LinkAcceptor.read
    monkeypatch.setattr(LinkAcceptor, "read", lambda door, f: 1 / 0 if f == b"!" else read(door, f))
    async with open_world() as world:
        ra, rb = await world.peer(RA), await world.peer(RB)

        await ra.raw(b"!")

        with pytest.raises(LinkBrokenError):
            await ra.hear()
        assert await world.states() == {RA: "detached", RB: "open"}
        assert (await rb.control("ping")).code == 200
