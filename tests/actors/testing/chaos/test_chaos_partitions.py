"""Parties of a network in chaos that are parted, or whose links are reset, in virtual time."""

from random import Random

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from actors.testing.chaos.network import ChaosNetwork
from actors.testing.chaos.toxics import Latency
from specs.limits.protocol import DIAL_TIMEOUT
from tests.actors.testing.chaos.chaos_scene import BETWEEN, arrivals
from tests.support.runtime.links import leaving_together
from transports.errors import DialError, LinkBrokenError
from transports.link import Kind
from transports.memory import MemoryNetwork

# --- partitions and resets -----------------------------------------------------------------------


async def test_a_partition_holds_up_and_loses_nothing(scene, autojump_clock):
    with scene.chaos.partition({"ra"}, {"node"}):
        await scene.link.send(b"1")
        await scene.node.send(b"2")
        with trio.move_on_after(100) as patience:
            await scene.node.receive()
        assert patience.cancelled_caught

    assert (await scene.node.receive(), await scene.link.receive()) == (b"1", b"2")


async def test_a_waiting_frame_is_delivered_when_a_partition_heals(scene, autojump_clock):
    trouble = scene.chaos.partition({"ra"}, {"node"})
    await scene.link.send(b"1")
    with trio.fail_after(5):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(arrivals, scene.node, 1)
            await wait_all_tasks_blocked()
            trouble.end()


async def test_a_partition_hides_that_the_other_end_has_left(scene, autojump_clock):
    with scene.chaos.partition({"ra"}, {"node"}):
        await scene.link.aclose()
        with trio.move_on_after(100) as patience:
            await scene.node.receive()
    assert patience.cancelled_caught

    with pytest.raises(LinkBrokenError):
        await scene.node.receive()


async def test_dials_across_a_partition_get_no_answer(scene, autojump_clock):
    began = trio.current_time()
    with scene.chaos.partition({"rb"}, {"node"}):
        with pytest.raises(DialError, match="no answer"):
            await scene.dial("rb")
        assert trio.current_time() - began == DIAL_TIMEOUT
        again = await scene.dial("ra")

    async with leaving_together(again.dialler, again.acceptor):
        await again.dialler.send(b"1")
        assert await again.acceptor.receive() == b"1"


async def test_a_dial_is_answered_when_the_partition_heals_in_time(scene, autojump_clock):
    trouble = scene.chaos.partition({"rb"}, {"node"})
    async with trio.open_nursery() as nursery:

        @nursery.start_soon
        async def heal():
            await trio.sleep(DIAL_TIMEOUT / 2)
            trouble.end()

        again = await scene.dial("rb")
    await trio.aclose_forcefully(again.dialler)
    await trio.aclose_forcefully(again.acceptor)


async def test_a_reset_breaks_both_ends_and_loses_frames_in_transit(scene, autojump_clock):
    with scene.chaos.toxic(Latency(1), BETWEEN):
        await scene.link.send(b"lost")
        with trio.move_on_after(0.5):
            await scene.node.receive()

        assert scene.chaos.reset("ra", "node") == 1
        for end in (scene.link, scene.node):
            with pytest.raises(LinkBrokenError, match="reset") as caught:
                await end.receive()
            with pytest.raises(LinkBrokenError, match="reset"):
                await end.send(b"more")
            assert caught.value.close_reason is None


async def test_a_reset_ends_waits_for_a_frame_or_for_space(scene, autojump_clock):
    async def fails(work, *args):
        with pytest.raises(LinkBrokenError, match="reset"):
            await work(*args)

    with trio.fail_after(5):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(fails, scene.link.receive)
            nursery.start_soon(fails, scene.link.send_many, [b"x"] * 100)
            await wait_all_tasks_blocked()
            scene.chaos.reset("node", "ra")


async def test_a_reset_is_of_the_links_between_two_only(scene, autojump_clock):
    other = await scene.dial("rb")
    async with leaving_together(other.dialler, other.acceptor):
        assert scene.chaos.reset("rb", "ra") == 0
        assert scene.chaos.reset("ra", "node") == 1
        await other.dialler.send(b"1")

        assert await other.acceptor.receive() == b"1"


async def test_the_dialling_end_is_known_also_after_failed_dials(scene, autojump_clock):
    with scene.chaos.partition({"rc"}, {"node"}), pytest.raises(DialError):
        await scene.dial("rc")
    with pytest.raises(DialError, match="404"):
        await scene.chaos.end("rb").dial(Kind.WEBSOCKET, scene.listener.address + "/nowhere")
    other = await scene.dial("rd")
    await trio.aclose_forcefully(other.dialler)

    assert [course.dialler for course in scene.chaos.links] == ["ra", "rd"]
    await trio.aclose_forcefully(other.acceptor)


async def test_a_link_that_came_past_the_chaos_suffers_nothing(autojump_clock):
    network = MemoryNetwork()
    chaos = ChaosNetwork(network, Random(1))  # noqa: S311 - chance, no secret
    chaos.end("ra")
    async with chaos.end("node").listen(Kind.TCP, "127.0.0.1:0") as listener:
        link = await network.dial(Kind.TCP, listener.address)
        accepted = await listener.accept()
        with chaos.partition({"ra"}, {"node"}):
            await link.send(b"1")
            assert await accepted.receive() == b"1"
        await trio.aclose_forcefully(link)
        await trio.aclose_forcefully(accepted)
