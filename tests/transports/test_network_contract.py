"""What every network keeps: dialling, listening, accepting."""

import pytest
import trio

from specs.limits.protocol import DIAL_TIMEOUT
from tests.support.runtime.links import Place, drain, leaving_together, open_pair
from transports.errors import DialError, LinkClosedError, ListenError
from transports.link import Kind, Link


async def test_a_link_outlives_its_listener(place):
    async with place.network.listen(place.kind, place.where) as listener:
        dialler = await place.network.dial(place.kind, place.dialled(listener.address))
        acceptor = await listener.accept()
    async with leaving_together(dialler, acceptor):
        await dialler.send(b"still here")

        assert await acceptor.receive() == b"still here"


async def test_dialling_without_a_listener_is_refused_in_time(place):
    async with place.network.listen(place.kind, place.where) as listener:
        address = place.dialled(listener.address)

    with trio.fail_after(DIAL_TIMEOUT + 1), pytest.raises(DialError, match="cannot connect"):
        await place.network.dial(place.kind, address)


@pytest.mark.parametrize("address", ["", "nonsense", "http://127.0.0.1:1/", "127.0.0.1:99999"])
async def test_an_invalid_address_cannot_be_dialled(place, address):
    with pytest.raises(DialError):
        await place.network.dial(place.kind, address)


async def test_a_place_is_listened_on_once(place):
    async with place.network.listen(place.kind, place.where) as listener:
        where = listener.address.removeprefix("wss://").removeprefix("ws://")
        with pytest.raises(ListenError):
            async with place.network.listen(place.kind, where):
                pass


async def test_a_place_that_was_left_can_be_taken_again(place):
    async with place.network.listen(place.kind, place.where) as listener:
        where = listener.address.removeprefix("wss://").removeprefix("ws://")

    async with place.network.listen(place.kind, where) as listener:
        assert listener.address.endswith(where)


async def test_accepting_ends_with_the_listener(place):
    async with place.network.listen(place.kind, place.where) as listener:
        pass

    with pytest.raises(LinkClosedError):
        await listener.accept()


async def test_an_error_in_the_listening_block_comes_out_as_itself(place):
    with pytest.raises(ZeroDivisionError):
        async with place.network.listen(place.kind, place.where):
            raise ZeroDivisionError


async def echo(place: Place, listening: str, name: bytes) -> bytes:
    async with await place.network.dial(place.kind, place.dialled(listening)) as link:
        await link.send(name)
        return await link.receive()


async def test_many_diallers_are_served(place):
    answers: list[bytes] = []

    async def ask(listening: str, name: bytes) -> None:
        answers.append(await echo(place, listening, name))

    async def answer(link: Link) -> None:
        await link.send(await link.receive())
        await drain(link)

    async with (
        place.network.listen(place.kind, place.where) as listener,
        trio.open_nursery() as nursery,
    ):
        for number in range(50):
            nursery.start_soon(ask, listener.address, str(number).encode())
        for _ in range(50):
            nursery.start_soon(answer, await listener.accept())
    assert sorted(map(int, answers)) == list(range(50))


async def test_a_cancelled_accept_loses_no_link(place):
    async with place.network.listen(place.kind, place.where) as listener:
        with trio.CancelScope() as scope:
            scope.cancel()
            await listener.accept()
        dialler = await place.network.dial(place.kind, place.dialled(listener.address))
        acceptor = await listener.accept()
        async with leaving_together(dialler, acceptor):
            await dialler.send(b"hello")

            assert await acceptor.receive() == b"hello"


async def test_pairs_do_not_share_frames(place):
    async with open_pair(place) as one:
        other = beside(place)
        async with open_pair(other) as two:
            await one.dialler.send(b"one")
            await two.dialler.send(b"two")

            assert await two.acceptor.receive() == b"two"
            assert await one.acceptor.receive() == b"one"


def beside(place: Place) -> Place:
    """Return another place on the same network."""
    where = place.where + "2" if place.kind is Kind.UNIX else place.where
    return Place(place.network, place.kind, where)
