"""Observers that renew what they were granted, and others that are gone (SYN-20, M-38)."""

from contextlib import asynccontextmanager

import attrs
import trio

import actors
from actors.kit.ids import IdSource
from actors.runtime.config import RuntimeConfig
from actors.testing.recorder import Recorder
from tests.simulation.world.mortal import MortalNetwork
from tests.support.report_world import Closed, Open, text
from transports.link import Kind
from transports.memory import MemoryNetwork

LEASE = 60


@attrs.frozen
class World:
    network: MemoryNetwork
    recorder: Recorder
    thing: object
    guest: object
    observers_network: MortalNetwork

    @property
    def wire(self):
        """The link between the observer's runtime and the node."""
        return self.network.open_wires(Kind.WEBSOCKET)[1]

    def part(self):
        """Lose all that the observer's runtime sends and receives, until it is reached again."""
        self.observers_network.is_dead = True
        self.wire.dialler.pattern = self.wire.acceptor.pattern = lambda _number, _frame: ()

    def lose(self, is_lost):
        """Lose some of what the observer's runtime says."""
        self.wire.dialler.pattern = lambda _number, frame: () if is_lost(text(frame)) else (0.0,)

    def steps(self, machine, node="ra"):
        """What was traced of a machine: by what, to where."""
        return [
            (line.cause, line.new)
            for line in self.recorder.lines
            if line.node == node and line.is_step and line.machine == machine
        ]

    def paths(self):
        """What became of paths on changes."""
        return [
            line.new
            for line in self.recorder.lines
            if line.is_step and line.machine == "node_subscription" and "/changes|" in line.key
        ]


@asynccontextmanager
async def world(lease=LEASE, **wanted):
    network, recorder = MemoryNetwork(), Recorder()
    mortal = MortalNetwork(network)
    with (
        recorder.process("node") as first,
        recorder.process("ra") as second,
        recorder.process("rb") as third,
    ):
        async with (
            actors.open_node("a.ex", network=network, trace=first) as node,
            actors.open_runtime(
                RuntimeConfig(domain="a.ex", name="ra", node=node.url, lease=lease, ids=IdSource()),
                network=network,
                trace=second,
            ) as here,
            actors.open_runtime("a.ex", "rb", node=node.url, network=mortal, trace=third) as there,
        ):
            room, guest = await here.deploy(Open), await there.deploy(Closed)
            async with room.report("comm", {"n": 0}, **wanted) as thing:
                yield World(network, recorder, thing, guest, mortal)
    recorder.assert_conformant(unjudged={"I-L6"})  # the network loses single frames


async def test_a_renewal_whose_answer_is_lost_is_made_again(autojump_clock):
    async with world() as w, w.guest.observe(w.thing.url):
        lost = []

        def is_lost(frame):
            if '"version"' in frame and '"subscribe"' in frame and len(lost) < 2:
                lost.append(frame)
                return True
            return False

        w.lose(is_lost)
        await trio.sleep(3 * LEASE)
        assert len(lost) == 2
        assert w.thing.observers == (w.guest.url,)
        assert ("expire", "removed") not in w.steps("object_subscription")


async def test_one_that_is_alive_and_was_let_go_is_reported_and_comes_back_at_once(autojump_clock):
    """Only what its sync manager renews is lost: the word that the lease is over is not."""
    async with world() as w, w.guest.observe(w.thing.url) as copy:
        w.lose(lambda frame: '"version"' in frame and '"subscribe"' in frame)
        await trio.sleep(LEASE + 2)
        causes = [cause for cause, _ in w.steps("object_subscription")]
        assert causes == ["request", "accept", "expire", "request", "accept"]
        await w.thing.set("n", 1)
        with trio.fail_after(5):
            await copy.wait_for(lambda value: value["n"] == 1)
        assert w.thing.observers == (w.guest.url,)
