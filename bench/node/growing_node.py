"""What a node needs as a domain grows: sessions, addresses, and registrations when it starts.

The same messages are routed while more and more sessions or addresses stand beside them; a
registry with more and more records is read by a node that starts, and searched. Nothing of it may
grow faster than n log n.
"""

import gc
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, TypeAlias

import click
import orjson
import trio

from actors.node.registry.record_file import SqliteRecords
from bench.node.crowd import (
    DOMAIN,
    UNLIMITED,
    Crowded,
    CrowdError,
    Peer,
    quiet_node,
    raise_file_limit,
)
from bench.node.routed import ALLOCATION, routed
from bench.verdict import Verdict
from fsm.machines.registration import State
from fsm.registry.records import Row
from specs.jsonvalue import JsonObject
from specs.limits.protocol import MAX_ADDRESSES, MAX_ALLOCATION, MAX_DOMAIN_ADDRESSES
from specs.reply_code import Code

REACH: Final = 1.5
"""The cost of one at the largest size, in costs at the smallest but one."""

Curve: TypeAlias = dict[int, dict[str, float]]
"""Figures by size."""

_AT_ONCE: Final = 64
_REGISTRY: Final = f"domain://registry.{DOMAIN}"
_SPARE: Final = 1000
"""Addresses of the domain that are left to those that talk."""

_OWNED: Final = 4
_SEARCHES: Final = 500
_WARM: Final = 50
_PATIENCE: Final = 600.0


def _steps(most: int, least: int) -> Iterator[int]:
    """Return the powers of ten between two."""
    size = least
    while size <= most:
        yield size
        size *= 10


async def _at_once(jobs: Iterator[Callable[[], Awaitable[None]]]) -> None:
    async def work() -> None:
        for job in jobs:
            await job()

    async with trio.open_nursery() as nursery:
        for _ in range(_AT_ONCE):
            nursery.start_soon(work)


async def _answer(peer: Peer, request: dict[str, object]) -> dict[str, object]:
    """Ask the node something, and return its answer's body."""
    await peer.send(orjson.dumps(request))
    while True:
        answer = orjson.loads(await peer.receive())
        if answer["type"] == "response" and answer["id"] == request["id"]:
            if answer["body"]["code"] != Code.OK:
                raise CrowdError(f"refused: {answer}")
            return answer["body"]


async def _idle(peer: Peer) -> None:
    """Answer signs of life."""
    while True:
        await peer.receive()


async def sessions(most: int, messages: int) -> Curve:
    """Return the cost of a message, and the memory of a session, by the number of idle ones."""
    curve: Curve = {}
    async with quiet_node(*UNLIMITED) as node, trio.open_nursery() as nursery:
        await routed(node, "warm", 100, messages)

        async def come(name: str) -> None:
            peer = Peer(name)
            await peer.be_plain(node.place)
            nursery.start_soon(_idle, peer)

        there, empty = 0, node.memory()
        for size in _steps(most, 10):
            await _at_once(partial(come, f"idle-{number}") for number in range(there, size))
            there = size
            grown = (node.memory() - empty) / size / 1024
            curve[size] = {"us": await _cost(node, f"s{size}", messages), "kib": grown}
        nursery.cancel_scope.cancel()
    return curve


async def addresses(most: int, messages: int) -> Curve:
    """Return the same by the number of addresses that sessions hold, and their memory."""
    curve: Curve = {}
    async with quiet_node(*UNLIMITED) as node, trio.open_nursery() as nursery:
        await routed(node, "warm", 100, messages)
        there, empty = 0, node.memory()
        for size in _steps(most, 100):
            held = min(size, MAX_DOMAIN_ADDRESSES - _SPARE)
            while there < held:
                some = min(held - there, MAX_ADDRESSES)
                peer = Peer(f"holder-{there}")
                await peer.be_ours(node.place)
                await _hold(peer, some)
                nursery.start_soon(_idle, peer)
                there += some
            grown = (node.memory() - empty) / size / 1024
            curve[size] = {"us": await _cost(node, f"a{size}", messages), "kib": grown}
        nursery.cancel_scope.cancel()
    return curve


async def _hold(peer: Peer, count: int) -> None:
    """Have so many addresses allocated."""
    for number, start in enumerate(range(0, count, MAX_ALLOCATION)):
        value = {"number": min(MAX_ALLOCATION, count - start)}
        request = {"id": 100 + number, "type": "create", "from": f"{peer.runtime}/ua"}
        body = {"scheme": "hyperty", "value": value}
        await _answer(peer, {**request, "to": ALLOCATION, "body": body})


