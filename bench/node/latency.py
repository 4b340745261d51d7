"""How long a message takes by the node when it has little to do, beside a bare relay.

A plain connection sends 200 messages a second to another; both are read and written by system
calls alone, so that the time is that of the node. The relay of `bench.node.relay` is measured in
the same run, by turns.
"""

import gc
import socket
import time
from functools import partial
from statistics import median
from typing import Final, final

import attrs
import click
import orjson
import trio

from bench.node.crowd import UNLIMITED, Crowded, Peer, percentile, quiet_node
from bench.node.routed import be_known, open_relay
from bench.verdict import Verdict

REACH: Final = 2.5
"""The median time of the node, in those of the relay."""

_PAUSE: Final = 1 / 200
_READ: Final = 65_536
_VALUE: Final = "x" * 100


@final
@attrs.frozen
class Figures:
    """Milliseconds of a message, of one round.

    Attributes:
        p50: The median.
        p99: Of the slowest in a hundred.
    """

    p50: float
    p99: float


async def _round(server: Crowded, name: str, messages: int) -> Figures:
    sender, receiver = Peer(f"s{name}"), Peer(f"r{name}")
    for peer in (sender, receiver):
        await peer.be_plain(server.place)
        await be_known(peer)
    text = orjson.dumps({
        "id": 7, "type": "create", "from": f"{sender.runtime}/ua",
        "to": f"{receiver.runtime}/ua", "body": {"value": _VALUE},
    })  # fmt: skip
    with sender.plain_socket() as out, receiver.plain_socket() as in_:
        taken = await trio.to_thread.run_sync(_timed, out, in_, Peer.framed(text), messages)
    sender.close()
    receiver.close()
    return Figures(percentile(taken, 50) * 1e3, percentile(taken, 99) * 1e3)


def _timed(out: socket.socket, in_: socket.socket, frame: bytes, messages: int) -> list[float]:
    """Send at an even pace; return the seconds until the first bytes of each were there."""
    taken = []
    in_.settimeout(10)
    begun = time.perf_counter()
    for number in range(messages):
        time.sleep(max(0.0, begun + number * _PAUSE - time.perf_counter()))
        sent = time.perf_counter()
        out.sendall(frame)
        while b"}" not in in_.recv(_READ):
            pass  # the node asks for a sign of life
        taken.append(time.perf_counter() - sent)
    return taken[messages // 10 :]


async def measure(messages: int, rounds: int) -> tuple[list[Figures], list[Figures]]:
    """Measure the node and the relay by turns; return a figure of each for each round."""
    ours, bare = [], []
    async with quiet_node(*UNLIMITED) as node, open_relay() as relay:
        for number in range(rounds):
            ours.append(await _round(node, f"n{number}", messages))
            bare.append(await _round(relay, f"n{number}", messages))
    return ours, bare


@click.command()
@click.option("--messages", default=600, show_default=True, help="Messages of a round.")
@click.option("--rounds", default=5, show_default=True, help="Rounds the median is over.")
@click.option("--json", "as_json", is_flag=True, help="One object instead of sentences.")
def main(*, messages: int, rounds: int, as_json: bool) -> None:
    """Measure the time of a message by the node; exit 1 if it is too long."""
    gc.disable()
    ours, bare = trio.run(partial(measure, messages, rounds))
    ratio = median(a.p50 / b.p50 for a, b in zip(ours, bare, strict=True))
    Verdict(
        bench="latency",
        what="ms p50 of a message at 200 a second, by the node / by a bare relay",
        ours=median(one.p50 for one in ours),
        peer=median(one.p50 for one in bare),
        ratio=ratio,
        reach=REACH,
        missed=() if ratio <= REACH else (f"p50 {ratio:.2f}x",),
        figures={
            "p99": median(one.p99 for one in ours),
            "relay p99": median(one.p99 for one in bare),
        },
    ).tell(as_json=as_json)


if __name__ == "__main__":
    main()
