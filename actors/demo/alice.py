"""The part of Alice: she asks the hyperty of Bob, by the node and by a direct link.

Requests by the thousand: how long they take, and that none is lost or doubled.
"""

import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Final, TypeAlias, final

import attrs
import trio

from actors.cli.command_error import CommandError, ExitCode
from actors.demo.narration import ObservingTracer
from actors.demo.script import Beat, What, report
from actors.hyperties import Caller
from specs.jsonvalue import Json, JsonObject
from specs.limits.protocol import P2P_TIMEOUT, REPLY_TIMEOUT
from specs.message import Message, MessageType
from specs.reply_code import Code
from transports.chaos.cuttable import CuttableNetwork
from transports.link import Link

__all__ = ["WORKERS", "Latencies", "NumberedRequests", "Scene", "compared", "measure", "script"]

Ask: TypeAlias = Callable[[Json], Awaitable[Message]]
"""Asks the counting hyperty with a value; gives its answer."""

WORKERS: Final = 8
"""Requests under way at once while the link is cut (ours)."""


@final
@attrs.frozen
class Latencies:
    """Durations of requests, one after the other, in microseconds."""

    requests: int
    p50_us: float
    p99_us: float
    per_second: float

    def as_json(self) -> JsonObject:
        """The figures, rounded."""
        return {
            "requests": self.requests,
            "p50_us": round(self.p50_us, 1),
            "p99_us": round(self.p99_us, 1),
            "per_second": round(self.per_second),
        }


def compared(by_node: Latencies, by_link: Latencies) -> list[str]:
    """Return both side by side, as the lines of a table.

    Args:
        by_node: Latencies by the node.
        by_link: Latencies by the direct link.
    """
    ratios = (
        by_link.p50_us / by_node.p50_us,
        by_link.p99_us / by_node.p99_us,
        by_link.per_second / by_node.per_second,
    )
    return [
        f"{'':<12}{'requests':>9}{'p50':>12}{'p99':>12}{'per second':>12}",
        _row("by the node", by_node),
        _row("by the link", by_link),
        f"{'link / node':<21}" + "".join(f"{one:>12.2f}" for one in ratios),
    ]


def _row(route: str, taken: Latencies) -> str:
    p50, p99 = (f"{one:,.0f} us" for one in (taken.p50_us, taken.p99_us))
    return f"{route:<12}{taken.requests:>9,}{p50:>12}{p99:>12}{taken.per_second:>12,.0f}"


@final
class NumberedRequests:
    """Gives every request a number of its own and keeps which were answered well.

    Attributes:
        answered: Requests that were answered 200.
    """

    def __init__(self) -> None:
        self.sent = 0
        self.answered = 0
        self.failures: list[int] = []
        self._progress = trio.Event()

    async def one(self, ask: Ask) -> None:
        """Ask once."""
        self.sent += 1
        answer = await ask({"number": self.sent})
        if answer.code == Code.OK:
            self.answered += 1
        else:
            self.failures.append(answer.code)
        self._progress.set()
        self._progress = trio.Event()

    async def keep_asking(self, ask: Ask, enough: trio.Event) -> None:
        """Ask from several tasks at once until it is enough; all answers are awaited.

        Args:
            ask: Sends one request.
            enough: Is set when no more requests are to be sent.
        """
        async with trio.open_nursery() as nursery:
            for _ in range(WORKERS):
                nursery.start_soon(self._work, ask, enough)

    async def _work(self, ask: Ask, enough: trio.Event) -> None:
        while not enough.is_set():
            await self.one(ask)

    async def until(self, reached: Callable[[], bool]) -> None:
        """Wait until something holds; looked at after each answer."""
        while not reached():
            await self._progress.wait()


