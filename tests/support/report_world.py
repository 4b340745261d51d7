"""Two runtimes whose hyperties report and observe data objects."""

from contextlib import asynccontextmanager

import attrs

import actors
from actors.policy.store import PolicyConfig
from actors.runtime.config import RuntimeConfig
from actors.testing.recorder import Recorder
from specs.limits.protocol import LEASE
from transports.link import Kind
from transports.memory import MemoryNetwork, deliver_once


class Open(actors.Hyperty):
    """Lets everybody observe."""

    async def on_subscribe(self, url, observer):
        pass


class Closed(actors.Hyperty):
    """Decides nothing, and takes no invitation."""


@attrs.frozen
class World:
    network: MemoryNetwork
    here: actors.Runtime
    there: actors.Runtime
    recorder: Recorder

    def slow_down(self, seconds):
        """Let each frame of the reporter's runtime take its time."""
        wire = self.network.open_wires(Kind.WEBSOCKET)[0]
        wire.dialler.pattern = lambda _number, _frame: (seconds,)

    def objects(self):
        """The objects that were ever reported."""
        return {line.key for line in self.recorder.lines if line.k == "obj" and line.op == "write"}

    def wire_of_observer(self):
        """The link between the observer's runtime and the node."""
        return self.network.open_wires(Kind.WEBSOCKET)[1]

    def steps(self, machine, node):
        """What a runtime traced of a machine: by what, to where."""
        return [
            (line.cause, line.new)
            for line in self.recorder.lines
            if line.node == node and line.is_step and line.machine == machine
        ]


def text(frame):
    """A frame as text, however it was written."""
    return frame.decode() if isinstance(frame, bytes) else frame


PERMITTED = PolicyConfig()


def is_disturbed(network):
    """Whether a session may lose single frames, as no transport of sessions does (I-L6)."""
    ends = [
        end for wire in network.open_wires(Kind.WEBSOCKET) for end in (wire.dialler, wire.acceptor)
    ]
    return any(end.pattern is not deliver_once for end in ends)


@asynccontextmanager
async def world(policy=PERMITTED, lease=LEASE):
    """Two runtimes in one domain; when they have left, all that was recorded is conformant.

    The policy and the leases are those of the runtime that reports.
    """
    network, recorder = MemoryNetwork(), Recorder()
    with (
        recorder.process("node") as first,
        recorder.process("ra") as second,
        recorder.process("rb") as third,
    ):
        async with (
            actors.open_node("a.ex", network=network, trace=first) as node,
            actors.open_runtime(
                RuntimeConfig(domain="a.ex", name="ra", node=node.url, policy=policy, lease=lease),
                network=network,
                trace=second,
            ) as here,
            actors.open_runtime("a.ex", "rb", node=node.url, network=network, trace=third) as there,
        ):
            yield World(network, here, there, recorder)
            # Of the wires that are open now: what a test disturbs, it disturbs to its end.
            unjudged = {"I-L6"} if is_disturbed(network) else set()
    recorder.assert_conformant(unjudged=unjudged)


@attrs.frozen
class Met:
    w: object
    room: object
    guest: object
    thing: object


@asynccontextmanager
async def met(**wanted):
    """A reporter of an object, and a guest of another runtime."""
    async with world() as w:
        room, guest = await w.here.deploy(Open), await w.there.deploy(Closed)
        async with room.report("comm", {"n": 0}, **wanted) as thing:
            yield Met(w, room, guest, thing)


def paths(w):
    """What became of the paths on changes at the node."""
    return [
        line.new
        for line in w.recorder.lines
        if line.is_step and line.machine == "node_subscription" and "/changes|" in line.key
    ]
