"""Two processes with a data channel between them: set-up, traffic, loss, and death of one."""

import os
import signal
import subprocess
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

import actors
from transports.webrtc.process import is_webrtc_installed

pytestmark = pytest.mark.skipif(
    not is_webrtc_installed(), reason="the extra 'webrtc' is not installed"
)
PROGRAM = Path(__file__).parents[3] / "support/runtime/channel_peer.py"


@asynccontextmanager
async def open_peer(node):
    """Start the other process; return it, and the address of its hyperty."""
    command = [sys.executable, str(PROGRAM), node]
    process = await trio.lowlevel.open_process(command, stdout=subprocess.PIPE)
    try:
        url = b""
        while not url.endswith(b"\n"):
            url += await process.stdout.receive_some()
        yield process, url.decode().strip()
    finally:
        process.kill()
        await process.wait()
        await process.stdout.aclose()


def children(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return [int(one) for task in tasks for one in (task / "children").read_text().split()]


async def is_live(runtime, alice, url):
    """Ask until the link is live: on a busy machine a set-up may take too long, and fail."""
    while [link.status.value for link in await runtime.links()] != ["live"]:
        assert (await alice.request(url, "is it?")).value == "is it?"
        await trio.sleep(0.05)  # real time: it looks again


async def is_lost(runtime):
    while "live" in [link.status.value for link in await runtime.links()]:  # noqa: ASYNC110
        await trio.sleep(0.02)


async def test_two_processes_talk_by_a_data_channel_that_is_cut_and_comes_back():
    config = {"domain": "a.example", "kinds": (actors.Kind.WEBRTC,)}
    before = children(os.getpid())
    with trio.fail_after(90):
        async with (
            actors.open_node("a.example") as node,
            open_peer(node.url) as (process, url),
            actors.open_runtime(
                actors.RuntimeConfig(name="alice", node=node.url, **config)
            ) as runtime,
        ):
            alice = await runtime.deploy(actors.Hyperty)
            assert (await alice.request(url, "by the node")).value == "by the node"
            await is_live(runtime, alice, url)
            answer = await alice.request(url, "directly")
            assert (answer.value, answer.via[0].endswith("/conn/1")) == ("directly", True)
            large = "x" * 1_000_000
            assert (await alice.request(url, large)).value == large
            await converges(alice, url)
            (webrtc,) = set(children(os.getpid())) - {process.pid, *before}
            await is_cut_and_comes_back(webrtc, runtime, alice, url)
            await dies(process, runtime)
    assert children(os.getpid()) == before


async def converges(alice, url):
    last = {"n": 40, "list": [*range(40)]}
    async with (
        alice.report("comm", {"n": 0, "list": []}, observers=(url,)) as obj,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(change, obj)
        answer = await alice.request(url, {"observe": obj.url, "until": last})
    assert answer.value == last


async def change(obj):
    for number in range(40):
        obj.data.list.append(number)
        obj.data.n = number + 1
    await obj.flush()


async def is_cut_and_comes_back(webrtc, runtime, alice, url):
    """This runtime's process of WebRTC is killed: no request is lost, and a link follows."""
    os.kill(webrtc, signal.SIGKILL)
    answers = [await alice.request(url, number) for number in range(100)]
    assert [answer.value for answer in answers] == [*range(100)]
    await is_live(runtime, alice, url)
    assert webrtc not in children(os.getpid())


async def dies(process, runtime):
    """The other process is killed: the link is lost at once, and nothing is left of it."""
    (webrtc,) = children(process.pid)
    left = os.pidfd_open(webrtc)
    try:
        process.send_signal(signal.SIGKILL)
        await is_lost(runtime)
        await trio.lowlevel.wait_readable(left)
    finally:
        os.close(left)
