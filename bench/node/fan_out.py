"""One update to many observers over real sockets: through the node, and written by hand.

The reporter is the product's, in a runtime of this process; the node asks for its consent to
each observer, as it does by default. The observers are sessions of this process that ask to
observe as ours do, and then are sockets, heard by one poll in a thread: what an observer's
runtime does with an update, and what repairs a lost one, is not in what is measured. The
reporter's `set` is: both processes begin at the same time, but only one has a bus before it.
"""

import select
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from typing import Final, TypeAlias, final

import attrs
import orjson
import trio
from typing_extensions import override

import actors
from bench.node.asking import Asking, open_asking
from bench.node.crowd import DOMAIN, UNLIMITED, Crowded, CrowdError, Peer, quiet_node

_NODE: Final = f"domain://msg-node.{DOMAIN}"
_AT_ONCE: Final = 50
"""Observers that connect at a time."""

_PATIENCE: Final = 30.0
"""Seconds after which an update that did not come is given up."""

_PIECE: Final = 65_536
_OK: Final = 200


@final
@attrs.frozen
class FanOut:
    """One round.

    Attributes:
        node: Milliseconds from the reporter's `set` until the last observer had it.
        raw: The same, of a process that writes the same bytes to as many sockets.
    """

    node: float
    raw: float


@final
@attrs.frozen
class Others:
    """Requests of others, in milliseconds.

    Attributes:
        node: While fan-outs ran.
        raw: While as many sockets were written to by hand: what the machine itself takes.
    """

    node: list[float]
    raw: list[float]


_Span: TypeAlias = tuple[float, float]


@final
class _Ears:
    """Many sockets that are listened to at once."""

    def __init__(self, sockets: Sequence[socket.socket]) -> None:
        self._by_number = {one.fileno(): one for one in sockets}
        self._poll = select.epoll()
        for number in self._by_number:
            self._poll.register(number, select.EPOLLIN)

    def await_all(self, mark: bytes) -> tuple[float, bytes]:
        """Wait until each has heard something with a mark in it.

        Returns:
            When (`time.perf_counter`) the last one had, and what that one heard.

        Raises:
            CrowdError: One did not in time.
        """
        waiting = dict.fromkeys(self._by_number, b"")
        until, heard = time.monotonic() + _PATIENCE, b""
        while waiting:
            if time.monotonic() > until:
                raise CrowdError(f"{len(waiting)} heard nothing")
            for number, _ in self._poll.poll(1.0, len(self._by_number)):
                heard = waiting.get(number, b"") + self._by_number[number].recv(_PIECE)
                if mark in heard:
                    waiting.pop(number, None)
                elif number in waiting:
                    waiting[number] = heard
        return time.perf_counter(), heard


@final
class _Reporter(actors.Hyperty):
    """A hyperty without behaviour; it permits no observer that needs consent."""

    @override
    async def on_request(self, message: actors.Message) -> None:
        pass


async def measure_fan_out(observers: int, rounds: int, *, public: bool = True) -> list[FanOut]:
    """Measure both by turns, so that a busy machine hits both.

    Raises:
        CrowdError: In groups: a message used another route; always, if it is not public.
    """
    async with (
        quiet_node(*UNLIMITED) as node,
        _reported(node.place, public=public) as thing,
        _audience(node.place, observers, thing.url) as crowd,
    ):
        with _raw_writer(observers) as (commander, sockets):
            ears = _Ears([peer.plain_socket() for peer in crowd])
            return await _rounds(rounds, (thing, ears), (commander, _Ears(sockets)))


async def measure_updates(
    servers: Mapping[str, Crowded], observers: int, rounds: int
) -> dict[str, list[float]]:
    """Measure an update to many observers at several servers in turn.

    Args:
        servers: By name.
        observers: Of each server.
        rounds: How many rounds.

    Returns:
        Milliseconds until the last observer had it, by server.

    Raises:
        CrowdError: In groups: an observer was refused, or heard nothing.
    """
    taken: dict[str, list[float]] = {name: [] for name in servers}
    async with AsyncExitStack() as opened:
        reported = {}
        for name, server in servers.items():
            thing = await opened.enter_async_context(_reported(server.place, public=True))
            came = _audience(server.place, observers, thing.url)
            crowd = await opened.enter_async_context(came)
            reported[name] = thing, _Ears([peer.plain_socket() for peer in crowd])
        for number in range(1, rounds + 1):
            for name, (thing, ears) in reported.items():
                (began, ended), _ = await _publish(thing, ears, number)
                taken[name].append((ended - began) * 1e3)
    return taken


