"""What a watched dashboard costs: at the node, and in the browser (Chromium, if there is one).

Many sessions on one node process, some of which hang up and come back all the time. By turns
nobody watches, and one viewer does; what the node takes more with the viewer is its cost. Then the
page itself watches, in a browser whose processes are counted together, against an empty page.
"""

import gc
import os
import shutil
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from statistics import median
from typing import Final, final
from urllib.parse import urlsplit

import attrs
import click
import trio

from bench.node.crowd import UNLIMITED, Crowded, CrowdError, Peer, quiet_node, raise_file_limit
from bench.verdict import Verdict
from tests.support.browser import Browsers

NODE_REACH: Final = 2.0
"""Percent of a core that a viewer may cost the node."""

PAGE_REACH: Final = 10.0
"""Percent of a core that the page may take in the browser."""

_AT_ONCE: Final = 64
_TICKS: Final = os.sysconf("SC_CLK_TCK")
_BROWSER: Final = "chromedriver"


@final
@attrs.frozen(kw_only=True)
class Figures:
    """The measured figures.

    Attributes:
        changes: Changes a second that the viewer was shown.
        quiet_cpu: Percent of a core that the node took while nobody watched.
        watched_cpu: The same while one viewer watched.
        stream_kib: KiB a second that the viewer was sent.
        page_cpu: Percent of a core that all processes of the browser took with the page.
        empty_cpu: The same with an empty page; None, as the one before: there is no browser.
    """

    changes: float
    quiet_cpu: float
    watched_cpu: float
    stream_kib: float
    page_cpu: float | None
    empty_cpu: float | None


async def _come(node: Crowded, peers: list[Peer]) -> None:
    waiting = iter(peers)

    async def some() -> None:
        for peer in waiting:
            await peer.be_plain(node.place)

    async with trio.open_nursery() as nursery:
        for _ in range(_AT_ONCE):
            nursery.start_soon(some)


async def _stay(peer: Peer) -> None:
    """Answer the node's pings."""
    with suppress(CrowdError):
        while True:
            await peer.receive()


async def _churn(node: Crowded, names: list[str], rate: float) -> None:
    """Let one runtime after the other hang up and come back: two changes each."""
    began, number, away = trio.current_time(), 0, dict.fromkeys(names)
    while True:
        name = names[number % len(names)]
        before = away[name]
        if before is not None:
            before.close()
        peer = away[name] = Peer(name)
        with suppress(CrowdError, OSError):
            await peer.be_plain(node.place)
        number += 1
        await trio.sleep_until(began + 2 * number / rate)


async def _share(spent: Callable[[], float], seconds: float) -> float:
    """Return the percentage of a core that something takes for a while."""
    began, before = time.perf_counter(), spent()
    await trio.sleep(seconds)
    return 100 * (spent() - before) / (time.perf_counter() - began)


