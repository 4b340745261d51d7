"""Two domains as real processes: two nodes, two runtimes, and the sandbox between them."""

import os
import signal
import socket
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import attrs
import orjson
import pytest
import trio

from actors.hyperties import Caller
from actors.kit.trace import NULL_TRACER
from actors.runtime.app import open_runtime
from actors.runtime.config import RuntimeConfig
from fsm.judge.trace_line import read_record
from fsm.judge.verdict import judge
from fsm.registry.resolve.topology import Topology
from tests.support.command import Serving, call, serving
from transports.system import open_system_network

RELAY = "relay=tests.system.foreign.relay:Relay"
TIMES = 40


def free_place():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return f"127.0.0.1:{taken.getsockname()[1]}"


def children_of(pid):
    return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def is_alive(pid):
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False


async def gone(pid):
    with trio.fail_after(60):
        while is_alive(pid):  # noqa: ASYNC110 - nothing tells of an outsider's end
            await trio.sleep(0.05)


@attrs.define
class Cast:
    """The four processes that were started, and a runtime here that asks."""

    nodes: list[Serving]
    runtimes: list[Serving]
    caller: Caller

    def relay(self, which):
        return str(self.runtimes[which].ready["hyperties"]["relay"])

    def sandboxes(self, which):
        return children_of(self.nodes[which].process.pid)

    async def relayed(self, from_, to, times=1):
        """Have the hyperty of one runtime ask that of the other; return the codes."""
        value = {"to": self.relay(to), "times": times}
        answer = await self.caller.request(self.relay(from_), value)
        assert answer.code == 200, answer.body
        return answer.body["value"]

    async def stop(self):
        for one in (*self.runtimes, *self.nodes):
            assert await one.stop() == 0


def node(domain, place, *more):
    return serving("node", "--domain", domain, "--listen", place, "--allow-legacy", *more)


def runtime(domain, url, *more):
    name = ("--name", f"r{domain[0]}", "--p2p", "none", "--hyperty", RELAY)
    return serving("runtime", "--domain", domain, "--node", url, *name, *more)


@asynccontextmanager
async def two_domains(topology, trace=None):
    """Only the node of a.ex has a way to the other; in the triangle the runtimes have both."""
    places = [free_place(), free_place()]
    urls = [f"ws://{place}/link" for place in places]
    kept = () if trace is None else ("--trace", str(trace))
    ways = [("--foreign", f"b.ex={urls[1]}"), ("--foreign", f"a.ex={urls[0]}")]
    own = topology == "trapezoid"
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        nodes = [
            await enter(node("a.ex", places[0], *kept, *(ways[0] if own else ()))),
            await enter(node("b.ex", places[1], *kept)),
        ]
        runtimes = [
            await enter(runtime(domain, url, "--topology", topology, *kept, *(() if own else way)))
            for domain, url, way in zip(("a.ex", "b.ex"), urls, ways, strict=True)
        ]
        network = await enter(open_system_network())
        config = RuntimeConfig(
            domain="a.ex",
            name="asker",
            node=urls[0],
            nodes={"b.ex": urls[1]},
            topology=Topology(topology),
        )
        caller = Caller()
        here = await enter(open_runtime(config, network, NULL_TRACER))
        await here.deploy("caller", lambda: caller)
        yield Cast(nodes, runtimes, caller)


def judged(directory):
    """What the reference judge says of all traces of a run."""
    texts = [file.read_text() for file in directory.rglob("*.jsonl")]
    assert len(texts) == 4
    lines = [orjson.loads(line) for text in texts for line in text.splitlines()]
    return judge(map(read_record, lines)).verdict


@pytest.mark.parametrize(("topology", "sandboxes"), [("trapezoid", 1), ("triangle", 0)])
async def test_requests_are_answered_in_both_directions(topology, sandboxes, tmp_path):
    async with two_domains(topology, tmp_path) as cast:
        assert await cast.relayed(0, 1, TIMES) == [200] * TIMES
        assert await cast.relayed(1, 0, TIMES) == [200] * TIMES
        assert len(cast.sandboxes(0)) == sandboxes
        assert cast.sandboxes(1) == []
        await cast.stop()
    assert judged(tmp_path) == "conformant"


async def test_a_killed_sandbox_ends_no_other_process():
    """In mid-traffic: who asked across is answered, all others as if nothing had been."""
    async with two_domains("trapezoid") as cast:
        assert await cast.relayed(0, 1) == [200]
        (sandbox,) = cast.sandboxes(0)
        beside, across, is_under_way = [], [], trio.Event()
        async with trio.open_nursery() as nursery:

            async def ask_beside():
                for number in range(TIMES):
                    beside.append((await cast.caller.request(cast.relay(0), number)).code)
                    is_under_way.set()

            async def ask_across():
                # In parts, so that never more wait, or are open, than may be.
                for _ in range(4):
                    across.extend(await cast.relayed(0, 1, 5 * TIMES))

            nursery.start_soon(ask_beside)
            nursery.start_soon(ask_across)
            await is_under_way.wait()
            os.kill(sandbox, signal.SIGKILL)
        assert beside == [200] * TIMES
        assert set(across) <= {200, 503}
        assert len(across) == 20 * TIMES
        assert await cast.relayed(0, 1) == [200]
        (another,) = cast.sandboxes(0)
        assert another != sandbox
        await cast.stop()
        await gone(another)
        assert not is_alive(sandbox)


async def test_a_sandbox_ends_with_its_node_however_that_ended():
    async with two_domains("trapezoid") as cast:
        assert await cast.relayed(0, 1) == [200]
        (sandbox,) = cast.sandboxes(0)
        cast.nodes[0].process.kill()
        await gone(sandbox)


async def test_a_node_that_was_killed_reaches_the_other_domain_again():
    """It has lost the token of its session there, and must not wait for it to expire."""
    async with two_domains("trapezoid") as cast:
        assert await cast.relayed(0, 1) == [200]
        place = cast.nodes[0].url.removeprefix("ws://").removesuffix("/link")
        cast.nodes[0].process.kill()
        await cast.nodes[0].process.ended()
        way = ("--foreign", f"b.ex={cast.nodes[1].url}")
        async with node("a.ex", place, *way):
            where = ("--domain", "a.ex", "--node", cast.nodes[0].url)
            ended = await call("request", *where, "--topology", "trapezoid", cast.relay(1), "1")
            assert ended.status == 0


async def test_a_sandbox_has_no_files_no_network_and_no_process_to_signal():
    async with two_domains("trapezoid") as cast:
        assert await cast.relayed(0, 1) == [200]
        (sandbox,) = cast.sandboxes(0)
        proc = Path(f"/proc/{sandbox}")
        assert (proc / "environ").read_bytes() == b""
        assert {one.name for one in (proc / "fd").iterdir()} >= {"0", "1", "2"}
        kinds = {str(one.readlink()).partition(":")[0] for one in (proc / "fd").iterdir()}
        assert kinds <= {"socket", "pipe", "/dev/null", "anon_inode"}
        links = (proc / "net" / "dev").read_text().splitlines()[2:]
        assert [line.split(":")[0].strip() for line in links] in ([], ["lo"])
        assert "NoNewPrivs:\t1" in (proc / "status").read_text()
        assert os.getsid(sandbox) == sandbox
