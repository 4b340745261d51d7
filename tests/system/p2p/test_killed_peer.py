"""Bob is killed in mid-flight: nobody waits for ever, the node lives, the traces tell.

Real processes, real sockets, the real judge (P2P-15, I-T3, I-P22).
"""

import signal
from collections import Counter

import orjson
import pytest
import trio
from trio.testing import MockClock

from actors.cli.group import ExitCode
from actors.hyperties import Caller
from actors.kit.ids import IdSource
from actors.kit.trace_file import open_trace
from actors.runtime.app import open_runtime
from actors.runtime.config import RuntimeConfig
from fsm.judge.verdict import judge as judge_steps
from fsm.judge.verdict import judge_run
from specs.reply_code import Code
from tests.spark.judged import lines_under
from tests.support.command import PYTHON, ROOT, call, serving
from transports.link import Kind
from transports.system import open_system_network

IN_FLIGHT = 50
BEFORE = 200
HASTE = 10.0
NODE = ("node", "--domain", "a.example", "--allow-legacy")
BOB = (
    "runtime",
    "--domain",
    "a.example",
    "--name",
    "bob",
    "--hyperty",
    "echo=actors.hyperties:Echo",
)

pytestmark = pytest.mark.timeout(180)


@pytest.fixture
def clock():
    """Alice's time: real, until a test lets it run faster."""
    return MockClock(rate=1.0)


class Ledger:
    """Which requests were sent, and how each was answered."""

    def __init__(self, caller, to):
        self.caller, self.to = caller, to
        self.sent = 0
        self.codes = Counter()

    async def ask(self):
        self.sent += 1
        self.codes[(await self.caller.request(self.to, self.sent)).code] += 1

    async def keep_asking(self, enough):
        while not enough.is_set():
            await self.ask()

    @property
    def answered(self):
        return self.codes.total()


async def live_link(runtime):
    while not any(link.is_live for link in await runtime.links()):
        await trio.lowlevel.checkpoint()


async def kill_in_mid_flight(ledger, runtime, bob, clock):
    """Kill Bob between requests and their answers; wait until each has one, or a refusal."""
    enough = trio.Event()
    async with trio.open_nursery() as nursery:
        for _ in range(IN_FLIGHT):
            nursery.start_soon(ledger.keep_asking, enough)
        await live_link(runtime)
        while ledger.answered < BEFORE:
            await trio.lowlevel.checkpoint()
        bob.process.send_signal(signal.SIGKILL)
        await bob.process.ended()
        enough.set()
        clock.rate = HASTE  # what no answer will come to is given up in a moment
    clock.rate = 1.0


async def reported_by_spark(trace, tmp_path):
    """What Spark says of each node's trace; that it says what the other says has its own test."""
    command = [*PYTHON, "spark", "validate", str(trace), "--report", str(tmp_path / "report")]
    done = await trio.run_process([*command, "--json"], cwd=ROOT, check=False, capture_stdout=True)
    assert done.returncode == ExitCode.FAILED
    verdict = orjson.loads(done.stdout.splitlines()[-1])
    return {node["node"]: node["verdict"] for node in verdict["nodes"]}


async def reported_by_reference(trace, tmp_path):
    """The same by the reference judge, which needs no Java."""
    judged = judge_steps(lines_under(trace))
    assert judged.violations == ()
    return {one.node: "incomplete" if one.flaws else "conformant" for one in judged.nodes}


@pytest.mark.parametrize(
    "verdicts",
    [
        reported_by_reference,
        pytest.param(reported_by_spark, marks=[pytest.mark.spark, pytest.mark.soak]),
    ],
)
async def test_every_request_is_answered_and_only_bobs_trace_is_incomplete(
    tmp_path, clock, verdicts
):
    trace = tmp_path / "trace"
    async with (
        serving(*NODE, "--trace", str(trace)) as node,
        serving(*BOB, "--node", node.url, "--p2p", "unix", "--trace", str(trace)) as bob,
        open_system_network() as network,
        open_trace(trace, "alice") as tracer,
    ):
        config = RuntimeConfig(
            domain="a.example", name="alice", node=node.url, kinds=(Kind.UNIX,), ids=IdSource()
        )
        async with open_runtime(config, network, tracer) as alice:
            caller = Caller()
            await alice.deploy("caller", lambda: caller)
            ledger = Ledger(caller, bob.ready["hyperties"]["echo"])
            await kill_in_mid_flight(ledger, alice, bob, clock)
            assert ledger.answered == ledger.sent
            assert set(ledger.codes) <= {Code.OK, Code.TIMEOUT, Code.NOT_FOUND, Code.UNAVAILABLE}
            nobody = await caller.request("hyperty://a.example/nobody")
            assert nobody.code == Code.NOT_FOUND
        still_there = await call(
            "request", "--domain", "a.example", "--node", node.url, "hyperty://a.example/x", "1"
        )
        assert '"code":404' in still_there.out[0]
        assert await node.stop() == 0
    said = await verdicts(trace, tmp_path)
    assert said == {"alice": "conformant", "node.a.example": "conformant", "bob": "incomplete"}
    assert judge_run(lines_under(trace)).findings == ()