async def measure(requests: NumberedRequests, ask: Ask, count: int) -> Latencies:
    """Ask `count` times, one after the other.

    Args:
        requests: The numbered requests.
        ask: Sends one request.
        count: Number of requests.
    """
    taken: list[int] = []
    began = time.perf_counter_ns()
    for _ in range(count):
        start = time.perf_counter_ns()
        await requests.one(ask)
        taken.append(time.perf_counter_ns() - start)
    total = time.perf_counter_ns() - began
    taken.sort()
    return Latencies(
        requests=count,
        p50_us=taken[count // 2] / 1e3,
        p99_us=taken[min(count - 1, count * 99 // 100)] / 1e3,
        per_second=count * 1e9 / total,
    )


NAME: Final = "alice"
WARM_UP: Final = 50
"""Requests before anything is measured (ours)."""
_LIVE: Final = "live"
IN_FLIGHT: Final = 200
"""Requests before the link is cut, and after it is back (ours)."""


@attrs.frozen
class Scene:
    """The objects that Alice uses."""

    caller: Caller
    bob: str
    network: CuttableNetwork
    seen: ObservingTracer

    async def by_any(self, value: Json) -> Message:
        """Ask Bob by any route."""
        return await self.caller.request(self.bob, value)

    async def by_node(self, value: Json) -> Message:
        """Ask Bob by the message node, link or no link."""
        body: JsonObject = {"value": value, "p2p": False}
        return await self.caller.ask(self.bob, MessageType.CREATE, body)


async def script(scene: Scene, requests: int) -> None:
    """Act what Alice does; each line she prints reports what happened to her.

    Args:
        scene: Participants and links of the demonstration.
        requests: Number of requests.

    Raises:
        CommandError: Something was to be otherwise.
    """
    numbered = NumberedRequests()
    base = tuple(scene.network.links)
    await _meet(scene, numbered)
    by_node, by_link = await _compare(scene, numbered, requests)
    fell_back = await _cut(scene, numbered, base)
    await _reckon(scene, numbered)
    report(
        NAME,
        What.FIGURES,
        f"{numbered.sent:,} numbered requests: none lost, none doubled",
        Beat.RECKONED,
        node=by_node.as_json(),
        link=by_link.as_json(),
        p50_ratio=round(by_link.p50_us / by_node.p50_us, 3),
        p99_ratio=round(by_link.p99_us / by_node.p99_us, 3),
        numbered=numbered.sent,
        lost=0,
        doubled=0,
        fell_back=fell_back,
    )


async def _meet(scene: Scene, numbered: NumberedRequests) -> None:
    """Ask once: it goes by the node, and a link is set up beside it."""
    await numbered.one(scene.by_any)
    _check(numbered.answered == 1, f"bob answered the first request {numbered.failures}")
    _check(scene.seen.sent_by_node() == 1, "the first request did not go by the node")
    text = "the first request is answered by the node"
    report(NAME, What.NOTE, text, Beat.ANSWERED)
    with _in_time("the link did not become live"):
        await scene.seen.until(lambda: scene.seen.link == _LIVE)


async def _compare(
    scene: Scene, numbered: NumberedRequests, requests: int
) -> tuple[Latencies, Latencies]:
    """Measure the same requests by the node and by the link."""
    seen = scene.seen
    await measure(numbered, scene.by_node, WARM_UP)
    before = seen.sent_by_node()
    by_node = await measure(numbered, scene.by_node, requests)
    _check(seen.sent_by_node() - before == requests, "not all requests went by the node")
    report(
        NAME, What.NOTE, f"{requests:,} requests by the node are measured", Beat.MEASURED_BY_NODE
    )

    await measure(numbered, scene.by_any, WARM_UP)
    before = seen.sent_by_link()
    by_link = await measure(numbered, scene.by_any, requests)
    _check(seen.sent_by_link() - before == requests, "not all requests went by the link")
    report(
        NAME, What.NOTE, f"{requests:,} requests by the link are measured", Beat.MEASURED_BY_LINK
    )
    for row in compared(by_node, by_link):
        report(NAME, What.ROW, row, Beat.COMPARED)
    return by_node, by_link


async def _cut(scene: Scene, numbered: NumberedRequests, base: tuple[Link, ...]) -> int:
    """Close the socket under the link while requests are under way; return how many fell back."""
    seen, enough = scene.seen, trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(numbered.keep_asking, scene.by_any, enough)
        with _in_time("the link did not come back"):
            goal = numbered.answered + IN_FLIGHT
            await numbered.until(lambda: numbered.answered >= goal)
            node_before = seen.sent_by_node()
            report(NAME, What.NOTE, "cuts the socket under the link, requests under way", Beat.CUT)
            _check(await scene.network.cut(lambda link: link not in base), "there was no socket")
            await seen.until(lambda: seen.lives > 1)
            link_before = seen.sent_by_link()
            await numbered.until(lambda: seen.sent_by_link() >= link_before + IN_FLIGHT)
            fell_back = seen.sent_by_node() - node_before
        enough.set()
    _check(fell_back > 0, "no request fell back to the node")
    text = f"{fell_back} requests went by the node meanwhile; traffic is back on the link"
    report(NAME, What.NOTE, text, Beat.CAUGHT_UP, fell_back=fell_back)
    return fell_back


async def _reckon(scene: Scene, numbered: NumberedRequests) -> None:
    """Ask Bob what came, and compare with what was sent."""
    report = (await scene.by_any("report")).body.get("value")
    _check(not numbered.failures, f"some requests were answered {sorted(set(numbered.failures))}")
    _check(
        report == {"distinct": numbered.sent, "doubled": 0},
        f"{numbered.sent} requests were sent and bob counted {report}",
    )


@contextmanager
def _in_time(complaint: str) -> Iterator[None]:
    try:
        with trio.fail_after(P2P_TIMEOUT + REPLY_TIMEOUT):
            yield
    except trio.TooSlowError as exc:
        raise CommandError(f"the demonstration failed: {complaint}", ExitCode.TIMEOUT) from exc


def _check(holds: object, complaint: str) -> None:
    if not holds:
        raise CommandError(f"the demonstration failed: {complaint}", ExitCode.FAILED)
