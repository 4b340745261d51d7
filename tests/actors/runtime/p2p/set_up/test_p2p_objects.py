"""How a P2P stub follows the peer's Connection object: gaps, failed reads, the end (SYN-17)."""

from contextlib import asynccontextmanager

import trio

from actors.kit.counters import Counters
from actors.kit.ids import IdSource
from actors.kit.supervision.actor import Delivery
from actors.kit.supervision.supervisor import ChildSpec, open_supervisor
from actors.runtime.p2p.stub import P2PRequester
from actors.runtime.stubs.stub import StubConfig, StubContext
from specs.limits.protocol import READ_PAUSE
from specs.message import Message, MessageType
from specs.trace import Kind
from tests.support.runtime.p2p_bus import KeepingPort
from tests.support.trace.memory import MemoryTracer
from transports.link import Kind as Carrier
from transports.memory import MemoryNetwork

RA, RB = "hyperty-runtime://a.ex/ra", "hyperty-runtime://b.ex/rb"
PQ, PH = f"{RA}/p2prequester/1", f"{RB}/p2phandler/1"
C1, C2 = "connection://a.ex/c1", "connection://b.ex/c2"


class Stub:
    """A requester that observes C2, its port, and the words to it."""

    def __init__(self, ref, reported):
        self.ref, self.port, self.tracer = ref, reported.bus, reported.tracer
        self.ids = IdSource(100)

    def asked(self, type_):
        return [each for each in self.port.posted if each.type is type_]

    async def deliver(self, message):
        await self.ref.tell(Delivery(message, message.to))
        await trio.testing.wait_all_tasks_blocked()

    async def answer(self, request, code, **body):
        reported = {"code": code, **body}
        await self.deliver(
            Message(request.id, MessageType.RESPONSE, request.to, request.from_, reported)
        )

    async def change(self, version, from_=C2, type_=MessageType.UPDATE):
        body = {"version": version, "attribute": "status", "value": f"s{version}"}
        await self.deliver(Message(self.ids.next(from_), type_, from_, f"{C2}/changes", body))

    def steps(self):
        facts = [fact for fact in self.tracer.facts if fact.machine == "observer_copy"]
        assert {fact.key for fact in facts} <= {f"{C2}|{PQ}"}
        return [(fact.cause, fact.new) for fact in facts]

    def applied(self):
        return [fact.version for fact in self.tracer.facts if fact.k is Kind.OBJ]


def value(version):
    data = {"owner": PH, "status": "", "candidates": []}
    return {"reporter": PH, "runtime": RB, "url": C2, "version": version, "data": data}


@asynccontextmanager
async def observing():
    config = StubConfig(RA, "a.ex", remote_runtime=RB, p2p_handler=PH, kinds=(Carrier.TCP,))
    parts = (KeepingPort(PQ), config, MemoryNetwork(), MemoryTracer(), IdSource(), bytes)
    reported = StubContext(PQ, *parts, Counters())
    async with open_supervisor("test") as supervisor:
        make = lambda: P2PRequester(reported)  # noqa: E731 - one word less to name
        stub = Stub(await supervisor.start_child(ChildSpec(PQ, make)), reported)
        await trio.testing.wait_all_tasks_blocked()
        await stub.answer(stub.asked(MessageType.CREATE)[-1], 200, resource=C1)
        invited = {"source": PH, "schema": "s", "value": {}}
        asker = f"{C2}/subscription"
        await stub.deliver(Message(7, MessageType.CREATE, asker, PQ, invited))
        yield stub


@asynccontextmanager
async def stale():
    """A stub that has version 1, and has heard of version 3."""
    async with observing() as stub:
        await stub.answer(stub.asked(MessageType.SUBSCRIBE)[-1], 200, value=value(1))
        await stub.change(3)
        yield stub


READ = MessageType.READ


async def test_a_change_that_comes_before_the_snapshot_is_applied_after_it(autojump_clock):
    """P2P-12."""
    async with observing() as stub:
        await stub.change(2)
        assert stub.applied() == []
        await stub.answer(stub.asked(MessageType.SUBSCRIBE)[-1], 200, value=value(1))
        assert stub.applied() == [1, 2]


async def test_a_gap_that_the_read_does_not_close_is_read_again(autojump_clock):
    async with stale() as stub:
        await stub.answer(stub.asked(READ)[-1], 200, value=value(1))
        assert stub.steps()[-2:] == [("snapshot", "live"), ("changed", "stale")]
        await trio.sleep(READ_PAUSE * 1.5)
        await stub.answer(stub.asked(READ)[-1], 200, value=value(3))
        assert stub.applied() == [1, 3]


async def test_a_component_that_is_not_the_reporter_changes_and_deletes_nothing(autojump_clock):
    async with stale() as stub:
        before = stub.steps()
        await stub.change(2, from_="hyperty://b.ex/other")
        await stub.change(2, from_="hyperty://b.ex/other", type_=MessageType.DELETE)
        assert stub.steps() == before
