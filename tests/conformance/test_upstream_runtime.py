"""Upstream's runtime and its suites, played by JavaScript, at a node process of ours.

`upstream/runtime.mjs` has the habits of upstream's message bus, registry and syncher;
`upstream/suite.mjs` asks what upstream's conformance and performance suites ask.
"""

import json
import shutil
import signal
import subprocess
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

import actors
from tests.support.node.node_process import DOMAIN, node_process
from tests.support.report_world import Open

HERE = Path(__file__).with_name("upstream")
NODE_JS = shutil.which("node")
CHECKS = 32
PATIENCE = 25


def has_websocket():
    """Whether the Node.js here has a client for WebSockets of its own: 20.10, and later ones."""
    if NODE_JS is None:
        return False
    asked = [NODE_JS, "--experimental-websocket", "-e", "new WebSocket('ws://x.invalid').close()"]
    return subprocess.run(asked, capture_output=True, check=False).returncode == 0  # noqa: S603


DOORS = pytest.mark.parametrize("door", ["plain", "session"])


@pytest.fixture(scope="module")
def upstreams(tmp_path_factory):
    """A node with the options that upstream's suites need."""
    if not has_websocket():
        pytest.skip("Node.js 20.10 or newer, which plays upstream, is not installed")
    log = tmp_path_factory.mktemp("upstream") / "stderr"
    with node_process(log, "--domain", DOMAIN, "--profile", "upstream") as running:
        yield running
        assert running.stop() == 0
        assert running.complaints == []


@pytest.fixture
def node(upstreams):
    return upstreams


class Script:
    """A script that runs; it says facts, one in a line."""

    def __init__(self, process):
        self.process = process
        self._unread = b""

    async def fact(self):
        while b"\n" not in self._unread:
            more = await self.process.stdout.receive_some()
            assert more, "the script ended: its standard error says why"
            self._unread += more
        line, _, self._unread = self._unread.partition(b"\n")
        return json.loads(line)

    async def go_on(self):
        await self.process.stdin.send_all(b"next\n")

    async def ended(self):
        assert await self.process.wait() == 0


@asynccontextmanager
async def script(node, form, file, mode, *more):
    url = node.ready["legacy_url" if form == "plain" else "session_url"]
    words = [NODE_JS, "--experimental-websocket", "--no-warnings", str(HERE / file), mode]
    start = trio.lowlevel.open_process
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    process = await start([*words, form, url, DOMAIN, *more], **pipes)
    try:
        with trio.fail_after(PATIENCE):
            yield Script(process)
    finally:
        with trio.CancelScope(shield=True):
            if process.returncode is None:
                process.kill()
            await process.wait()
            await process.stdin.aclose()
            await process.stdout.aclose()


@asynccontextmanager
async def ours(node):
    """A hyperty in a runtime of ours."""
    async with actors.open_runtime(DOMAIN, "ours", node=node.ready["url"]) as runtime:
        yield await runtime.deploy(Open)


@DOORS
async def test_two_runtimes_of_upstream_share_an_object(node, door):
    async with script(node, door, "runtime.mjs", "pair") as running:
        assert await running.fact() == {"done": True}
        await running.ended()


@DOORS
async def test_upstreams_runtime_observes_an_object_of_ours(node, door):
    async with (
        ours(node) as hyperty,
        hyperty.report("comm", {"n": 0}) as thing,
        script(node, door, "runtime.mjs", "observe", thing.url) as running,
    ):
        seen = (await running.fact())["observes"]
        for number in (1, 2, 3):
            await thing.set("n", number)
        done = await running.fact()
        await running.ended()

    assert (seen["url"], seen["reporter"], seen["version"]) == (thing.url, hyperty.url, 1)
    assert done == {"done": True, "data": {"n": 3}, "version": 4}


@DOORS
async def test_a_runtime_of_ours_observes_an_object_of_upstreams(node, door):
    async with script(node, door, "runtime.mjs", "report") as running, ours(node) as hyperty:
        url = (await running.fact())["object"]
        async with hyperty.observe(url) as copy:
            await copy.wait_for(lambda value: value["n"] == 3)
        assert await running.fact() == {"done": True}
        await running.ended()


@DOORS
async def test_lists_that_upstreams_runtime_changes_are_the_same_at_an_observer_of_ours(node, door):
    """After each write of JavaScript, at any place and depth; what is unsure is read again."""
    async with script(node, door, "runtime.mjs", "lists") as running, ours(node) as hyperty:
        url = (await running.fact())["object"]
        async with hyperty.observe(url) as copy:
            while (fact := await running.fact()) != {"last": True}:
                await copy.wait_for(lambda _, fact=fact: copy.version >= fact["version"])
                assert copy.value == fact["data"]
                await running.go_on()
        assert await running.fact() == {"done": True}
        await running.ended()


@DOORS
async def test_lists_that_a_runtime_of_ours_changes_are_the_same_at_upstreams_observer(node, door):
    value = {"list": [1, 2, 3, 2], "deep": [{"names": ["a", "b"]}], "pairs": [[1], [2]], "n": 0}
    async with (
        ours(node) as hyperty,
        hyperty.report("comm", value) as thing,
        script(node, door, "runtime.mjs", "follow", thing.url) as running,
    ):
        assert await running.fact() == {"observes": True}
        for write in (
            thing.add("list", 4),
            thing.add("list", 5, [6], {"seven": 7}),
            thing.add("deep.0.names", "c"),
            thing.remove("deep.0.names.0"),
            thing.discard("list", 2),
            thing.discard("list", 4, 5),
            thing.discard("list", "absent"),
            thing.remove("list.0"),
            thing.add("pairs.1", 9),
            thing.add("pairs", [8]),
            thing.discard("pairs", [1]),
            thing.set("pairs.0.0", 0),
            thing.add("made", 1, 2),
            thing.set("new.way", [1]),
            thing.remove("no.way"),
            thing.discard("nothing", 1),
            thing.set("n", {"x": 1}),
            thing.set("n", 3),
        ):
            version = await write
            assert await running.fact() == {"data": dict(thing.value), "version": version}
        assert await running.fact() == {"done": True}
        await running.ended()


@pytest.mark.parametrize(("door", "times"), [("plain", 2), ("session", 5)])
async def test_upstreams_suite_passes_again_and_again_on_one_node(node, door, times):
    """Also after a client with the same names died in the middle of its work."""
    for number in range(times):
        if number in {1, 3}:
            async with script(node, door, "suite.mjs", "hold") as holding:
                assert await holding.fact() == {"held": True}
                holding.process.send_signal(signal.SIGKILL)
                assert await holding.process.wait() == -signal.SIGKILL
        async with script(node, door, "suite.mjs", "suite") as running:
            assert await running.fact() == {"checks": CHECKS, "failed": {}}
            await running.ended()


@DOORS
async def test_upstreams_performance_suites_pass(node, door):
    """The sizes are small here; upstream's go up to 1,000 subscribers and 10,000 messages."""
    async with script(node, door, "suite.mjs", "performance", "60", "2000", "1024") as running:
        assert await running.fact() == {"done": True, "events": 60, "messages": 2000}
        await running.ended()
