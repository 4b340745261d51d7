"""A runtime in which something takes a step that no table declares."""

from contextlib import asynccontextmanager

import pytest
import trio
import trio.testing

from actors.hyperties import Caller
from actors.kit.errors import RestartLimitError
from actors.node.app import open_node
from actors.node.config import NodeConfig
from actors.runtime.app import open_runtime
from actors.runtime.config import RuntimeConfig
from fsm.bus.transactions import DeduplicationWindow, TransactionsCore
from fsm.judge.trace_line import Claim, Verdict, read_record
from fsm.judge.verdict import judge
from specs.message import Message, MessageType
from specs.reply_code import Code
from specs.trace import Kind, Op
from tests.support.log import text_log
from tests.support.runtime.misstep import KEY, TASK, WRONG, Misstep
from tests.support.trace.memory import MemoryTracer
from tests.support.trace.trace_files import records, whole
from transports.memory import MemoryNetwork


@pytest.fixture(autouse=True)
def log():
    """The log as a command writes it."""
    with text_log() as stream:
        yield stream


class World:
    """A runtime `ra` at a node, and who asks from within."""

    def __init__(self, runtime, tracer, caller):
        self.runtime = runtime
        self.tracer = tracer
        self.caller = caller

    def refused(self):
        return [
            (actor, fact.machine, fact.key, fact.old, fact.cause)
            for actor, fact in self.tracer.records
            if fact.k is Kind.STATE and fact.op is Op.REFUSED
        ]

    def judged(self):
        return judge(map(read_record, records(whole(self.tracer.facts))))


@asynccontextmanager
async def open_world():
    network, tracer, caller = MemoryNetwork(), MemoryTracer(), Caller()
    async with open_node(NodeConfig(domain="a.ex"), network, MemoryTracer()) as node:
        config = RuntimeConfig(domain="a.ex", name="ra", node=node.url)
        async with open_runtime(config, network, tracer) as runtime:
            await runtime.deploy("caller", lambda: caller)
            yield World(runtime, tracer, caller)


@pytest.mark.parametrize(("how", "code"), [(WRONG, Code.INTERNAL), (TASK, Code.UNAVAILABLE)])
async def test_an_undeclared_step_of_a_hyperty_is_reported_and_affects_no_other_hyperty(
    how, code, autojump_clock, log
):
    async with open_world() as world:
        clumsy = await world.runtime.deploy("clumsy", Misstep)
        neighbour = await world.runtime.deploy("neighbour", Misstep)

        assert (await world.caller.request(clumsy, how)).code == code

        assert (await world.caller.request(neighbour, 1)).code == Code.OK
        assert (await world.caller.request(clumsy, 1)).code == Code.OK
        assert world.runtime.counters.monitor_violations == 1
        assert world.runtime.counters.violations == {"address": 1}
    assert world.refused() == [(clumsy, "address", KEY, "[*]", "release")]
    judged = world.judged()
    assert (judged.verdict, judged.by_claim) == (Verdict.VIOLATIONS, {Claim.REFUSED_STEP: 1})
    (line,) = [line for line in log.getvalue().splitlines() if "monitor violation" in line]
    assert line.endswith(
        f'event="monitor violation" actor={clumsy} machine=address key={KEY}'
        " state=[*] trigger=release"
    )


async def test_a_core_part_that_missteps_ends_the_runtime_and_the_trace_says_why(
    autojump_clock, monkeypatch
):
    """What the parts of a core share is not to be trusted after a bug in one of them."""
    seen = []
    with pytest.RaisesGroup(RestartLimitError, flatten_subgroups=True):
        async with open_world() as world:
            seen.append(world)
            monkeypatch.setattr(TransactionsCore, "find", lambda core, request: None)
            monkeypatch.setattr(DeduplicationWindow, "is_new", lambda window, message, now: True)
            slow = await world.runtime.deploy("slow", Slow)
            await twice(world.caller, slow)
            await trio.sleep_forever()
    (world,) = seen
    ((actor, machine, _, state, trigger),) = world.refused()
    assert (actor, machine, state, trigger) == ("bus", "transaction", "pending", "opened")
    assert world.runtime.counters.monitor_violations == 1


class Slow(Misstep):
    """Never answers."""

    async def on_request(self, message):
        await trio.sleep_forever()


async def twice(caller, to):
    """Send the same request two times."""
    request = Message(
        caller._participant.ids.next(caller.url), MessageType.CREATE, caller.url, to, {}
    )
    for _ in range(2):
        await caller._participant.port.post(request)
