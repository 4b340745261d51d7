"""A node that is killed in the middle of writes has lost nothing it acknowledged (I-G3).

The node is a process, the sockets are real, and the moment is random: SIGKILL while
several peers register and change records as fast as they can. Then the file is whole, and
a node on it has every record, at least as new as the last answer said.
"""

import random
import shutil
import sqlite3

import orjson
import pytest
import trio

from tests.support.node.node_peer import DOMAIN, Peer
from tests.support.node.node_process import UNHURRIED, node_process
from tests.support.trace.records import read
from tests.system.registry.record_flood import Ledger, flood
from transports.link import Kind
from transports.system import open_system_network

ROUNDS = 4
PEERS = 4

pytestmark = pytest.mark.timeout(180)


def started(tmp_path, file):
    options = ("--domain", DOMAIN, "--registry", str(file), "--allow-legacy", *UNHURRIED)
    return node_process(tmp_path / "node.log", *options)


async def killed_round(tmp_path, file, ledger, number, moment):
    """Run a node on the file, let peers write, and kill it after a moment."""
    with started(tmp_path, file) as node:
        async with open_system_network() as network, trio.open_nursery() as nursery:
            for peer in range(PEERS):
                runtime = f"hyperty-runtime://{DOMAIN}/r{number}-{peer}"
                nursery.start_soon(flood, network, node.ready["url"], runtime, ledger)
            while ledger.count == 0:  # noqa: ASYNC110 - the moment is counted from the first answer
                await trio.sleep(0.005)
            await trio.sleep(moment)  # real time: any moment will do
            node.process.kill()
        node.process.wait()


def rows_of(file, tmp_path):
    """What a copy of the killed node's file holds; the original is left as it is."""
    copy = tmp_path / "copy"
    shutil.rmtree(copy, ignore_errors=True)
    copy.mkdir()
    for one in file.parent.iterdir():
        shutil.copy(one, copy)
    with sqlite3.connect(copy / file.name) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        return {
            url: (runtime, status, orjson.loads(value))
            for url, runtime, status, value in connection.execute(
                "SELECT url, runtime, status, value FROM record"
            )
        }


def check_rows(rows, ledger):
    lost = {
        url: (version, rows.get(url))
        for url, version in ledger.acknowledged.items()
        if url not in rows or not version <= rows[url][2]["version"] <= ledger.sent[url]
    }
    assert lost == {}
    for url, (runtime, status, value) in rows.items():
        assert (value["url"], value["runtime"], value["status"]) == (url, runtime, status)


async def test_acknowledged_records_survive_kills_at_random_moments(tmp_path):
    folder = tmp_path / "registry"
    folder.mkdir()
    file, ledger, answers = folder / "r.sqlite", Ledger(), 0
    seed = random.randrange(2**32)  # noqa: S311 - no secret
    print("seed", seed)  # noqa: T201 - shown when the test fails
    moments = random.Random(seed)  # noqa: S311 - no secret
    for number in range(ROUNDS):
        answers, ledger.count = answers + ledger.count, 0
        moment = moments.uniform(0.0, 0.6)
        await killed_round(tmp_path, file, ledger, number, moment)
        check_rows(rows_of(file, tmp_path), ledger)
    answers += ledger.count
    print(ROUNDS, "kills;", answers, "acknowledged;", len(ledger.acknowledged), "records")  # noqa: T201
    assert answers > 20 * ROUNDS
    await _read_all(tmp_path, file, ledger)


async def _read_all(tmp_path, file, ledger):
    """Every record is reported by a node that starts on the file."""
    with started(tmp_path, file) as node:
        async with open_system_network() as network:
            link = await network.dial(Kind.WEBSOCKET, node.ready["url"])
            peer = await Peer(link, f"hyperty-runtime://{DOMAIN}/reader").open()
            for url, version in ledger.acknowledged.items():
                answer = await read(peer, url)
                assert answer.code == 200
                assert version <= answer.body["value"]["version"] <= ledger.sent[url]
            await link.aclose()
        assert node.stop() == 0
        assert node.complaints == []
