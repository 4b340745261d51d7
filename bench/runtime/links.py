"""What TLS costs a direct link: round trips over links with it and without, and set-ups.

The round trips are of the transports alone, in one process, both by turns. Runtimes have no links
without TLS, so a set-up is shown without a peer.
"""

import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Final, final

import attrs
import click
import trio

from actors.hyperties import Caller, Echo
from actors.keys.certificate import make_certificate
from actors.kit.log import configure_log
from actors.kit.trace import NULL_TRACER
from actors.node.app import open_node
from actors.node.config import NodeConfig
from actors.runtime.app import open_runtime
from actors.runtime.config import RuntimeConfig
from bench.verdict import Verdict
from transports.errors import LinkError
from transports.link import FRAMED, Everybody, Kind, Link, Network
from transports.system import open_system_network
from transports.tls import PinnedTls

REACH: Final = 1.5
"""What a round trip with TLS must stay under, in those without."""

_FRAME: Final = b"x" * 600
"""About a request."""

_WARM_UP: Final = 50
_DOMAIN: Final = "a.example"


@final
@attrs.frozen
class Figures:
    """Medians over rounds, for one kind of link.

    Attributes:
        plain: Microseconds of a round trip without TLS.
        tls: The same with TLS.
        ratio: The one in the other, median over rounds.
        set_up: Milliseconds from the first request between two runtimes to their link.
    """

    plain: float
    tls: float
    ratio: float
    set_up: float


async def measure(kind: Kind, trips: int, rounds: int) -> Figures:
    """Measure links of one kind."""
    async with open_system_network() as network:
        with TemporaryDirectory() as folder:
            async with (
                _link(network, kind, Path(folder) / "plain", None) as plain,
                _link(network, kind, Path(folder) / "tls", _ends()) as encrypted,
            ):
                for link in (plain, encrypted):
                    await _round(link, _WARM_UP)
                taken = [
                    (await _round(plain, trips), await _round(encrypted, trips))
                    for _ in range(rounds)
                ]
        set_ups = [await _set_up(network, kind) for _ in range(rounds + 1)]
    return Figures(
        plain=median(one for one, _ in taken),
        tls=median(other for _, other in taken),
        ratio=median(other / one for one, other in taken),
        set_up=median(set_ups[1:]),
    )


def _ends() -> tuple[PinnedTls, PinnedTls]:
    """Return the TLS of two ends that expect each other."""
    certificates = make_certificate(), make_certificate()
    listening, dialling = PinnedTls(lambda: certificates[0]), PinnedTls(lambda: certificates[1])
    listening.pin(certificates[1].der)
    dialling.pin(certificates[0].der)
    return listening, dialling


@asynccontextmanager
async def _link(
    network: Network, kind: Kind, where: Path, ends: tuple[PinnedTls, PinnedTls] | None
) -> AsyncIterator[Link]:
    """Open a link whose other end sends back what it receives."""
    gate = Everybody() if ends is None else Everybody(ends[0].listening)
    place = str(where) if kind is Kind.UNIX else "127.0.0.1:0"
    async with network.listen(kind, place, gate=gate) as listener, trio.open_nursery() as nursery:

        async def echo() -> None:
            link = await listener.accept()
            try:
                while True:
                    await link.send(await link.receive())
            except LinkError:
                await trio.aclose_forcefully(link)

        nursery.start_soon(echo)
        address = listener.address + ("/link" if kind is Kind.WEBSOCKET else "")
        tls = None if ends is None else ends[1].dialling
        link = await network.dial(kind, address, tls=tls)
        yield link
        await trio.aclose_forcefully(link)


async def _round(link: Link, trips: int) -> float:
    """Return the median of round trips in microseconds."""
    taken: list[int] = []
    for _ in range(trips):
        began = time.perf_counter_ns()
        await link.send(_FRAME)
        await link.receive()
        taken.append(time.perf_counter_ns() - began)
    return median(taken) / 1e3


async def _set_up(network: Network, kind: Kind) -> float:
    """Return the milliseconds in which two new runtimes have a link."""
    config = NodeConfig(domain=_DOMAIN)
    async with open_node(config, network, NULL_TRACER) as node:
        common = partial(RuntimeConfig, domain=_DOMAIN, node=node.url, kinds=(kind,))
        async with (
            open_runtime(common(name="bob"), network, NULL_TRACER) as bob,
            open_runtime(common(name="alice"), network, NULL_TRACER) as alice,
        ):
            caller = Caller()
            echo = await bob.deploy("echo", Echo)
            await alice.deploy("caller", lambda: caller)
            began = time.perf_counter()
            await caller.request(echo, {"number": 0})
            while [one.status.value for one in await alice.links()] != ["live"]:  # noqa: ASYNC110
                await trio.sleep(0.001)
            return (time.perf_counter() - began) * 1e3


@click.command()
@click.option("--trips", default=2000, show_default=True, help="Round trips in a round.")
@click.option("--rounds", default=5, show_default=True, help="Rounds the median is over.")
@click.option("--kind", "kinds", type=click.Choice([*map(str, FRAMED)]), multiple=True)
@click.option("--json", "as_json", is_flag=True, help="One object instead of a table.")
def main(trips: int, rounds: int, kinds: Sequence[str], *, as_json: bool) -> None:
    """Measure direct links with TLS against links without."""
    configure_log()
    wanted = tuple(map(Kind, kinds)) or FRAMED
    figures = {kind: trio.run(measure, kind, trips, rounds) for kind in wanted}
    kind = max(figures, key=lambda one: figures[one].ratio)
    Verdict(
        bench="links",
        what=f"us of a round trip over a link of {kind} with TLS / without",
        ours=figures[kind].tls,
        peer=figures[kind].plain,
        ratio=figures[kind].ratio,
        reach=REACH,
        missed=tuple(
            f"{kind}: {one.ratio:.2f}x, reach {REACH:.2f}x"
            for kind, one in figures.items()
            if one.ratio > REACH
        ),
        not_measured=("links between two machines", "what messages cost beside their link"),
        figures={"kinds": {str(kind): attrs.asdict(one) for kind, one in figures.items()}},
    ).tell(as_json=as_json)


if __name__ == "__main__":
    main()
