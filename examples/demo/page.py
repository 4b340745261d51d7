"""The page of the demonstration: a node that serves it, and a runtime with the robot."""

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlencode

import attrs

import actors
from examples.demo.robot import open_robot

DOMAIN = "demo.example"
PAGE = "/web/demo/index.html"
LINKS = actors.P2pUse.WHENEVER_POSSIBLE
ROUTED = ("192.0.2.1", 9)
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
        OpenMetricsError: The place can be reached from other machines.
        ListenError: The node cannot listen on this machine.
    """
    host, _, port = place.rpartition(":")
    if port.isdecimal():  # else the node says what is wrong
        port = str(int(port) or free_port(host))
    if ":" in host:
        host = f"[{host.strip('[]')}]"
    # Browsers leave out the usual port.
    origin, other = (f"http://{name}:{port}".removesuffix(":80") for name in (host, "localhost"))
    node_config = actors.NodeConfig(
        domain=DOMAIN,
        http=actors.HttpConfig(f"{host}:{port}"),
        origins=frozenset({origin, other}),
    )
    async with (
        actors.open_node(node_config, trace=trace) as node,
        actors.open_runtime(robot_config(node.url), trace=trace) as runtime,
        open_robot(runtime) as robot,
    ):
        yield f"{origin}{PAGE}#{urlencode({'node': node.url, 'robot': robot})}"


def robot_config(node: str) -> actors.RuntimeConfig:
    """Configure the runtime of the robot: with data channels, where they are possible."""
    # Only peers that the policy names are given addresses of the local network.
    links = actors.LinkPolicy(LINKS, (actors.PeerPolicy(DOMAIN, LINKS),))
    config = actors.RuntimeConfig(domain=DOMAIN, name="robot", node=node, links=links)
    host = own_address()
    if host is None or find_spec("aiortc") is None:  # without the extra `webrtc`
        return config
    return attrs.evolve(config, kinds=(actors.Kind.WEBRTC,), p2p_host=host)


def own_address() -> str | None:
    """Return an address of this machine that pages on it can use; None: it has no network.

    Browsers use no loopback address for data channels.
    """
    with suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(ROUTED)
        return str(probe.getsockname()[0])
    return None


def free_port(host: str) -> int:
    """Return a free port: the node has to know the origin of its pages before it listens.

    At a place that cannot be used it is 0: the node says why.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with (
        suppress(OSError, UnicodeError),
        socket.create_server((host.strip("[]"), 0), family=family) as probe,
    ):
        return int(probe.getsockname()[1])
    return 0
