"""A disk that is full under a running node: a process, a system's limit, real sockets (R13)."""

import re
import resource

import pytest
import trio

from tests.support.node.node_peer import DOMAIN, RA, RB, Peer
from tests.support.node.node_process import UNHURRIED, node_process
from tests.support.node.web import get
from tests.support.trace.records import create, read, record, registered, update
from transports.link import Kind
from transports.system import open_system_network

pytestmark = pytest.mark.timeout(240)

UNLIMITED = resource.RLIM_INFINITY


def fill_disk(node, files):
    """Let the node's files not grow beyond the largest of some any more."""
    size = max(file.stat().st_size for file in files)
    resource.prlimit(node.process.pid, resource.RLIMIT_FSIZE, (size, UNLIMITED))


def free_disk(node):
    resource.prlimit(node.process.pid, resource.RLIMIT_FSIZE, (UNLIMITED, UNLIMITED))


def started(tmp_path, file, *more):
    options = ("--domain", DOMAIN, "--registry", str(file), "--allow-legacy", *UNHURRIED)
    return node_process(tmp_path / "node.log", *options, *more)


async def came(network, node, runtime):
    return await Peer(await network.dial(Kind.WEBSOCKET, node.ready["url"]), runtime).open()


async def refused(peer, urls):
    """Register until the disk is full; return what was not taken."""
    for number, url in enumerate(urls):
        if (await create(peer, record(url, peer.runtime, name="x" * 8000))).code == 503:
            return urls[number:]
    raise AssertionError("the disk was never full")


async def until_taken(peer, url):
    with trio.fail_after(60):
        while (await create(peer, record(url))).code != 200:  # noqa: ASYNC110 - as a runtime would
            await trio.sleep(0.1)


async def test_a_full_disk_refuses_only_changes_and_only_until_there_is_space(tmp_path):
    (tmp_path / "registry").mkdir()
    file = tmp_path / "registry" / "r.sqlite"
    with started(tmp_path, file) as node:
        async with open_system_network() as network:
            ra, rb = await came(network, node, RA), await came(network, node, RB)
            kept = [await registered(rb, name="x" * 8000) for _ in range(30)]
            urls = await rb.allocate(number=200)
            fill_disk(node, file.parent.iterdir())
            late = await refused(rb, urls)
            assert (await create(rb, record(late[0]))).code == 503
            assert (await update(rb, kept[0], value={"status": "disconnected"})).code == 503
            assert (await read(ra, kept[0])).code == 200
            assert (await read(ra, late[0])).code == 404
            await ra.post("create", f"{RA}/ua", f"{RB}/ua", value=1)
            assert (await rb.hear()).body["value"] == 1
            free_disk(node)
            await until_taken(rb, late[0])
            for peer in (ra, rb):
                await peer.link.aclose()
        node.process.kill()
        node.process.wait()
        log = node.log.read_text()
    assert log.count("registry file cannot be written") == 1
    assert log.count("registry file is written again") == 1
    assert node.complaints == []
    await check(tmp_path, file, [*kept, *urls[: len(urls) - len(late)], late[0]], late[1])


async def test_failed_writes_of_each_file_are_counted(tmp_path):
    """Alerts of the operator ask for these counters."""
    (tmp_path / "registry").mkdir()
    file = tmp_path / "registry" / "r.sqlite"
    with started(tmp_path, file, "--http", "127.0.0.1:0") as node:
        async with open_system_network() as network:
            ra = await came(network, node, RA)
            assert await failures(node) == {}
            fill_disk(node, [file.with_name("r.sqlite-state-wal")])
            await refused(ra, await ra.allocate(number=200))
            with trio.fail_after(60):
                number = 0
                while (await failures(node)).keys() != {"registry", "state"}:
                    number += 1
                    with trio.move_on_after(2):
                        await came(network, node, f"{RA}-{number}")
            free_disk(node)


async def failures(node):
    text = (await get(f"{node.ready['http_url']}/metrics")).text
    counted = re.findall(r'\nprotofly_file_write_failures_total\{file="(\w+)"\} (.+)', text)
    return {file: float(count) for file, count in counted}


async def check(tmp_path, file, there, missing):
    """See what a node finds that starts on the file."""
    with started(tmp_path, file) as node:
        async with open_system_network() as network:
            ra = await came(network, node, f"{RA}-later")
            for url in there:
                assert (await read(ra, url)).code == 200
            assert (await read(ra, missing)).code == 404
            await ra.link.aclose()
