"""Raw byte streams: all bytes, in order, cut anywhere; no word at the end (T16, PFY-01)."""

import socket

import pytest

from specs.limits.protocol import MAX_FRAME_BYTES
from tests.support.runtime.links import open_pair, open_place
from transports.errors import (
    FrameTooLargeError,
)
from transports.link import FRAMED, Kind
from transports.system import open_system_network
from transports.urls import read_endpoint


@pytest.fixture(params=["memory-stream", "system-stream"])
async def pair(request, tmp_path):
    async with open_place(request.param, tmp_path) as place, open_pair(place) as pair:
        yield pair


@pytest.fixture(params=["dialler", "acceptor"])
def ends(request, pair):
    return pair.ends(request.param)


@pytest.fixture
async def plain():
    """A link that was dialled, and the plain socket at its other end."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        place = f"127.0.0.1:{server.getsockname()[1]}"
        async with open_system_network() as network:
            link = await network.dial(Kind.STREAM, place)
            accepted, _ = server.accept()
            with accepted:
                yield link, accepted
                accepted.close()
                await link.aclose()


async def test_more_than_a_frame_at_once_is_refused(ends):
    sender, _ = ends
    with pytest.raises(FrameTooLargeError):
        await sender.send(b"x" * (MAX_FRAME_BYTES + 1))


def test_a_stream_is_no_kind_of_framed_link_and_a_data_channel_is_not_dialled():
    assert set(Kind) - set(FRAMED) == {Kind.STREAM, Kind.WEBRTC}


@pytest.mark.parametrize(
    "text",
    ["", "h:1", "unix:///run/x", "wss://", "tcp://h", "stream://h:x", "tcp://:1", "ws://"],
)
def test_an_invalid_endpoint_is_refused(text):
    with pytest.raises(ValueError, match="it "):
        read_endpoint(text)
