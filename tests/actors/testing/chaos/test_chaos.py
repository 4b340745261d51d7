"""What goes wrong in a network in chaos, one thing at a time, in virtual time."""

from random import Random

import pytest
import trio

from actors.testing.chaos.network import ChaosNetwork
from actors.testing.chaos.toxics import (
    Bandwidth,
    Corrupt,
    Delay,
    Duplicate,
    Latency,
    LimitData,
    Loss,
    ResetPeer,
    Slicer,
    SlowClose,
    Timeout,
)
from tests.actors.testing.chaos.chaos_scene import BETWEEN, arrivals, open_scene
from tests.support.runtime.links import drain, leaving_together
from transports.errors import CloseReason, LinkBrokenError
from transports.link import Kind
from transports.system import open_system_network


async def test_latency_delays_every_frame_alike_in_both_directions(scene, autojump_clock):
    with scene.chaos.toxic(Latency(0.5), BETWEEN):
        await scene.link.send_many([b"1", b"2"])
        await scene.node.send(b"3")

        assert await arrivals(scene.node, 2) == [0.5, 0.5]
        assert await arrivals(scene.link, 1) == [0.5]


async def test_a_later_frame_does_not_delay_a_frame_in_transit(scene, autojump_clock):
    with scene.chaos.toxic(Latency(0.5), BETWEEN):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(scene.link.send, b"1")

            @nursery.start_soon
            async def later():
                await trio.sleep(0.2)
                await scene.link.send(b"2")

            assert await arrivals(scene.node, 2) == [0.5, 0.7]


async def test_jitter_varies_the_latency_and_keeps_the_order(scene, autojump_clock):
    frames = [str(number).encode() for number in range(30)]
    with scene.chaos.toxic(Latency(0.5, jitter=0.4), BETWEEN):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(scene.link.send_many, frames)
            came = [(await scene.node.receive(), trio.current_time()) for _ in frames]

    assert [frame for frame, _ in came] == frames
    assert len({when for _, when in came}) > 1


async def test_a_one_way_toxic_affects_frames_towards_one_end(scene, autojump_clock):
    with scene.chaos.toxic(Latency(0.5), BETWEEN, towards="ra"):
        await scene.link.send(b"1")
        await scene.node.send(b"2")

        assert await arrivals(scene.node, 1) == [0.0]
        assert await arrivals(scene.link, 1) == [0.5]


async def test_bandwidth_makes_a_frame_take_its_time_and_the_next_wait(scene, autojump_clock):
    with scene.chaos.toxic(Bandwidth(100), BETWEEN):
        await scene.link.send_many([b"x" * 50, b"x" * 100])

        assert await arrivals(scene.node, 2) == [0.5, 1.5]


async def test_a_sliced_frame_comes_when_its_last_slice_does(scene, autojump_clock):
    with scene.chaos.toxic(Slicer(10, 0.1), BETWEEN):
        await scene.link.send_many([b"x" * 10, b"x" * 35])

        assert await arrivals(scene.node, 2) == [0.0, 0.3]


async def test_a_slow_close_is_heard_of_late_and_with_its_reason(scene, autojump_clock):
    with scene.chaos.toxic(SlowClose(3), BETWEEN):
        await scene.link.send(b"last")
        await scene.link.aclose(CloseReason.GOING_AWAY)
        assert await scene.node.receive() == b"last"
        began = trio.current_time()
        with pytest.raises(LinkBrokenError) as caught:
            await scene.node.receive()

    assert caught.value.close_reason is CloseReason.GOING_AWAY
    assert trio.current_time() - began == 3


async def test_a_black_hole_gives_no_sign_and_resets_the_link_after_its_time(scene, autojump_clock):
    with scene.chaos.toxic(Timeout(40), BETWEEN):
        await scene.link.send(b"lost")
        began = trio.current_time()
        with pytest.raises(LinkBrokenError, match="reset"):
            await scene.node.receive()

    assert trio.current_time() - began == 40


async def test_a_black_hole_that_ends_has_lost_what_it_swallowed_and_the_link(
    scene, autojump_clock
):
    with scene.chaos.toxic(Timeout(), BETWEEN):
        await scene.link.send(b"lost")
        with trio.move_on_after(1000) as patience:
            await scene.node.receive()
    assert patience.cancelled_caught

    for end in (scene.link, scene.node):
        with pytest.raises(LinkBrokenError, match="reset"):
            await end.receive()


async def test_a_peer_in_a_black_hole_gives_no_sign_of_life(scene, autojump_clock):
    scene.node.heard_at = before = trio.current_time()
    await trio.sleep(1)
    with scene.chaos.toxic(Timeout(), BETWEEN, towards="node"):
        scene.node.ping()
        assert scene.node.heard_at == before
    assert scene.chaos.links == ()


async def test_a_peer_outside_a_black_hole_gives_a_sign_of_life(scene, autojump_clock):
    await trio.sleep(1)
    scene.node.ping()

    assert scene.node.heard_at == trio.current_time()


async def test_limited_data_is_carried_and_what_is_more_breaks_the_link(scene, autojump_clock):
    with scene.chaos.toxic(LimitData(10), BETWEEN):
        await scene.link.send_many([b"x" * 6, b"x" * 4, b"x"])

        assert len(await drain(scene.node)) == 2
        with pytest.raises(LinkBrokenError):
            await scene.link.receive()


