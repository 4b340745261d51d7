"""Alice: a runtime with a hyperty that asks Bob's, by the node and by a link of their own.

Run as `python -m actors.demo.alice`; the demonstration does. Each line she prints
tells what happened to her; where it was to be otherwise she ends with an error.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final

import attrs
import click
import trio

from actors.cli.command_error import CommandError, ExitCode
from actors.cli.entry import enter
from actors.cli.failure import run
from actors.cli.options import check_domain, check_kinds
from actors.demo.act import Beat
from actors.demo.leash import leashed, until_told
from actors.demo.line import What, tell
from actors.demo.observing import ObservingTracer
from actors.demo.watched_network import WatchedNetwork
from actors.demo.workload import Latencies, NumberedRequests, compared, measure
from actors.hyperties import Caller
from actors.kit.log import configure_log
from actors.kit.time_of_day import fresh_ids
from actors.kit.trace_file import open_trace
from actors.runtime.app import open_runtime
from actors.runtime.config import RuntimeConfig
from specs.jsonvalue import Json, JsonObject
from specs.limits.protocol import P2P_TIMEOUT, REPLY_TIMEOUT
from specs.message import Message, MessageType
from transports.chaos.cuttable import CuttableNetwork
from transports.link import Kind, Link
from transports.system import open_system_network

__all__ = ["main"]

NAME: Final = "alice"
WARM_UP: Final = 50
"""Requests before anything is measured (ours)."""
_LIVE: Final = "live"
IN_FLIGHT: Final = 200
"""Requests before the link is cut, and after it is back (ours)."""


@attrs.frozen
class Scene:
    """What Alice acts with."""

    caller: Caller
    bob: str
    network: CuttableNetwork
    seen: ObservingTracer

    async def by_any(self, value: Json) -> Message:
        """Ask Bob by whatever way there is."""
        return await self.caller.request(self.bob, value)

    async def by_node(self, value: Json) -> Message:
        """Ask Bob by the message node, link or no link."""
        body: JsonObject = {"value": value, "p2p": False}
        return await self.caller.ask(self.bob, MessageType.CREATE, body)


@click.command(NAME)
@click.option("--domain", required=True, callback=check_domain)
@click.option("--node", required=True)
@click.option("--p2p", required=True, callback=check_kinds)
@click.option("--trace", required=True, type=click.Path(path_type=Path))
@click.option("--to", "bob", required=True)
@click.option("--requests", type=int, required=True)
def main(  # noqa: PLR0913 - one for each option
    *, domain: str, node: str, p2p: tuple[Kind, ...], trace: Path, bob: str, requests: int
) -> int:
    """Act the script and end."""
    configure_log()
    config = RuntimeConfig(domain=domain, name=NAME, node=node, kinds=p2p, ids=fresh_ids())
    act = partial(_act, config, trace, bob, requests)
    return run(partial(leashed, partial(until_told, act)))


async def _act(config: RuntimeConfig, trace: Path, bob: str, requests: int) -> None:
    async with open_trace(trace, NAME) as inner, open_system_network() as system:
        seen = ObservingTracer(NAME, inner, bob)
        network = CuttableNetwork(WatchedNetwork(NAME, system, config.node))
        async with open_runtime(config, network, seen) as runtime:
            caller = Caller()
            url = await runtime.deploy("caller", lambda: caller)
            tell(NAME, What.NOTE, f"ready: {url}", Beat.SERVES, url=url, pid=os.getpid())
            await _script(Scene(caller, bob, network, seen), requests)
            text = "unregisters, takes its routes down, closes its session"
            tell(NAME, What.NOTE, text, Beat.LEAVES)
    tell(NAME, What.DONE, "closed in good order", Beat.GONE)


async def _script(scene: Scene, requests: int) -> None:
    numbered = NumberedRequests()
    base = tuple(scene.network.links)
    await _meet(scene, numbered)
    by_node, by_link = await _compare(scene, numbered, requests)
    fell_back = await _cut(scene, numbered, base)
    await _reckon(scene, numbered)
    tell(
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
    text = "the first request is answered by way of the node"
    tell(NAME, What.NOTE, text, Beat.ANSWERED)
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
    tell(NAME, What.NOTE, f"{requests:,} requests by the node are measured", Beat.MEASURED_BY_NODE)

    await measure(numbered, scene.by_any, WARM_UP)
    before = seen.sent_by_link()
    by_link = await measure(numbered, scene.by_any, requests)
    _check(seen.sent_by_link() - before == requests, "not all requests went by the link")
    tell(NAME, What.NOTE, f"{requests:,} requests by the link are measured", Beat.MEASURED_BY_LINK)
    for row in compared(by_node, by_link):
        tell(NAME, What.ROW, row, Beat.COMPARED)
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
            tell(NAME, What.NOTE, "cuts the socket under the link, requests under way", Beat.CUT)
            _check(await scene.network.cut(lambda link: link not in base), "there was no socket")
            await seen.until(lambda: seen.lives > 1)
            link_before = seen.sent_by_link()
            await numbered.until(lambda: seen.sent_by_link() >= link_before + IN_FLIGHT)
            fell_back = seen.sent_by_node() - node_before
        enough.set()
    _check(fell_back > 0, "no request fell back to the node")
    text = f"{fell_back} requests went by the node meanwhile; traffic is back on the link"
    tell(NAME, What.NOTE, text, Beat.CAUGHT_UP, fell_back=fell_back)
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


if __name__ == "__main__":
    enter(main)
