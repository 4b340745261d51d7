from random import Random

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from actors.testing.chaos.network import ChaosNetwork
from tests.support.runtime.links import Place, open_pair
from transports.errors import LinkBrokenError, LinkClosedError


@pytest.fixture
def chaos(place):
    return ChaosNetwork(place.network, Random(1))  # noqa: S311 - chance, no secret


@pytest.fixture
async def pair(place, chaos):
    async with open_pair(Place(chaos.end("one"), place.kind, place.where)) as pair:
        yield pair


async def test_a_link_that_is_not_reset_is_the_link_itself(pair):
    await pair.dialler.send(b"hello")

    assert await pair.acceptor.receive() == b"hello"


async def test_both_users_of_a_reset_link_see_a_break(chaos, pair):
    assert chaos.reset("one", "one") == 1

    for link in (pair.dialler, pair.acceptor):
        with pytest.raises(LinkBrokenError) as caught:
            await link.receive()
        assert caught.value.close_reason is None
    with pytest.raises(LinkBrokenError):
        await pair.dialler.send(b"more")


async def test_a_reset_ends_a_user_who_waits(chaos, pair):
    async def wait():
        with pytest.raises(LinkBrokenError):
            await pair.acceptor.receive()

    with trio.fail_after(20):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait)
            await wait_all_tasks_blocked()
            chaos.reset("one", "one")


async def test_a_link_that_one_party_alone_is_in_breaks_at_both_ends(place):
    """The other party is on another network, such as one in another process."""
    chaos = ChaosNetwork(place.network, Random(1))  # noqa: S311 - chance, no secret
    async with place.network.listen(place.kind, place.where) as listener:
        dialler = await chaos.end("one").dial(place.kind, place.dialled(listener.address))
        acceptor = await listener.accept()
        with trio.fail_after(20):
            async with trio.open_nursery() as nursery:

                @nursery.start_soon
                async def receives():
                    with pytest.raises(LinkBrokenError):
                        await dialler.receive()

                await wait_all_tasks_blocked()
                assert chaos.reset("one", None) == 1
            with pytest.raises(LinkBrokenError):
                await acceptor.receive()
        await trio.aclose_forcefully(dialler)
        await trio.aclose_forcefully(acceptor)


async def test_links_to_reset_are_chosen(chaos, pair):
    chaos.end("other")
    assert chaos.reset("one", "other") == chaos.reset("one", None) == 0
    assert chaos.reset("one", "one", chaos.links) == 0


async def test_a_closed_link_is_forgotten(chaos, pair):
    await trio.aclose_forcefully(pair.dialler)
    await trio.aclose_forcefully(pair.acceptor)

    assert chaos.links == ()
    with pytest.raises(LinkClosedError):
        await pair.dialler.receive()