async def test_a_peer_that_resets_does_so_to_links_old_and_new(scene, autojump_clock):
    with scene.chaos.toxic(ResetPeer(2), BETWEEN):
        began = trio.current_time()
        with pytest.raises(LinkBrokenError, match="reset"):
            await scene.link.receive()
        again = await scene.dial("ra")
        with pytest.raises(LinkBrokenError, match="reset"):
            await again.acceptor.receive()

    assert trio.current_time() - began == 4


async def test_a_lost_frame_takes_the_link_and_all_behind_it_along(scene, autojump_clock):
    """OBS-04."""
    with scene.chaos.toxic(Loss(0.1), BETWEEN):
        frames = [str(number).encode() for number in range(100)]
        async with trio.open_nursery() as nursery:

            @nursery.start_soon
            async def send():
                with pytest.raises(LinkBrokenError):
                    await scene.link.send_many(frames)

            came = await drain(scene.node)

    assert 0 < len(came) < 50
    assert came == frames[: len(came)]


async def test_a_doubled_frame_comes_twice_in_its_place(scene, autojump_clock):
    with scene.chaos.toxic(Duplicate(0.5), BETWEEN):
        await scene.link.send_many([b"1", b"2", b"3", b"4"])
        await scene.link.aclose()

        came = await drain(scene.node)

    assert sorted(set(came)) == [b"1", b"2", b"3", b"4"]
    assert came == sorted(came)
    assert len(came) > 4


async def test_a_corrupt_frame_has_one_other_byte(scene, autojump_clock):
    with scene.chaos.toxic(Corrupt(0.5), BETWEEN):
        await scene.link.send_many([b"abc"] * 12)
        await scene.link.aclose()

        came = await drain(scene.node)

    spoilt = [frame for frame in came if frame != b"abc"]
    assert 0 < len(spoilt) < len(came) == 12
    assert set(spoilt) <= {b"\0bc", b"a\0c", b"ab\0"}


async def test_a_delayed_frame_holds_up_those_behind_it(scene, autojump_clock):
    with scene.chaos.toxic(Delay(0.1, 1.0), BETWEEN):
        await scene.link.send_many([b"x"] * 12)
        came = await arrivals(scene.node, 12)

    assert came[0] == 0.0
    assert came == sorted(came)
    assert set(came) == {0.0, 1.0}


async def test_two_things_may_be_wrong_at_once(scene, autojump_clock):
    with (
        scene.chaos.toxic(Latency(0.5), BETWEEN),
        scene.chaos.toxic(Bandwidth(100), BETWEEN),
    ):
        await scene.link.send_many([b"x" * 100, b"x" * 100])

        assert await arrivals(scene.node, 2) == [1.5, 2.5]


async def test_trouble_that_has_ended_is_over(scene, autojump_clock):
    trouble = scene.chaos.toxic(Latency(0.5), BETWEEN)
    trouble.end()
    trouble.end()
    await scene.link.send(b"1")

    assert await arrivals(scene.node, 1) == [0.0]


async def test_trouble_between_others_is_no_concern_of_theirs(scene, autojump_clock):
    with (
        scene.chaos.toxic(Latency(0.5), ("rb", "node")),
        scene.chaos.partition({"ra"}, {"rb"}),
    ):
        await scene.link.send(b"1")

        assert await arrivals(scene.node, 1) == [0.0]


async def test_the_same_seed_is_the_same_trouble(autojump_clock):
    async def fates() -> list[float]:
        async with open_scene() as scene:
            with scene.chaos.toxic(Latency(0.5, jitter=0.4), BETWEEN):
                await scene.link.send_many([b"x"] * 10)
                return await arrivals(scene.node, 10)

    assert await fates() == await fates()


async def test_a_link_knows_of_its_peer_what_the_one_below_does():
    async with open_system_network() as network:
        chaos = ChaosNetwork(network, Random(1))  # noqa: S311 - chance, no secret
        async with chaos.end("node").listen(Kind.STREAM, "127.0.0.1:0") as listener:
            dialled = await chaos.end("ra").dial(Kind.STREAM, listener.address)
            async with leaving_together(dialled, await listener.accept()):
                assert dialled.host == "127.0.0.1"
                assert dialled.unread() == 0


@pytest.mark.parametrize(
    ("name", "words"),
    [("nod", "did you mean 'node'"), ("b.example", "there are: node, ra, rb, rc")],
)
async def test_a_fault_between_parties_that_are_not_there_is_refused(scene, name, words):
    """It would never show, and a test with it would prove nothing."""
    for begin in (
        lambda: scene.chaos.toxic(Latency(1), ("ra", name)),
        lambda: scene.chaos.partition({"ra"}, {name}),
        lambda: scene.chaos.reset("ra", name),
    ):
        with pytest.raises(ValueError, match=words):
            begin()
    with pytest.raises(ValueError, match="towards"):
        scene.chaos.toxic(Latency(1), ("ra", "node"), towards="rb")


@pytest.mark.parametrize("between", ["ra", ("ra",), ("ra", None), ("ra", "node", "rb"), ["ra", 1]])
async def test_a_fault_is_between_a_pair_of_names(scene, between):
    with pytest.raises(TypeError, match="between is a pair of names"):
        scene.chaos.toxic(Latency(1), between)