async def _cost(node: Crowded, name: str, messages: int) -> float:
    """Return microseconds of the node's CPU for a routed message: the median of three."""
    taken = [(await routed(node, f"{name}-{n}", 100, messages)).cpu for n in range(3)]
    return sorted(taken)[1]


async def registrations(most: int) -> Curve:
    """Return what a node needs for the records it finds when it starts, by their number."""
    curve: Curve = {}
    for size in _steps(most, 1000):
        with TemporaryDirectory() as folder:
            path = Path(folder, "registry.sqlite")
            await _write(path, size)
            begun = time.perf_counter()
            async with quiet_node(*UNLIMITED, "--registry", str(path)) as node:
                took = time.perf_counter() - begun
                memory = node.memory()
                search = await _searched(node, size)
        curve[size] = {"seconds": took, "mib": memory / 2**20, "search_us": search}
    return curve


async def _write(path: Path, size: int) -> None:
    now = time.time()  # noqa: TID251 - a file as an earlier node left it
    with closing(SqliteRecords(path)) as file:
        file.load()
        for start in range(0, size, 10_000):
            some = range(start, min(start + 10_000, size))
            rows = [_row(number, now) for number in some]
            await file.commit([(row.url, row) for row in rows])


def _row(number: int, now: float) -> Row:
    url, runtime = f"hyperty://{DOMAIN}/h-{number}", f"hyperty-runtime://{DOMAIN}/r-{number}"
    user = f"user://{DOMAIN}/u-{number // _OWNED}"
    value: JsonObject = {
        "url": url, "user": user, "runtime": runtime, "hypertyName": f"name-{number}",
        "dataSchemes": ["comm"], "resources": ["chat"],
    }  # fmt: skip
    return Row(url, runtime, State.LIVE, now, value, number)


async def _searched(node: Crowded, size: int) -> float:
    """Return microseconds of the node's CPU for a search of the records of a user."""
    peer = Peer("searcher")
    await peer.be_ours(node.place)
    users, spent = size // _OWNED, 0.0
    for number in range(_WARM + _SEARCHES):
        if number == _WARM:
            spent = node.cpu()
        resource = f"user://{DOMAIN}/u-{number * 7919 % users}"
        request = {"id": 100 + number, "type": "read", "from": f"{peer.runtime}/ua"}
        await _answer(peer, {**request, "to": _REGISTRY, "body": {"resource": resource}})
    peer.close()
    return (node.cpu() - spent) / _SEARCHES * 1e6


def _missed(name: str, curve: Curve, figure: str, *, per_one: bool) -> Iterator[str]:
    """Yield a sentence if a figure has grown by more than `REACH`."""
    sizes = list(curve)
    first, last = sizes[min(1, len(sizes) - 1)], sizes[-1]
    costs = [curve[size][figure] / (size if per_one else 1) for size in (first, last)]
    if costs[1] > REACH * costs[0]:
        yield f"{name}: {costs[1] / costs[0]:.2f}x from {first:,} to {last:,}"


@click.command()
@click.option("--most-sessions", default=10_000, show_default=True)
@click.option("--most-addresses", default=1_000_000, show_default=True)
@click.option("--most-records", default=1_000_000, show_default=True)
@click.option("--messages", default=8000, show_default=True, help="Messages of a measurement.")
@click.option("--json", "as_json", is_flag=True, help="One object instead of sentences.")
def main(
    *, most_sessions: int, most_addresses: int, most_records: int, messages: int, as_json: bool
) -> None:
    """Measure a node that grows; exit 1 if one of many costs more than one of few."""
    raise_file_limit()
    gc.disable()  # a pause of ours would be waited for by the node

    async def measure() -> tuple[Curve, Curve, Curve]:
        with trio.fail_after(_PATIENCE):
            return (
                await sessions(most_sessions, messages),
                await addresses(most_addresses, messages),
                await registrations(most_records),
            )

    by_sessions, by_addresses, by_records = trio.run(measure)
    few, *_, many = by_sessions.values()
    Verdict(
        bench="growing_node",
        what="us of the node's CPU for a message among most sessions / among few",
        ours=many["us"],
        peer=few["us"],
        ratio=many["us"] / few["us"],
        reach=REACH,
        missed=(
            *_missed("a message, by sessions", by_sessions, "us", per_one=False),
            *_missed("a message, by addresses", by_addresses, "us", per_one=False),
            *_missed("a start, for each record", by_records, "seconds", per_one=True),
            *_missed("a search, by records", by_records, "search_us", per_one=False),
        ),
        not_measured=("sessions that talk: `bench.node.load --full`",),
        figures={"sessions": by_sessions, "addresses": by_addresses, "records": by_records},
    ).tell(as_json=as_json)


if __name__ == "__main__":
    main()
