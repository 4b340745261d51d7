"""What every transport keeps."""

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from specs.limits.protocol import GOODBYE_TIMEOUT, MAX_FRAME_BYTES
from tests.support.garbage import collected
from tests.support.runtime.links import CHANNELS, PLACES, drain, open_place
from transports.errors import CloseReason, FrameTooLargeError, LinkBrokenError, LinkClosedError
from transports.link import Kind, Link


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


GOODBYE_PATIENCE = 20 * GOODBYE_TIMEOUT


FRAMES = {Kind.WEBRTC: 10}
"""Large frames that are more than a link keeps: where 100 take seconds, fewer are."""

LARGEST = b"x" * MAX_FRAME_BYTES
TOO_LARGE = b"x" * (MAX_FRAME_BYTES + 1)


async def flood(link: Link) -> None:
    """Send for ever."""
    while True:
        await link.send(LARGEST)


async def test_frames_come_in_order_and_once(ends):
    sender, receiver = ends
    frames = [str(number).encode() for number in range(10)]
    async with trio.open_nursery() as nursery:
        await sender.send_many(frames)
        nursery.start_soon(sender.aclose)

        assert await drain(receiver) == frames


async def test_both_ends_send_at_once(pair):
    await pair.dialler.send(b"there")
    await pair.acceptor.send(b"back")

    assert await pair.acceptor.receive() == b"there"
    assert await pair.dialler.receive() == b"back"


async def test_a_frame_may_be_empty_or_not_ascii(ends):
    sender, receiver = ends
    await sender.send_many([b"", "gr\u00fc\u00df \U0001f44b".encode()])

    assert await receiver.receive() == b""
    assert await receiver.receive() == "gr\u00fc\u00df \U0001f44b".encode()


async def test_frames_that_have_arrived_can_be_taken_without_waiting(ends):
    """A kind may leave it to `receive`; none loses a frame, or changes the order."""
    sender, receiver = ends
    sent = [b"%d" % number for number in range(10)]
    await sender.send_many(sent)

    got = []
    while len(got) < len(sent):
        got.append(await receiver.receive())
        while (frame := receiver.arrived()) is not None:
            got.append(frame)
    assert got == sent
    await trio.aclose_forcefully(receiver)
    assert receiver.arrived() is None


async def test_the_largest_frame_arrives(ends):
    sender, receiver = ends
    async with trio.open_nursery() as nursery:
        nursery.start_soon(sender.send, LARGEST)

        assert await receiver.receive() == LARGEST


async def test_a_frame_over_the_limit_is_refused_and_the_link_stays_open(ends):
    sender, receiver = ends
    with pytest.raises(FrameTooLargeError):
        await sender.send_many([b"unsent", TOO_LARGE])
    await sender.send(b"next")

    assert await receiver.receive() == b"next"


async def test_both_ends_know_the_requested_address(pair):
    assert pair.dialler.upgrade == pair.acceptor.upgrade
    assert pair.dialler.name != pair.acceptor.name


async def test_the_orderly_end_comes_after_the_last_frame(ends):
    leaver, other = ends
    async with trio.open_nursery() as nursery:
        await leaver.send(b"last words")
        nursery.start_soon(leaver.aclose, CloseReason.SLOW_CONSUMER)

        assert await other.receive() == b"last words"
        with pytest.raises(LinkBrokenError) as caught:
            await other.receive()
        await other.aclose()
    assert caught.value.close_reason is CloseReason.SLOW_CONSUMER


async def test_an_end_that_leaves_gets_what_is_under_way(pair):
    if pair.acceptor.kind is Kind.WEBRTC:
        pytest.skip("a data channel cannot end one direction alone")
    leaver, other = pair.acceptor, pair.dialler
    await other.send(b"under way")
    await leaver.say_goodbye(CloseReason.GOING_AWAY)
    await leaver.say_goodbye(CloseReason.DONE)
    with pytest.raises(LinkBrokenError) as caught:
        await other.receive()
    assert caught.value.close_reason is CloseReason.GOING_AWAY
    async with trio.open_nursery() as nursery:
        nursery.start_soon(other.aclose)

        assert await leaver.receive() == b"under way"
        with pytest.raises(LinkBrokenError):
            await leaver.receive()


async def test_a_vanished_end_closes_without_a_close_reason(ends):
    leaver, other = ends
    await trio.aclose_forcefully(leaver)

    with pytest.raises(LinkBrokenError) as caught:
        await other.receive()
    assert caught.value.close_reason is None


async def test_sending_to_an_end_that_left_breaks_in_the_end(ends):
    leaver, other = ends
    await trio.aclose_forcefully(leaver)

    with pytest.raises(LinkBrokenError):
        await flood(other)


async def test_after_closing_every_call_says_that_we_did(ends):
    link, _ = ends
    await trio.aclose_forcefully(link)

    with pytest.raises(LinkClosedError):
        await link.receive()
    with pytest.raises(LinkClosedError):
        await link.send(b"late")


async def test_closing_twice_is_once(ends):
    link, other = ends
    async with trio.open_nursery() as nursery:
        nursery.start_soon(drain, other)
        await link.aclose()
        await link.aclose(CloseReason.GOING_AWAY)


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


async def test_closing_while_sending_ends_the_sender_in_time(ends, hasty_clock):
    link, _ = ends

    has_ended = trio.Event()

    async def send():
        with pytest.raises(LinkClosedError):
            await flood(link)
        has_ended.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(send)
        await wait_all_tasks_blocked(0.1)
        with trio.fail_after(GOODBYE_PATIENCE):
            await link.aclose()
            await has_ended.wait()


async def test_closing_takes_bounded_time_when_the_peer_is_deaf(ends, hasty_clock):
    link, _ = ends
    with trio.fail_after(GOODBYE_PATIENCE):
        await link.aclose()


async def test_a_cancelled_receive_loses_no_frame(ends):
    sender, receiver = ends
    for number in range(10):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(sender.send, str(number).encode())
            with trio.CancelScope() as scope:
                scope.cancel()
                await receiver.receive()

    assert [await receiver.receive() for _ in range(10)] == [
        str(number).encode() for number in range(10)
    ]


async def test_a_sender_waits_while_the_peer_does_not_read(ends):
    sender, _ = ends
    async with trio.open_nursery() as nursery:
        nursery.start_soon(flood, sender)
        await wait_all_tasks_blocked(0.1)
        nursery.cancel_scope.cancel()


async def test_waiting_frames_arrive_when_the_peer_reads_again(ends):
    sender, receiver = ends
    count = FRAMES.get(sender.kind, 100)
    sent = [LARGEST[:-3] + b"%03d" % number for number in range(count)]

    async def send():
        await sender.send_many(sent)
        await sender.aclose()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(send)
        await wait_all_tasks_blocked(0.1)

        assert await drain(receiver) == sent


async def test_two_senders_at_once_are_our_bug(ends):
    sender, _ = ends
    async with trio.open_nursery() as nursery:
        nursery.start_soon(flood, sender)
        await wait_all_tasks_blocked(0.1)
        with pytest.raises(trio.BusyResourceError):
            await sender.send(b"second")
        nursery.cancel_scope.cancel()


async def test_two_receivers_at_once_are_our_bug(ends):
    _, receiver = ends
    async with trio.open_nursery() as nursery:
        nursery.start_soon(receiver.receive)
        await wait_all_tasks_blocked()
        with pytest.raises(trio.BusyResourceError):
            await receiver.receive()
        nursery.cancel_scope.cancel()
