"""An observer's process is killed: its reporter and the node forget it with its lease (SYN-20).

Real processes and sockets, `kill -9`; one that only is quiet goes on observing.
"""

import pytest
import trio

import actors
from actors.runtime.config import RuntimeConfig
from fsm.judge.trace_line import read_line
from tests.support.command import serving
from tests.support.report_world import Open

LEASE = 5
"""Seconds; a process that renews has two more attempts after a third of them."""

LIVES = 4
DOMAIN = ("--domain", "a.example")
WATCHER = ("runtime", *DOMAIN, "--hyperty", "watch=tests.system.sync.watching:Watcher")

pytestmark = pytest.mark.timeout(180)


async def until(holds):
    """Wait for what nobody tells; the test's own time is over before it is in vain."""
    while not holds():  # noqa: ASYNC110
        await trio.sleep(0.05)


def moves(folder, machine, about):
    """What one machine's entities did, of all records that are written by now."""
    lines = []
    for part in sorted(folder.rglob("part-*.jsonl")):
        whole, _, _ = part.read_bytes().rpartition(b"\n")
        lines += [read_line(line) for line in whole.splitlines()]
    return [one for one in lines if one.is_step and one.machine == machine and about in one.key]


async def test_a_killed_observer_is_forgotten_and_a_quiet_one_is_not(tmp_path):
    async with (
        serving("node", *DOMAIN, "--allow-legacy", "--trace", str(tmp_path)) as node,
        serving(*WATCHER, "--name", "dies", "--node", node.url) as dies,
        serving(*WATCHER, "--name", "lives", "--node", node.url) as lives,
        actors.open_runtime(
            RuntimeConfig(domain="a.example", name="ra", node=node.url, lease=LEASE), trace=tmp_path
        ) as here,
        await here.deploy(Open) as room,
        await here.deploy(Open, "asks") as asks,
        room.report("comm", {"n": 0}) as thing,
    ):
        killed, quiet = (one.ready["hyperties"]["watch"] for one in (dies, lives))
        for one in (killed, quiet):
            assert (await asks.request(one, thing.url)).body["value"] == 0
        assert set(thing.observers) == {killed, quiet}
        dies.process.kill()
        with trio.fail_after(60):
            await until(lambda: set(thing.observers) == {quiet})
            runtime = "hyperty-runtime://a.example/dies"
            about = f"{thing.url}/changes|{runtime}"
            await until(lambda: _last(moves(tmp_path, "node_subscription", about)) == "removed")
        await trio.sleep(LIVES * LEASE)  # real time: a lease is renewed meanwhile
        assert thing.observers == (quiet,)
        await thing.set("n", 1)
        assert (await asks.request(quiet, "next")).body["value"] == 1
        reported = moves(tmp_path, "object_subscription", quiet)
        assert [one.new for one in reported if one.new != "active"] == ["requested"]
        assert sum(one.cause == "renew" for one in reported) > LIVES


def _last(steps):
    return steps[-1].new if steps else None
