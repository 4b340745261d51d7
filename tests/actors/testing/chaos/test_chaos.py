"""What goes wrong in a network in chaos, one thing at a time, in virtual time."""

import pytest
import trio

from actors.testing.chaos.toxics import Latency, Loss, ResetPeer
from tests.actors.testing.chaos.chaos_scene import BETWEEN
from tests.support.runtime.links import drain
from transports.errors import LinkBrokenError


async def test_a_peer_outside_a_black_hole_gives_a_sign_of_life(scene, autojump_clock):
    await trio.sleep(1)
    scene.node.ping()

    assert scene.node.heard_at == trio.current_time()


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
