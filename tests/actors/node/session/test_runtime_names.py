"""A name of a runtime belongs to the user who opened it first, also over a restart (S6, MN-21)."""

from tests.support.node.node_peer import RA, RB, open_world


async def test_without_a_login_there_is_nothing_to_release(autojump_clock):
    async with open_world() as world:
        peer = await world.peer()
        assert (await peer.control("release")).code == 403
        stranger = await world.outsider(RB)
        assert (await stranger.control("release", runtimeURL=RA)).code == 401
