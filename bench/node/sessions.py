"""What do sessions cost a node: when they come, while they stay, when they all come back?

Ordinary case: sessions come with login tokens and without, most are idle, all lose their
connections at once; and a node starts with the records of its registry. Best case: a message
between the same pairs while the others are idle, which shows whether they cost it anything.
"""

import time
from collections.abc import Iterator
from contextlib import AsyncExitStack, closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import orjson
import trio

from actors.keys.signing import SigningKey, make_key
from actors.node.registry.record_file import SqliteRecords
from bench.node.routed import PAIRS, REGISTRY, SAME, Crowd, open_crowd
from bench.peers import Peer, at_once, prepare_client
from bench.report import Case, Row, program
from bench.servers import DOMAIN, UNLIMITED, Server, open_node_process
from fsm.machines.registration import State
from fsm.registry.records import Row as Record
from specs.jsonvalue import JsonObject

_IDLE: Final = 24.0
"""Target: KiB of memory for an idle session."""

_BACK: Final = 15.0
"""Target: seconds until all sessions are resumed whose connections were lost at once."""

_GROWTH: Final = 1.5
"""Target: cost of a message with most idle sessions, as a multiple of the cost with few."""

_ALGORITHMS: Final = ("EdDSA", "RS256", "ES384")
_OTHER: Final = "127.0.0.2"
_OWNED: Final = 4
_SEARCHES: Final = 300
_LIFE: Final = 300


# --- logins


def _token(key: SigningKey, number: int) -> str:
    now = time.time_ns() // 1_000_000_000
    who: JsonObject = {"iss": DOMAIN, "sub": f"user://{DOMAIN}/alice", "aud": DOMAIN}
    return key.signed({**who, "iat": now, "exp": now + _LIFE, "jti": f"login-{number}"})


