"""Sandboxes that take all they can: only sandboxes end, whatever bounds them together (T16)."""

from contextlib import asynccontextmanager

import pytest
import trio

from actors.hyperties import Caller, Echo
from actors.kit.trace import NULL_TRACER
from actors.node.app import open_node
from actors.node.config import NodeConfig
from actors.pipe import process
from actors.pipe.plan import SandboxError
from actors.pipe.process import home_cgroup, open_cgroup
from actors.runtime.app import open_runtime
from actors.runtime.config import RuntimeConfig
from actors.runtime.isolation import HypertyCode
from fsm.limits.shares import MIB, SandboxTotals
from specs.limits.protocol import SANDBOX_MEMORY
from tests.support.runtime.rough import Rough
from transports.memory import MemoryNetwork

pytestmark = pytest.mark.timeout(240)

DOMAIN, COUNT = "a.example", 5


def is_grouped():
    """Say whether a test can make a cgroup that bounds memory."""
    group = open_cgroup(SandboxTotals(), home_cgroup())
    if group is not None:
        group.remove()
    return group is not None


@asynccontextmanager
async def crowd(memory):
    """Run five rough ones in processes of their own, and two others in the runtime."""
    network, totals = MemoryNetwork(), SandboxTotals(memory)
    async with open_node(NodeConfig(domain=DOMAIN), network, NULL_TRACER) as node:
        config = RuntimeConfig(domain=DOMAIN, name="ra", node=node.url, sandboxes=totals)
        async with open_runtime(config, network, NULL_TRACER) as runtime:
            caller = Caller()
            await runtime.deploy("caller", lambda: caller)
            echo = await runtime.deploy("echo", Echo)
            # One after the other: all at once they may be too slow on a busy machine.
            code = HypertyCode.of(Rough)
            rough = [(await runtime.run_in_sandbox("rough", code)).url for _ in range(COUNT)]
            yield runtime, caller, echo, rough


async def all_allocate(caller, echo, rough, memory):
    """Have each allocate as much as all together may, at once, while another is asked."""
    answers, others = [], set()

    async def allocate(url):
        answers.append(await caller.request(url, {"allocate": memory // MIB}))

    async with trio.open_nursery() as nursery:
        for url in rough:
            nursery.start_soon(allocate, url)
        while len(answers) < COUNT:
            others.add((await caller.request(echo, 7)).code)
    others.add((await caller.request(echo, 7)).code)
    assert others == {200}
    return answers


async def test_the_sum_of_what_five_sandboxes_allocate_stays_within_the_total(monkeypatch):
    """SEC-32."""
    monkeypatch.setattr(process, "home_cgroup", lambda: None)
    memory = COUNT * SANDBOX_MEMORY
    async with crowd(memory) as (runtime, caller, echo, rough):
        with pytest.raises(SandboxError, match="5 of 256 MiB each run already; raise"):
            await runtime.run_in_sandbox("one too many", HypertyCode.of(Rough))
        answers = await all_allocate(caller, echo, rough, memory)
        # One whose memory is used up either notices, or ends; it may also be too slow.
        got = [one.body["value"] for one in answers if one.code == 200]
        assert {one.code for one in answers} <= {200, 408, 500, 503}
        assert sum(got) * MIB < memory


@pytest.mark.skipif(not is_grouped(), reason="this process can make no cgroup with limits")
async def test_a_cgroup_kills_sandboxes_and_nothing_else():
    """SEC-32."""
    memory = SANDBOX_MEMORY
    async with crowd(memory) as (_, caller, echo, rough):
        answers = await all_allocate(caller, echo, rough, memory)
        # One that lacks memory may also be too slow.
        assert 503 in {one.code for one in answers}
        assert {one.code for one in answers} <= {200, 408, 500, 503}
    # Nothing of it is left.
    assert not list(home_cgroup().parent.rglob("protofly-sandboxes-*"))
