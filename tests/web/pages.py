"""A node that serves the browser runtime, pages that use it, and a wire that can be cut."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from urllib.parse import urlsplit

import attrs
import trio

from actors.embedded_node import open_node
from actors.http.config import HttpConfig
from actors.node.config import NodeConfig
from tests.support.ports import free_port

DOMAIN = "a.example"
HERE = "127.0.0.1"

OPEN = """async (options) => {
    const { openRuntime } = await import("/web/protofly.js");
    window.steps = [];
    window.runtime = await openRuntime({ domain: "a.example", ...options });
    window.runtime.trace.listen((step) => window.steps.push(step));
    return window.runtime.url;
}"""


@attrs.define
class Served:
    """A node with pages.

    Attributes:
        url: Where runtimes dial it.
        site: Where its pages are.
    """

    url: str
    site: str

    @property
    def page(self) -> str:
        return f"{self.site}/web/example/index.html"


@asynccontextmanager
async def open_served_node(trace=None, **more) -> AsyncIterator[Served]:
    """Run a node that serves the module, and accepts runtimes of its pages."""
    port = free_port()
    site = f"http://{HERE}:{port}"
    config = NodeConfig(
        domain=DOMAIN,
        http=HttpConfig(f"{HERE}:{port}"),
        origins=frozenset({site}),
        **({"allow_legacy": True} | more),
    )
    async with open_node(config, trace=trace) as node:
        yield Served(node.url, site)


@attrs.define(eq=False)
class Wire:
    """A way to a node that the test can cut; `url` leads through it."""

    url: str
    scopes: set[trio.CancelScope] = attrs.field(factory=set)
    carried: int = 0

    def cut(self) -> None:
        """End all connections at once."""
        for scope in self.scopes:
            scope.cancel()

    async def carry(self, target: tuple[str, int], near: trio.SocketStream) -> None:
        with trio.CancelScope() as scope:
            self.scopes.add(scope)
            self.carried += 1
            try:
                far = await trio.open_tcp_stream(*target)
                async with near, far, trio.open_nursery() as nursery:
                    nursery.start_soon(_pump, near, far, scope)
                    nursery.start_soon(_pump, far, near, scope)
            except OSError:
                await trio.aclose_forcefully(near)
            finally:
                self.scopes.discard(scope)


async def _pump(
    source: trio.SocketStream, sink: trio.SocketStream, scope: trio.CancelScope
) -> None:
    try:
        async for chunk in source:
            await sink.send_all(chunk)
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        pass
    scope.cancel()


@asynccontextmanager
async def open_wire(url: str) -> AsyncIterator[Wire]:
    """Listen on a port of its own, and carry what comes to the node at `url`."""
    there = urlsplit(url)
    (listener,) = await trio.open_tcp_listeners(0, host=HERE)
    port = listener.socket.getsockname()[1]
    wire = Wire(f"ws://{HERE}:{port}{there.path}")
    async with trio.open_nursery() as nursery:
        carry = partial(wire.carry, (there.hostname, there.port))
        nursery.start_soon(trio.serve_listeners, carry, [listener])
        yield wire
        nursery.cancel_scope.cancel()