async def _opened(algorithm: str | None, sessions: int, folder: Path) -> float:
    """Return microseconds of CPU of a node to open a session, with a token or without."""
    tokens, options = [""] * sessions, list(UNLIMITED)
    if algorithm is not None:
        key, file = make_key(algorithm), folder / f"{algorithm}.json"
        file.write_bytes(orjson.dumps({"keys": [key.public()]}))
        options += ["--jwks", str(file)]
        tokens = [_token(key, number) for number in range(sessions)]

    async def come(number: int) -> None:
        peer = Peer(f"login{number}")
        await peer.be_ours(node.place, tokens[number])
        peer.close()

    async with open_node_process(*options) as node:
        await at_once(come, range(sessions // 10))
        began = node.cpu()
        await at_once(come, range(sessions // 10, sessions))
        return (node.cpu() - began) / (sessions - sessions // 10) * 1e6


async def _logins(sessions: int) -> list[Row]:
    with TemporaryDirectory() as folder:
        return [
            Row(f"a session is opened, {algorithm or 'no'} token",
                await _opened(algorithm, sessions, Path(folder)), "us of CPU")
            for algorithm in (None, *_ALGORITHMS)
        ]  # fmt: skip


# --- a node that grows


async def _message(crowd: Crowd, messages: int) -> float:
    """Return the cost of a message: the median of three."""
    return sorted([await crowd.cost(SAME, messages) for _ in range(3)])[1]


async def _idle(most: int, messages: int) -> list[Row]:
    """Measure a node with more and more idle sessions, which then reconnect at once."""
    rows, costs = [], []
    async with AsyncExitStack() as opened:
        node = await opened.enter_async_context(open_node_process())
        talking = await opened.enter_async_context(open_crowd(node, 2 * PAIRS, is_plain=True))
        await _message(talking, messages)
        held, before, crowds, per_second = 0, node.memory(), [], 0.0
        size = min(10, most)
        async with trio.open_nursery() as staying:
            while size <= most:
                began = time.perf_counter()
                coming = open_crowd(node, size - held, is_plain=True, name=f"idle{size}-")
                crowds.append(await opened.enter_async_context(coming))
                per_second = (size - held) / (time.perf_counter() - began)
                staying.start_soon(crowds[-1].sockets.stay)
                costs.append(await _message(talking, messages))
                what = f"a message beside {size:,} idle sessions"
                rows.append(Row(what, costs[-1], "us of CPU", Case.BEST))
                held, size = size, size * 10
            grown = (node.memory() - before) / held / 1024
            staying.cancel_scope.cancel()
        back = await _back(node, [peer for crowd in crowds for peer in crowd.peers])
    return [
        *rows,
        Row(f"the same beside {held:,}, in times of few", costs[-1] / costs[0], "x", Case.BEST,
            _GROWTH),
        Row(f"memory of one of {held:,} idle sessions with an address", grown, "KiB", reach=_IDLE),
        Row("sessions come", per_second, "a second"),
        Row(f"{held:,} are back, that all lost their connections", back, "s", reach=_BACK),
    ]  # fmt: skip


async def _back(node: Server, peers: list[Peer]) -> float:
    """Close all connections at once; return the seconds until every runtime gets answers again."""
    for peer in peers:
        peer.close()
    began = time.perf_counter()

    async def come(name: str) -> None:
        peer = Peer(name, _OTHER)  # the ports of the connections that were cut are not free yet
        await peer.be_plain(node.place)
        await peer.allocate()
        peer.close()

    async with trio.open_nursery() as nursery:
        for peer in peers:
            nursery.start_soon(come, peer.runtime.rpartition("/")[2])
    return time.perf_counter() - began


# --- a node that starts


def _records(size: int) -> Iterator[tuple[str, Record]]:
    now = time.time()  # noqa: TID251 - a file as an earlier node left it
    for number in range(size):
        url, runtime = f"hyperty://{DOMAIN}/h-{number}", f"hyperty-runtime://{DOMAIN}/r-{number}"
        value: JsonObject = {
            "url": url, "user": f"user://{DOMAIN}/u-{number // _OWNED}", "runtime": runtime,
            "hypertyName": f"name-{number}", "dataSchemes": ["comm"], "resources": ["chat"],
        }  # fmt: skip
        yield url, Record(url, runtime, State.LIVE, now, value, number)


async def _start(size: int) -> tuple[float, float, float]:
    """Start a node with a registry of `size` records.

    Return seconds until it is ready, MiB of memory, and microseconds of CPU for a search.
    """
    with TemporaryDirectory() as folder:
        path = Path(folder, "registry.sqlite")
        with closing(SqliteRecords(path)) as file:
            file.load()
            await file.commit(list(_records(size)))
        begun = time.perf_counter()
        async with open_node_process(*UNLIMITED, "--registry", str(path)) as node:
            took, memory = time.perf_counter() - begun, node.memory()
            peer, users = Peer("searcher"), size // _OWNED
            await peer.be_ours(node.place)
            spent = 0.0
            for number in range(2 * _SEARCHES):
                if number == _SEARCHES:
                    spent = node.cpu()
                body = {"resource": f"user://{DOMAIN}/u-{number * 7919 % users}"}
                await peer.ask("read", f"{peer.runtime}/ua", REGISTRY, body)
            peer.close()
            return took, memory / 2**20, (node.cpu() - spent) / _SEARCHES * 1e6


async def _starts(records: int) -> list[Row]:
    rows, searches = [], []
    for size in (records // 100, records):
        seconds, mib, search = await _start(size)
        searches.append(search)
        rows += [
            Row(f"a node starts with {size:,} records", seconds, "s"),
            Row(f"its memory with {size:,} records", mib, "MiB"),
            Row(f"a search among {size:,} records", search, "us of CPU"),
        ]
    what = f"a search among {records:,} records, in times of few"
    return [*rows, Row(what, searches[1] / searches[0], "x", reach=_GROWTH)]


async def measure(sessions: int, records: int, messages: int) -> list[Row]:
    """Measure logins, a node with more and more sessions, and the start of a node."""
    prepare_client()
    return [
        *await _logins(max(sessions // 5, 10)),
        *await _idle(sessions, messages),
        *await _starts(records),
    ]


main = program(
    measure,
    {
        "sessions": (1000, 20),
        "records": (100_000, 1000),
        "messages": (4000, 320),
    },
)

if __name__ == "__main__":
    main()
