"""Frames on a data channel, without one."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specs.limits.protocol import MAX_FRAME_BYTES
from specs.limits.webrtc import CHANNEL_CREDIT, CHANNEL_MESSAGE, CHANNEL_WINDOW
from transports.errors import CloseReason
from transports.webrtc.memory import BadChannelError, ChannelCore, Frame, size_of

SIZES = (0, 1, CHANNEL_MESSAGE, CHANNEL_MESSAGE + 1, 2 * CHANNEL_MESSAGE, MAX_FRAME_BYTES)


def arrived(core: ChannelCore, frame: bytes) -> Frame:
    """Let a frame arrive, and return what its last message completes."""
    *earlier, last = [core.receive(part) for part in ChannelCore.parts(frame)]
    assert earlier == [None] * len(earlier)
    assert isinstance(last, tuple)
    return last


@pytest.mark.parametrize("size", SIZES)
def test_a_frame_of_any_size_arrives_whole(size):
    frame = b"x" * size
    parts = list(ChannelCore.parts(frame))

    assert arrived(ChannelCore(), frame) == (frame, sum(map(size_of, parts)))
    assert all(size_of(part) <= CHANNEL_MESSAGE for part in parts)


def test_a_small_frame_is_one_text_and_bytes_that_are_no_text_are_a_chunk():
    assert list(ChannelCore.parts("grüß".encode())) == ["grüß"]
    assert list(ChannelCore.parts(b"\xff")) == [b"\x01\xff"]


def test_a_sender_stops_at_the_window_and_goes_on_with_a_credit():
    sender, receiver = ChannelCore(), ChannelCore()
    sizes, credit = [], None
    frame = b"x" * CHANNEL_MESSAGE
    while sender.may_send(CHANNEL_MESSAGE):
        sender.count_sent(CHANNEL_MESSAGE)
        sizes.append(arrived(receiver, frame)[1])
    assert sum(sizes) == CHANNEL_WINDOW
    while credit is None:
        credit = receiver.acknowledge(sizes.pop())
    assert sender.receive(credit) is None

    assert sender.may_send(CHANNEL_CREDIT)
    assert not sender.may_send(CHANNEL_CREDIT + 1)


def test_many_chunks_are_no_way_around_the_window():
    """What an unread frame takes of the memory counts, not what its last chunk does."""
    receiver, whole = ChannelCore(), b"x" * (MAX_FRAME_BYTES - CHANNEL_MESSAGE)
    for _ in range(2):
        arrived(receiver, whole)
    with pytest.raises(BadChannelError):
        arrived(receiver, whole)


@pytest.mark.parametrize("last", [b"\x03\x00\x00", b"\x04"], ids=["farewell", "broken rule"])
def test_nothing_comes_after_the_end(last):
    """A peer could otherwise fill the memory with farewells, as these need no credit."""
    receiver = ChannelCore()
    with suppress(BadChannelError):
        receiver.receive(last)
    assert {receiver.receive(part) for part in (last, "text", b"\x01x")} == {None}


def test_a_farewell_tells_its_reason():
    farewell = ChannelCore.farewell(CloseReason.SLOW_CONSUMER)

    assert ChannelCore().receive(farewell) is CloseReason.SLOW_CONSUMER
    assert ChannelCore().receive(b"\x03\x00\x00") is CloseReason.DONE


@given(st.lists(st.one_of(st.text(max_size=40), st.binary(max_size=40)), max_size=20))
def test_anything_a_peer_sends_is_read_or_refused(parts):
    core = ChannelCore()
    with suppress(BadChannelError):
        for part in parts:
            core.receive(part)
