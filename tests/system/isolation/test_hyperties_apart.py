"""Hyperties that misbehave, in whole runtimes: nobody else notices, and nothing is left (R11)."""

import os
import signal
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import orjson
import pytest
import trio

from actors.cli.group import ExitCode
from actors.hyperties import Caller, Echo
from actors.kit.trace import NULL_TRACER
from actors.node.app import open_node
from actors.node.config import NodeConfig
from actors.pipe.process import ProcessSandboxes
from actors.runtime.app import open_runtime
from actors.runtime.config import RuntimeConfig
from actors.runtime.isolation import HypertyCode
from specs.limits.protocol import DRAIN_TIMEOUT, REPLY_TIMEOUT, SANDBOX_RESTARTS
from tests.support.command import call, serving
from tests.support.runtime.rough import Rough
from transports.memory import MemoryNetwork

pytestmark = pytest.mark.timeout(240)

DOMAIN = "a.example"
NODE = ("--domain", DOMAIN, "--node")
CREW = ("--name", "ra", "--p2p", "none", "--hyperty", "echo=actors.hyperties:Echo")


# ---- the command


def children_of(pid):
    return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def is_running(pid):
    return "(running)" in Path(f"/proc/{pid}/status").read_text()


async def gone(watch):
    """Wait until a process is no more."""
    with trio.fail_after(60):
        await trio.lowlevel.wait_readable(watch)
    os.close(watch)


@asynccontextmanager
async def apart():
    """A runtime as a process, and its hyperty as another; yield it, and a watch on that."""
    async with (
        serving("node", "--domain", DOMAIN, "--allow-legacy") as node,
        serving("runtime", *NODE, node.url, *CREW, "--sandbox", "process") as runtime,
    ):
        (sandbox,) = children_of(runtime.process.pid)
        yield node, runtime, os.pidfd_open(sandbox)


async def test_a_command_runs_a_hyperty_apart_and_drains_in_time():
    async with apart() as (node, runtime, sandbox):
        done = await call("request", *NODE, node.url, runtime.ready["hyperties"]["echo"], "7")
        assert (done.status, orjson.loads(done.out[0])["value"]) == (ExitCode.OK, 7)
        with trio.fail_after(60):
            assert await runtime.stop() == ExitCode.OK
        await gone(sandbox)


async def test_a_killed_runtime_leaves_no_process():
    """SEC-31."""
    async with apart() as (_, runtime, sandbox):
        await runtime.stop(signal.SIGKILL)
        await gone(sandbox)


async def test_a_hyperty_cannot_outlive_its_runtime():
    """SEC-31: It takes back what it can, then ignores its pipe; the runtime is killed."""
    undying = ("--hyperty", "undying=tests.actors.sandbox.hostile:Undying")
    async with (
        serving("node", "--domain", DOMAIN, "--allow-legacy") as node,
        serving(
            "runtime", *NODE, node.url, "--name", "ra", "--p2p", "none", *undying,
            "--sandbox", "process",
        ) as runtime,
    ):  # fmt: skip
        (sandbox,) = children_of(runtime.process.pid)
        done = await call("request", *NODE, node.url, runtime.ready["hyperties"]["undying"], "7")
        assert orjson.loads(done.out[0])["value"] == 0
        watch = os.pidfd_open(sandbox)
        with trio.fail_after(60):
            while not is_running(sandbox):
                await trio.lowlevel.checkpoint()
        await runtime.stop(signal.SIGKILL)
        await gone(watch)


# ---- a runtime with others in it


@asynccontextmanager
async def crewed():
    """Run a runtime with one that asks and one that answers."""
    network = MemoryNetwork()
    async with open_node(NodeConfig(domain=DOMAIN), network, NULL_TRACER) as node:
        config = RuntimeConfig(domain=DOMAIN, name="ra", node=node.url)
        async with open_runtime(config, network, NULL_TRACER) as runtime:
            caller = Caller()
            await runtime.deploy("caller", lambda: caller)
            yield runtime, caller, await runtime.deploy("echo", Echo)


async def test_one_that_ends_too_often_is_undeployed_and_others_go_on(monkeypatch):
    lives, codes, others = [], [], set()
    opened = ProcessSandboxes.open

    def counted(*args, **options):
        lives.append(args)
        return opened(*args, **options)

    monkeypatch.setattr(ProcessSandboxes, "open", counted)
    async with crewed() as (runtime, caller, echo):
        rough = (await runtime.run_in_sandbox("rough", HypertyCode.of(Rough))).url
        assert (await caller.request(rough, "well?")).code == 200
        while 404 not in codes:
            codes.append((await caller.request(rough, "exit")).code)
            others.add((await caller.request(echo, 7)).code)
    assert set(codes) == {503, 404}
    assert others == {200}
    assert len(lives) == 1 + SANDBOX_RESTARTS


async def test_in_a_nursery_one_unresponsive_hyperty_delays_no_other(autojump_clock):
    """HYP-01, MSG-06: its callers are answered 408, others are answered, the runtime can go."""
    codes = []

    async def wait_in_vain(caller, rough):
        codes.append((await caller.request(rough, "sleep")).code)

    async with crewed() as (runtime, caller, echo):
        rough = await runtime.deploy("rough", Rough)
        async with trio.open_nursery() as nursery:
            begun = trio.current_time()
            for _ in range(20):
                nursery.start_soon(partial(wait_in_vain, caller, rough))
            await trio.testing.wait_all_tasks_blocked()
            assert (await caller.request(rough, "well?")).code == 200
            assert (await caller.request(echo, 7)).code == 200
            assert trio.current_time() == begun
        assert codes == [408] * 20
        assert trio.current_time() == begun + REPLY_TIMEOUT
        begun = trio.current_time()
    assert trio.current_time() < begun + DRAIN_TIMEOUT
