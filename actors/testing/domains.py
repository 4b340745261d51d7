"""Complete domains in memory: nodes and runtimes, on the clock of the test."""

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from random import Random
from typing import Final, final

import attrs

from actors.embedded_node import open_node
from actors.embedding import Runtime, open_runtime
from actors.node.app import Node
from actors.node.config import NodeConfig
from actors.runtime.config import RuntimeConfig
from actors.testing.chaos.network import ChaosNetwork
from actors.testing.recorder import Recorder
from transports.link import Kind
from transports.memory import MemoryNetwork

__all__ = ["Domain", "Domains", "chaos"]

_DOMAIN: Final = "a.example"


@final
@attrs.frozen
class Domain:
    """Running domain of a test, with its node and runtimes; `domain["ra"]` is its runtime `ra`.

    Attributes:
        name: Name of the domain; toxics name its node's end of a link by it.
        node: Its message node.
        runtimes: Its runtimes, by name; toxics name their ends of a link by it.
    """

    name: str
    node: Node
    runtimes: Mapping[str, Runtime]

    def __getitem__(self, name: str) -> Runtime:
        try:
            return self.runtimes[name]
        except KeyError:
            known = ", ".join(self.runtimes) or "none"
            raise KeyError(f"{self.name} has no runtime {name!r}; there are: {known}") from None


@final
class Domains:
    """Opens domains; addresses and secrets are the same in every run."""

    def __init__(self, chaos: ChaosNetwork, recorder: Recorder) -> None:
        self._chaos: Final = chaos
        self._recorder: Final = recorder

    @asynccontextmanager
    async def __call__(
        self, *runtimes: str, name: str = _DOMAIN, kinds: tuple[Kind, ...] = ()
    ) -> AsyncIterator[Domain]:
        """Run a node and its runtimes while the context is open.

        When the block is left, the runtimes leave and then the node drains.

        Args:
            runtimes: Names of the runtimes.
            name: Name of the domain.
            kinds: Kinds of direct links between the runtimes, best first; empty: no direct links.

        Yields:
            The running domain.

        If cancelled, runtimes and node still leave in order, within their own time limits.

        Raises:
            ValueError: A name was used before in the same trace.
            BadUrlError: A name cannot be part of an address.
        """
        async with self.several({name: runtimes}, kinds) as (domain,):
            yield domain

    @asynccontextmanager
    async def several(
        self, wanted: Mapping[str, Iterable[str]], kinds: tuple[Kind, ...] = ()
    ) -> AsyncIterator[tuple[Domain, ...]]:
        """Run domains that can reach each other while the context is open.

        When the block is left, all runtimes leave and then all nodes drain.

        Args:
            wanted: Names of the runtimes, by name of their domain; each name is used once.
            kinds: Kinds of direct links between the runtimes, best first; empty: no direct links.

        Yields:
            The running domains, in the order of `wanted`.

        If cancelled, runtimes and nodes still leave in order, within their own time limits.

        Raises:
            ValueError: A name was used before in the same trace.
            BadUrlError: A name cannot be part of an address.
        """
        async with AsyncExitStack() as stack:
            nodes = {name: await self._node(stack, name) for name in wanted}
            places = {name: node.url for name, node in nodes.items()}
            opened: list[Domain] = []
            for domain, runtimes in wanted.items():
                configs = {
                    name: _config(domain, name, places, kinds) for name in dict.fromkeys(runtimes)
                }
                running = {
                    name: await self._runtime(stack, config) for name, config in configs.items()
                }
                opened.append(Domain(domain, nodes[domain], running))
            yield tuple(opened)

    async def _node(self, stack: AsyncExitStack, name: str) -> Node:
        config = NodeConfig(domain=name, entropy=_entropy(name))
        tracer = stack.enter_context(self._recorder.process(name))
        network = self._chaos.end(name)
        return await stack.enter_async_context(open_node(config, network=network, trace=tracer))

    async def _runtime(self, stack: AsyncExitStack, config: RuntimeConfig) -> Runtime:
        tracer = stack.enter_context(self._recorder.process(config.name))
        network = self._chaos.end(config.name)
        return await stack.enter_async_context(open_runtime(config, network=network, trace=tracer))


def chaos() -> ChaosNetwork:
    """Return a network in memory without faults, whose random choices are the same in every run."""
    return ChaosNetwork(MemoryNetwork(), Random(0))  # noqa: S311 - reproducible, not secret


def _config(
    domain: str, name: str, nodes: Mapping[str, str], kinds: tuple[Kind, ...]
) -> RuntimeConfig:
    others = {other: url for other, url in nodes.items() if other != domain}
    return RuntimeConfig(
        domain=domain,
        name=name,
        node=nodes[domain],
        nodes=others,
        kinds=kinds,
        entropy=_entropy(f"{domain}/{name}"),
    )


def _entropy(seed: str) -> Callable[[int], bytes]:
    return Random(seed).randbytes  # noqa: S311 - reproducible, not secret
