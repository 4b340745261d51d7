"""Bob's runtime sleeps; Alice wakes it, and it answers her by the node of her domain.

Run it: `python examples/wake_a_runtime.py` (after `pip install '.[push]'`)

Bob's device has registered itself at the node of its domain. The node calls it by Web Push; the
call is encrypted for the device. The push service here is a small HTTP server, which stands for
that of a phone or a browser.
"""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Queue
from tempfile import TemporaryDirectory

import trio

import actors

BOB = "hyperty-runtime://bob.example/phone"
PUSH = "domain://msg-node.bob.example/push"

calls: "Queue[bytes]" = Queue()


class PushService(BaseHTTPRequestHandler):
    """Takes a call for the only device it knows."""

    def do_POST(self) -> None:
        """Keep the call until the device asks for it."""
        calls.put(self.rfile.read(int(self.headers["content-length"])))
        self.send_response(201)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Print nothing."""


class Alice(actors.Hyperty):
    """Calls Bob, and is answered by whoever comes."""

    def __init__(self) -> None:
        self.is_answered = trio.Event()

    async def on_request(self, message: actors.Message) -> actors.Json:
        """Take what Bob says."""
        print(f"alice hears {message.value!r}")
        self.is_answered.set()
        return "see you"


class Bob(actors.Hyperty):
    """Answers a call."""


async def device(keys: actors.PushKeys, nodes: dict[str, str]) -> None:
    """Wait for a call, start the runtime, and answer the caller."""
    call = keys.read(await trio.to_thread.run_sync(calls.get))
    print(f"bob's device is called by a {call.from_.partition(':')[0]} about {call.value!r}")
    async with actors.open_runtime(bobs_runtime(nodes)) as runtime:
        bob = await runtime.deploy(Bob, "bob")
        answer = await bob.request(call.from_, "I am awake")
        print(f"bob hears   {answer.value!r}")


def bobs_runtime(nodes: dict[str, str]) -> actors.RuntimeConfig:
    """Return the configuration of Bob's runtime."""
    node = nodes["bob.example"]
    return actors.RuntimeConfig(domain="bob.example", name="phone", node=node, nodes=nodes)


async def main(folder: Path, service: str) -> None:
    """Let Bob's runtime register its device and sleep; then let Alice call it."""
    push = actors.PushConfig(
        key=folder / "push.key", contact="mailto:ops@bob.example", services=[service]
    )
    there = actors.NodeConfig(domain="bob.example", back_ends=actors.BackEnds(push=push))
    keys, alice = actors.PushKeys.load(folder / "device.keys"), Alice()
    async with actors.open_node("alice.example") as a, actors.open_node(there) as b:
        nodes = {"alice.example": a.url, "bob.example": b.url}
        async with actors.open_runtime(bobs_runtime(nodes)) as runtime:
            bob = await runtime.deploy(Bob, "bob")
            await bob.request(PUSH, keys.subscription(f"{service}/devices/1"))
        print("bob's runtime sleeps")
        here = actors.RuntimeConfig(domain="alice.example", name="desk", node=a.url, nodes=nodes)
        async with actors.open_runtime(here) as runtime, trio.open_nursery() as nursery:
            nursery.start_soon(device, keys, nodes)
            caller = await runtime.deploy(lambda: alice, "alice")
            answer = await caller.request(PUSH, "lunch", "execute", path=BOB)
            print(f"the node of bob.example: {answer.code} {answer.value}")
            await alice.is_answered.wait()


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), PushService)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with TemporaryDirectory() as place:
        trio.run(main, Path(place), f"http://127.0.0.1:{server.server_port}")
    server.shutdown()
