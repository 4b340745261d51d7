"""The demonstration as a page: a node that serves it, and a runtime with the robot."""

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final
from urllib.parse import urlencode

from actors.demo.robot import CHAT, TODO, Robot
from actors.embedded_node import open_node
from actors.embedding import open_runtime
from actors.http.config import HttpConfig
from actors.http.web_files import WEB
from actors.node.config import NodeConfig
from actors.runtime.config import RuntimeConfig
from actors.runtime.stubs.stub import LOOPBACK
from fsm.p2p.link_policy import LinkPolicy, P2pUse, PeerPolicy
from transports.link import Kind
from transports.urls import own_origin, read_host_port
from transports.webrtc.process import is_webrtc_installed

__all__ = ["DOMAIN", "open_web_demo"]

DOMAIN: Final = "demo.example"

_PAGE: Final = f"{WEB}demo/index.html"
_ROUTED: Final = ("192.0.2.1", 9)
"""An address that nobody has (RFC 5737); nothing is sent to it."""


@asynccontextmanager
async def open_web_demo(place: str, trace: Path | None = None) -> AsyncIterator[str]:
    """Run node and robot while the context is open.

    Args:
        place: `host:port` of the page; port 0 picks a free one.
        trace: Directory for the traces of both; None: none are written.

    Yields:
        The URL of the page.

    Raises:
        HttpPlaceError: The page cannot be served at the place.
        ListenError: The node cannot listen on this machine.
    """
    host, port = read_host_port(place)
    port = port or _free_port(host)
    origin = own_origin(host, port, is_encrypted=False)
    node_config = NodeConfig(
        domain=DOMAIN,
        http=HttpConfig(f"{host}:{port}"),
        origins=frozenset({origin, f"http://localhost:{port}"}),
    )
    async with (
        open_node(node_config, trace=trace) as node,
        open_runtime(_robot_config(node.url), trace=trace) as runtime,
    ):
        robot = Robot()
        async with (
            await runtime.deploy(lambda: robot, "robot", resources=("demo",)) as me,
            me.report("comm", {"people": [], "lines": []}, definition=CHAT) as chat,
            me.report("ctxt", {"items": []}, definition=TODO) as todo,
        ):
            await robot.begin(me.url, runtime.url, chat, todo)
            yield f"{origin}{_PAGE}#{urlencode({'node': node.url, 'robot': me.url})}"


def _robot_config(node: str) -> RuntimeConfig:
    """Configure the runtime of the robot: with data channels, where they are possible."""
    host = _own_address() if is_webrtc_installed() else None
    peers = (PeerPolicy(DOMAIN, P2pUse.WHENEVER_POSSIBLE),)
    return RuntimeConfig(
        domain=DOMAIN,
        name="robot",
        node=node,
        kinds=() if host is None else (Kind.WEBRTC,),
        p2p_host=host or LOOPBACK,
        links=LinkPolicy(P2pUse.WHENEVER_POSSIBLE, peers),
    )


def _own_address() -> str | None:
    """Return an address of this machine that pages on it can use; None: it has no network.

    Browsers use no loopback address for data channels.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(_ROUTED)
        except OSError:
            return None
        host, _ = probe.getsockname()
    return str(host)


def _free_port(host: str) -> int:
    """Return a free port: the node has to know the origin of its pages before it listens."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, 0), family=family) as probe:
        return int(probe.getsockname()[1])