@final
class _Viewer:
    """Reads the stream of frames, as the page does."""

    def __init__(self, site: str) -> None:
        place = urlsplit(site)
        self._place = (place.hostname or "", place.port or 0)
        self.taken = 0
        self.changes = 0

    async def watch(
        self, *, task_status: "trio.TaskStatus[None]" = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Read until cancelled; started when the first frame is there."""
        host, port = self._place
        request = f"GET /dashboard/events HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n"
        is_first = True
        async with await trio.open_tcp_stream(host, port) as stream:
            await stream.send_all(request.encode())
            async for data in stream:
                if is_first and b"event: whole" in data:
                    is_first = False
                    task_status.started()
                self.taken += len(data)
                self.changes += data.count(b'"kind":"step"')


def _browser_cpu() -> float:
    """Return the seconds of CPU of the browser that this process has started, all in all."""
    parents: dict[int, int] = {}
    spent: dict[int, float] = {}
    roots = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            name, _, rest = (folder / "stat").read_text().rpartition(") ")
            fields, number = rest.split(), int(folder.name)
            parents[number] = int(fields[1])
            spent[number] = (int(fields[11]) + int(fields[12])) / _TICKS
            if name.endswith(_BROWSER) and parents[number] == os.getpid():
                roots.append(number)
    found, waiting = 0.0, roots
    while waiting:
        number = waiting.pop()
        found += spent[number]
        waiting += [child for child, parent in parents.items() if parent == number]
    return found


async def _page(site: str, size: int, seconds: float) -> tuple[float, float]:
    """Return what the browser takes of a core with the page, and with an empty one."""
    with closing(Browsers()) as browsers:
        async with browsers.open() as browser:
            page = await browser.new_page()
            await page.goto("about:blank")
            await trio.sleep(1.0)
            empty = await _share(_browser_cpu, seconds)
            await page.goto(f"{site}/dashboard")
            tile = "document.querySelector('.tile-value')?.textContent.replace(',', '')"
            await page.until(f"(n) => Number({tile}) > n", size // 2)
            await trio.sleep(1.0)
            return await _share(_browser_cpu, seconds), empty


async def measure(size: int, rate: float, seconds: float, rounds: int) -> Figures:
    """Measure with a viewer and without, by turns, then in the browser.

    Args:
        size: Sessions.
        rate: Changes a second.
        seconds: Length of each measurement.
        rounds: How often both are measured; the medians count.
    """
    quiet, watched, changes, kib = [], [], [], []
    async with quiet_node(*UNLIMITED, "--http", "127.0.0.1:0") as node, trio.open_nursery() as all_:
        peers = [Peer(f"r{number}") for number in range(size)]
        await _come(node, peers)
        for peer in peers:
            all_.start_soon(_stay, peer)
        names = [f"moving{number}" for number in range(max(1, size // 10))]
        all_.start_soon(_churn, node, names, rate)
        await trio.sleep(2.0)
        for _ in range(rounds):
            quiet.append(await _share(node.cpu, seconds))
            viewer = _Viewer(node.site)
            async with trio.open_nursery() as watching:
                await watching.start(viewer.watch)
                viewer.taken = viewer.changes = 0
                watched.append(await _share(node.cpu, seconds))
                watching.cancel_scope.cancel()
            changes.append(viewer.changes / seconds)
            kib.append(viewer.taken / seconds / 1024)
        has_browser = shutil.which("chromium") and shutil.which(_BROWSER)
        page, empty = await _page(node.site, size, seconds) if has_browser else (None, None)
        all_.cancel_scope.cancel()
    return Figures(
        changes=median(changes),
        quiet_cpu=median(quiet),
        watched_cpu=median(watched),
        stream_kib=median(kib),
        page_cpu=page,
        empty_cpu=empty,
    )


@click.command()
@click.option("--size", default=1000, show_default=True, help="Sessions.")
@click.option("--rate", default=100.0, show_default=True, help="Changes a second.")
@click.option("--seconds", default=10.0, show_default=True, help="Length of each measurement.")
@click.option("--rounds", default=3, show_default=True, help="Rounds the medians are over.")
@click.option("--json", "as_json", is_flag=True, help="One object instead of sentences.")
def main(size: int, rate: float, seconds: float, rounds: int, *, as_json: bool) -> None:
    """Measure what a watched dashboard costs the node and the browser; exit 1 if it is too much."""
    raise_file_limit()
    gc.disable()  # a pause of ours would be measured as the node's
    figures = trio.run(measure, size, rate, seconds, rounds)
    cost = max(0.0, figures.watched_cpu - figures.quiet_cpu)
    page = None if figures.page_cpu is None else figures.page_cpu - (figures.empty_cpu or 0.0)
    node_missed = () if cost <= NODE_REACH else (f"a viewer costs the node {cost:.1f} % of a core",)
    is_page_met = page is None or page <= PAGE_REACH
    page_missed = () if is_page_met else (f"the page takes {page:.1f} % of a core",)
    Verdict(
        bench="dashboard",
        what="percent of a core that a viewer costs the node / percent it may cost",
        ours=cost,
        peer=NODE_REACH,
        ratio=cost / NODE_REACH,
        reach=1.0,
        missed=(*node_missed, *page_missed),
        not_measured=() if page is not None else ("the page: there is no Chromium",),
        figures={**attrs.asdict(figures), "page_cost": page, "page_reach": PAGE_REACH},
    ).tell(as_json=as_json)


if __name__ == "__main__":
    main()
