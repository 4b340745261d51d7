"""A hyperty in a process of its own that misbehaves: what two others notice (RELIABILITY R11).

A runtime in which two hyperties go on asking each other. In each round first beside a third
in a sandbox process that is quiet, then while that one ends again and again, hangs,
floods, writes to its stderr without end, or spins; when the runtime has given it up, there is
another at once.
"""

from functools import partial

import click
import trio

from actors.hyperties import Caller, Echo
from actors.kit.log import Level, configure_log
from actors.kit.trace import NULL_TRACER
from actors.node.app import open_node
from actors.node.config import NodeConfig
from actors.runtime.app import open_runtime
from actors.runtime.config import RuntimeConfig
from actors.runtime.isolation.hyperty import HypertyCode
from actors.runtime.runtime import Runtime
from bench.runtime.beside import Pair, judged, p99, taken
from specs.reply_code import Code
from tests.support.runtime.rough import Rough
from transports.memory import MemoryNetwork
from transports.sockets import open_background

_DOMAIN = "a.example"
_HOW = ("exit", "hang", "flood", "shout", "spin")
_PATIENCE = 120.0


class _Provoked:
    """The one that misbehaves.

    Attributes:
        harms: How often it did.
        begun: Set when it surely does.
    """

    def __init__(self, runtime: Runtime, caller: Caller) -> None:
        self._runtime = runtime
        self._caller = caller
        self._url = ""
        self.harms = 0
        self.begun = trio.Event()

    async def deploy(self) -> None:
        self._url = (await self._runtime.settle_apart("rough", HypertyCode.of(Rough))).url
        await self._caller.request(self._url, "well?")

    async def provoke(self, how: str) -> None:
        """Make it misbehave, and again whenever it is there again."""
        while True:
            async with open_background() as background:
                background.start_soon(self._caller.request, self._url, how)
                self.harms += 1
                await trio.sleep(0.2)
                self.begun.set()
                while (code := await self._code()) == Code.UNAVAILABLE:  # noqa: ASYNC110 - there is no event
                    await trio.sleep(0.1)
            if code == Code.NOT_FOUND:
                await self.deploy()

    async def _code(self) -> int:
        """Ask whether it is well; it is not answered while it is not."""
        return (await self._caller.request(self._url, "well?")).code


async def _measure(runtime: Runtime, how: str) -> Pair:
    caller, other = Caller(), Caller()
    await runtime.deploy("caller", lambda: caller)
    await runtime.deploy("other", lambda: other)
    ask = partial(caller.request, await runtime.deploy("echo", Echo), 1)
    provoked = _Provoked(runtime, other)
    await provoked.deploy()
    quiet = await p99(ask)
    async with open_background() as background:
        background.start_soon(provoked.provoke, how)
        await provoked.begun.wait()
        return Pair(quiet, await p99(ask), provoked.harms)


async def _round(how: str) -> Pair:
    network = MemoryNetwork()
    async with open_node(NodeConfig(domain=_DOMAIN), network, NULL_TRACER) as node:
        config = RuntimeConfig(domain=_DOMAIN, name="r", node=node.url)
        with trio.fail_after(_PATIENCE):
            async with open_runtime(config, network, NULL_TRACER) as runtime:
                return await _measure(runtime, how)


@click.command("bench.runtime.hostile_hyperty")
@click.option("--rounds", default=3, show_default=True, help="Rounds the medians are over.")
@click.option("--how", "hows", type=click.Choice(_HOW), multiple=True, help="All if not given.")
@click.option("--json", "as_json", is_flag=True, help="One object instead of sentences.")
def main(rounds: int, hows: tuple[str, ...], *, as_json: bool) -> None:
    """Measure what others notice of it; exit with 1 if that is too much."""
    configure_log(Level.ERROR)
    pairs = taken(rounds, hows or _HOW, lambda how: trio.run(_round, how))
    judged("hostile_hyperty", pairs).tell(as_json=as_json)


if __name__ == "__main__":
    main()
