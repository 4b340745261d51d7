"""Frames on a data channel, without one."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specs.limits.protocol import MAX_FRAME_BYTES
from specs.limits.webrtc import (
    CHANNEL_CREDIT,
    CHANNEL_FRAMES,
    CHANNEL_MESSAGE,
    CHANNEL_WINDOW,
)
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


def test_the_largest_frame_always_fits_once_all_before_is_taken():
    """Else an end would wait for a credit that is never due."""
    sender, receiver = ChannelCore(), ChannelCore()
    for _ in range(50):
        for frame in (b"x" * (CHANNEL_CREDIT - 1), b"y" * MAX_FRAME_BYTES):
            for part in ChannelCore.parts(frame):
                assert sender.may_send(size_of(part))
                sender.count_sent(size_of(part))
                what = receiver.receive(part)
            assert isinstance(what, tuple)
            credit = receiver.acknowledge(what[1])
            if credit is not None:
                sender.receive(credit)


def test_a_peer_that_sends_more_than_it_may_is_refused():
    receiver = ChannelCore()
    for _ in range(CHANNEL_WINDOW // CHANNEL_MESSAGE):
        receiver.receive("x" * CHANNEL_MESSAGE)
    with pytest.raises(BadChannelError) as caught:
        receiver.receive("x")
    assert caught.value.reason is CloseReason.REFUSED


def test_many_chunks_are_no_way_around_the_window():
    """What an unread frame takes of the memory counts, not what its last chunk does."""
    receiver, whole = ChannelCore(), b"x" * (MAX_FRAME_BYTES - CHANNEL_MESSAGE)
    for _ in range(2):
        arrived(receiver, whole)
    with pytest.raises(BadChannelError):
        arrived(receiver, whole)


@pytest.mark.parametrize("part", ["", b"\x01", b"\x01x"], ids=["text", "empty", "byte"])
def test_tiny_frames_are_no_way_around_the_window(part):
    """One that has no bytes needs no credit, but memory."""
    receiver = ChannelCore()
    frames = [receiver.receive(part) for _ in range(CHANNEL_FRAMES)]
    with pytest.raises(BadChannelError):
        receiver.receive(part)

    honest = ChannelCore()
    for _ in frames:
        arrived(honest, b"")
        honest.acknowledge(0)
    assert arrived(honest, b"") == (b"", 0)


@pytest.mark.parametrize("last", [b"\x03\x00\x00", b"\x04"], ids=["farewell", "broken rule"])
def test_nothing_comes_after_the_end(last):
    """A peer could otherwise fill the memory with farewells, as these need no credit."""
    receiver = ChannelCore()
    with suppress(BadChannelError):
        receiver.receive(last)
    assert {receiver.receive(part) for part in (last, "text", b"\x01x")} == {None}


def test_a_frame_that_never_ends_is_refused_as_too_large():
    receiver = ChannelCore()
    chunk = b"\x00" + b"x" * (CHANNEL_MESSAGE - 1)
    for _ in range(MAX_FRAME_BYTES // CHANNEL_MESSAGE):
        receiver.receive(chunk)
    with pytest.raises(BadChannelError) as caught:
        receiver.receive(chunk)
    assert caught.value.reason is CloseReason.TOO_LARGE


@pytest.mark.parametrize(
    "part",
    [
        b"",
        b"\x04",
        b"\x02\x00\x00",
        b"\x02\xff\xff\xff\xff",
        b"\x03",
        b"\x01" + b"x" * CHANNEL_MESSAGE,
        "x" * (CHANNEL_MESSAGE + 1),
    ],
    ids=[
        "empty",
        "unknown",
        "short credit",
        "credit for nothing",
        "short farewell",
        "long",
        "text",
    ],
)
def test_what_is_none_of_ours_is_refused(part):
    with pytest.raises(BadChannelError):
        ChannelCore().receive(part)


def test_a_text_within_a_frame_is_refused():
    receiver = ChannelCore()
    receiver.receive(b"\x00begin")
    with pytest.raises(BadChannelError):
        receiver.receive("text")


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
