"""What every transport keeps."""

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from specs.limits.protocol import MAX_FRAME_BYTES
from tests.support.garbage import collected
from tests.support.runtime.links import CHANNELS, PLACES, drain, open_place
from transports.errors import LinkClosedError
from transports.link import Link


@pytest.fixture(params=[*PLACES, *CHANNELS])
def where(request):
    return request.param


@pytest.fixture
async def place(where, tmp_path):
    with collected():
        async with open_place(where, tmp_path) as place:
            yield place


@pytest.fixture
def hasty_clock(where, hasty_clock):
    """The channels of the system have a process of their own, which takes real time."""
    return None if where == "system-webrtc" else hasty_clock


LARGEST = b"x" * MAX_FRAME_BYTES


async def flood(link: Link) -> None:
    """Send for ever."""
    while True:
        await link.send(LARGEST)


async def test_after_closing_every_call_says_that_we_did(ends):
    link, _ = ends
    await trio.aclose_forcefully(link)

    with pytest.raises(LinkClosedError):
        await link.receive()
    with pytest.raises(LinkClosedError):
        await link.send(b"late")


async def test_closing_while_receiving_ends_the_receiver(ends):
    link, other = ends
    async with trio.open_nursery() as nursery:
        nursery.start_soon(drain, other)

        async def receive():
            with pytest.raises(LinkClosedError):
                await link.receive()

        nursery.start_soon(receive)
        await wait_all_tasks_blocked()
        await link.aclose()


async def test_two_senders_at_once_are_our_bug(ends):
    sender, _ = ends
    async with trio.open_nursery() as nursery:
        nursery.start_soon(flood, sender)
        await wait_all_tasks_blocked(0.1)
        with pytest.raises(trio.BusyResourceError):
            await sender.send(b"second")
        nursery.cancel_scope.cancel()
