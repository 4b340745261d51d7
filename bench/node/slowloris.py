"""Two thousand handshakes that never end: how long an honest one takes meanwhile (RELIABILITY L6).

The attackers come from twenty addresses of this machine, as many from each as the node
lets wait, and come again whenever they are dropped. The limits are the usual ones.
"""

import time
from functools import partial
from statistics import median
from typing import Final, final

import attrs
import click
import trio

from bench.node.crowd import Crowded, CrowdError, Peer, percentile, quiet_node, raise_file_limit
from bench.verdict import Verdict

REACH: Final = 500.0
"""Milliseconds an honest connection may take, of the slowest in a hundred (RELIABILITY L6)."""

_PER_HOST: Final = 100
_PAUSE: Final = 1.0


@final
@attrs.frozen
class Figures:
    """The measured figures.

    Attributes:
        attackers: Connections that never finish their handshake.
        honest: Sessions that were opened meanwhile.
        failed: Honest ones that were not let in.
        dropped: Connections of attackers that were dropped.
        stayed: Seconds the longest of them was there.
        p50: Milliseconds from the first packet of an honest one to its session.
        p99: The same of the slowest in a hundred.
        before: p50 without attackers.
    """

    attackers: int
    honest: int
    failed: int
    dropped: int
    stayed: float
    p50: float
    p99: float
    before: float


@final
class _Siege:
    def __init__(self, node: Crowded) -> None:
        self.node = node
        self.dropped = 0
        self.stayed: list[float] = []
        self.failed = 0

    async def attack(self, source: str, number: int) -> None:
        """Begin a handshake, wait until dropped, and begin again; not all at once."""
        await trio.sleep(number / 400)
        while True:
            began = time.perf_counter()
            peer = Peer(f"attacker-{number}", source)
            try:
                await peer.connect(self.node.place)
                await peer.knock("/link", "Sec-WebSocket-Protocol: protofly.v1")
                await peer.receive()
            except (CrowdError, OSError):
                self.dropped += 1
            finally:
                peer.close()
            self.stayed.append(time.perf_counter() - began)
            await trio.sleep(_PAUSE)

    async def visit(self, count: int, seconds: float, first: int) -> list[float]:
        """Open sessions at an even pace, each from another address; return how long each took."""
        taken: list[float] = []
        async with trio.open_nursery() as nursery:
            for number in range(first, first + count):
                nursery.start_soon(self._visit, number, taken)
                await trio.sleep(seconds / count)
        return taken

    async def _visit(self, number: int, taken: list[float]) -> None:
        peer = Peer(f"honest-{number}", f"127.1.{number // 250}.{1 + number % 250}")
        began = time.perf_counter()
        try:
            with trio.fail_after(10):
                await peer.be_ours(self.node.place)
        except (CrowdError, OSError, trio.TooSlowError):
            self.failed += 1
        taken.append((time.perf_counter() - began) * 1e3)
        peer.close()


async def measure(attackers: int, seconds: float) -> Figures:
    """Let honest peers come before and during an attack."""
    count = int(10 * seconds)
    async with quiet_node() as node, trio.open_nursery() as nursery:
        siege = _Siege(node)
        before = await siege.visit(50, 2.5, 0)
        for number in range(attackers):
            nursery.start_soon(siege.attack, f"127.0.1.{1 + number // _PER_HOST}", number)
        await trio.sleep(6.0)
        during = await siege.visit(count, seconds, 1000)
        nursery.cancel_scope.cancel()
    return Figures(
        attackers=attackers,
        honest=count,
        failed=siege.failed,
        dropped=siege.dropped,
        stayed=max(siege.stayed, default=0.0),
        p50=percentile(during, 50),
        p99=percentile(during, 99),
        before=median(before),
    )


@click.command()
@click.option("--attackers", default=2000, show_default=True, help="Handshakes that never end.")
@click.option("--seconds", default=15.0, show_default=True, help="How long the attack is watched.")
@click.option("--json", "as_json", is_flag=True, help="One object instead of sentences.")
def main(attackers: int, seconds: float, *, as_json: bool) -> None:
    """Measure honest connections during an attack; exit 1 if one failed or took too long."""
    raise_file_limit()
    figures = trio.run(partial(measure, attackers, seconds))
    ratio = figures.p99 / REACH
    too_slow = () if ratio <= 1.0 else (f"p99 of a handshake is over {REACH:.0f} ms",)
    failed = (f"{figures.failed} honest handshakes failed",) if figures.failed else ()
    Verdict(
        bench="slowloris",
        what="ms an honest handshake takes during the attack (p99) / ms it may take",
        ours=figures.p99,
        peer=REACH,
        ratio=ratio,
        reach=1.0,
        missed=(*too_slow, *failed),
        figures=attrs.asdict(figures),
    ).tell(as_json=as_json)


if __name__ == "__main__":
    main()