async def measure_others(observers: int, rounds: int) -> Others:
    """Measure requests of two other sessions while fan-outs run, and while there is the raw one.

    Raises:
        CrowdError: In groups: a message used another route, or the others did not come to ask.
    """
    asked: Asking = []
    runs: list[tuple[_Span, _Span]] = []
    async with (
        quiet_node(*UNLIMITED) as node,
        _reported(node.place, public=True) as thing,
        _audience(node.place, observers, thing.url) as crowd,
    ):
        with _raw_writer(observers) as (commander, sockets):
            ears = _Ears([peer.plain_socket() for peer in crowd])
            async with open_asking(node.place, asked):
                runs = await _spans(rounds, (thing, ears), (commander, _Ears(sockets)))
    node_spans, raw_spans = zip(*runs, strict=True)
    return Others(_within(asked, node_spans), _within(asked, raw_spans))


def _within(asked: Asking, spans: Sequence[_Span]) -> list[float]:
    """Return the milliseconds of the requests that were open in one of the spans."""
    return [
        took * 1e3
        for sent, took in asked
        if any(began < sent + took and sent < ended for began, ended in spans)
    ]


async def _rounds(
    rounds: int,
    reported: tuple[actors.ReportedObject, _Ears],
    written: tuple[socket.socket, _Ears],
) -> list[FanOut]:
    return [
        FanOut(*((ended - began) * 1e3 for began, ended in spans))
        for spans in await _spans(rounds, reported, written)
    ]


async def _spans(
    rounds: int,
    reported: tuple[actors.ReportedObject, _Ears],
    written: tuple[socket.socket, _Ears],
) -> list[tuple[_Span, _Span]]:
    """Return when each fan-out began and ended: through the node, and by hand."""
    commander, raw = written
    spans = []
    _, frame = await _publish(*reported, 0)
    commander.sendall(frame.hex().encode() + b"\n")
    for number in range(1, rounds + 1):
        node, _ = await _publish(*reported, number)
        began = time.perf_counter()
        commander.sendall(b"x")
        ended, _ = await trio.to_thread.run_sync(raw.await_all, frame[-8:])
        spans.append((node, (began, ended)))
    return spans


async def _publish(thing: actors.ReportedObject, ears: _Ears, number: int) -> tuple[_Span, bytes]:
    """Publish a number; return when, until the last had it, and what was heard then."""
    mark = f"mark {number:08}"
    heard: list[tuple[float, bytes]] = []

    async def listen() -> None:
        heard.append(await trio.to_thread.run_sync(ears.await_all, mark.encode()))

    async with trio.open_nursery() as listening:
        listening.start_soon(listen)
        began = time.perf_counter()
        await thing.set("n", mark)
    ((ended, frame),) = heard
    return (began, ended), frame


@asynccontextmanager
async def _reported(
    place: tuple[str, int], *, public: bool
) -> AsyncIterator[actors.ReportedObject]:
    """Report an object at the node."""
    url = f"ws://{place[0]}:{place[1]}/link"
    async with actors.open_runtime(DOMAIN, "reporter", node=url) as runtime:
        reporter = await runtime.deploy(_Reporter)
        async with reporter.report("comm", {"n": ""}, public=public) as thing:
            yield thing


@asynccontextmanager
async def _audience(place: tuple[str, int], observers: int, url: str) -> AsyncIterator[list[Peer]]:
    """Let observers come, a few at a time."""
    crowd = [Peer(f"o{number}") for number in range(observers)]
    try:
        async with trio.open_nursery() as coming:
            waiting = iter(crowd)
            for _ in range(_AT_ONCE):
                coming.start_soon(_come, waiting, place, url)
        yield crowd
    finally:
        for peer in crowd:
            peer.close()


async def _come(waiting: Iterator[Peer], place: tuple[str, int], url: str) -> None:
    for peer in waiting:
        await peer.be_ours(place)
        path = {"resources": [f"{url}/changes"]}
        for to, body in ((f"{_NODE}/sm", path), (f"{url}/subscription", {"source": peer.runtime})):
            answer = await _ask(peer, "subscribe", to, body)
            if answer["body"]["code"] != _OK:
                raise CrowdError(f"{peer.runtime} may not observe: {answer['body']}")


async def _ask(peer: Peer, kind: str, to: str, body: object) -> dict:
    asker = f"{peer.runtime}/sm"
    await peer.send(orjson.dumps({"id": 7, "type": kind, "from": asker, "to": to, "body": body}))
    while True:
        answer = orjson.loads(await peer.receive())
        if answer["type"] == "response" and answer["id"] == 7:  # noqa: PLR2004
            return answer


@contextmanager
def _raw_writer(count: int) -> Iterator[tuple[socket.socket, list[socket.socket]]]:
    """Start the process that writes by hand; return its commanding connection and its listeners."""
    command = [sys.executable, "-m", "bench.node.raw_fan_out", str(count)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603  our own module
        try:
            if process.stdout is None:
                raise CrowdError("the raw writer says nothing")
            place = "127.0.0.1", int(process.stdout.readline())
            commander, *others = (socket.create_connection(place) for _ in range(count + 1))
            yield commander, others
            for one in (commander, *others):
                one.close()
        finally:
            process.kill()
