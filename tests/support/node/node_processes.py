"""Nodes of one domain as processes over a NATS server, and runtimes that a balancer spreads."""

import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import attrs
import orjson

import actors
from actors.dev.environment import LocalLogin
from actors.keys.signing import SigningKey, make_domain_key, make_key
from tests.support.command import Serving, serving
from tests.support.nats_server import NatsServer
from transports.errors import LinkError
from transports.link import Link, Network
from transports.system import open_system_network

DOMAIN = "a.example"


@attrs.define
class Balancer(Network):
    """Dials the first node that listens, as a load balancer in front of the nodes would."""

    network: Network
    urls: list[str]

    async def dial(self, kind, address, *more) -> Link:
        *most, last = self.urls
        for url in most:
            try:
                return await self.network.dial(kind, url, *more)
            except LinkError:
                continue
        return await self.network.dial(kind, last, *more)

    def listen(self, *about):
        return self.network.listen(*about)


@attrs.define
class NodeProcesses:
    """Nodes of one domain, and what its runtimes need."""

    folder: Path
    signer: SigningKey
    network: Network
    nodes: list[Serving]

    @asynccontextmanager
    async def runtime(
        self, name: str, at: int, urls: list[str] | None = None
    ) -> AsyncIterator[actors.Runtime]:
        """Open a runtime that prefers a node, and goes to the next one in turn.

        `urls`: the nodes that it can reach instead, which may change.
        """
        urls = urls or [node.url for node in (*self.nodes[at:], *self.nodes[:at])]
        config = actors.RuntimeConfig(
            domain=DOMAIN,
            name=name,
            node=urls[0],
            credentials=LocalLogin(self.signer, f"user://{DOMAIN}/{name}", DOMAIN),
        )
        balancer = Balancer(self.network, urls)
        trace = self.folder / "runtimes"
        async with actors.open_runtime(config, network=balancer, trace=trace) as runtime:
            yield runtime


@asynccontextmanager
async def open_nodes(folder: Path, server: NatsServer, count: int) -> AsyncIterator[NodeProcesses]:
    """Run nodes that log people in by one key; each writes its trace into a folder of its own."""
    signer = make_key("EdDSA")
    keys, domain_key = folder / "jwks.json", folder / "domain-key.json"
    keys.write_bytes(orjson.dumps({"keys": [signer.public()]}))
    domain_key.write_bytes(orjson.dumps(make_domain_key(os.urandom(32)).private()))
    domain_key.chmod(0o600)
    options = ("--domain", DOMAIN, "--engine", server.url, "--jwks", str(keys))
    options += ("--domain-key", str(domain_key))
    async with AsyncExitStack() as stack:
        network = await stack.enter_async_context(open_system_network())
        nodes = []
        for number in range(count):
            its = ("--node-name", f"n{number}", "--trace", str(folder / f"n{number}"))
            nodes.append(await stack.enter_async_context(serving("node", *options, *its)))
        yield NodeProcesses(folder, signer, network, nodes)
