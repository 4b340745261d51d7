import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from tests.support.runtime.links import Place, open_pair
from transports.chaos.cuttable import CuttableNetwork
from transports.errors import LinkBrokenError, LinkClosedError
from transports.link import Kind


@pytest.fixture
def cuttable(place):
    return CuttableNetwork(place.network)


@pytest.fixture
async def pair(place, cuttable):
    async with open_pair(Place(cuttable, place.kind, place.where)) as pair:
        yield pair


async def test_an_uncut_link_behaves_like_the_link_itself(pair):
    await pair.dialler.send(b"hello")

    assert await pair.acceptor.receive() == b"hello"


async def test_both_users_of_a_cut_link_see_a_break(cuttable, pair):
    assert await cuttable.cut(lambda link: link is pair.dialler) == 1

    for link in (pair.dialler, pair.acceptor):
        with pytest.raises(LinkBrokenError) as caught:
            await link.receive()
        assert caught.value.close_reason is None
    with pytest.raises(LinkBrokenError):
        await pair.dialler.send(b"more")


async def test_a_cut_ends_a_waiting_user(cuttable, pair):
    async def wait():
        with pytest.raises(LinkBrokenError):
            await pair.acceptor.receive()

    with trio.fail_after(2):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait)
            await wait_all_tasks_blocked()
            await cuttable.cut(lambda link: link is pair.acceptor)


async def test_links_to_cut_are_chosen(cuttable, pair):
    other = Kind.TCP if pair.dialler.kind is not Kind.TCP else Kind.UNIX

    assert await cuttable.cut(lambda link: link.kind is other) == 0


async def test_a_closed_link_is_forgotten(cuttable, pair):
    await trio.aclose_forcefully(pair.dialler)
    await trio.aclose_forcefully(pair.acceptor)

    assert cuttable.links == []
    with pytest.raises(LinkClosedError):
        await pair.dialler.receive()
