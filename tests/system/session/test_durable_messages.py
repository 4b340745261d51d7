"""Durable messages over three nodes as processes and a NATS server, all of which are killed."""

import signal
from functools import partial

import pytest
import trio

import actors
from actors.hyperties import Caller
from tests.support.nats_server import needs_server, run_server
from tests.support.node.node_processes import open_nodes
from transports.sockets import open_background

pytestmark = [pytest.mark.long, pytest.mark.timeout(300), needs_server]

PATIENCE = 120.0


class Ledger(actors.Hyperty):
    """Keeps what comes, in order.

    Args:
        kept: Gets it.
    """

    def __init__(self, kept):
        self.kept = kept

    async def on_request(self, message):
        self.kept.append(message.value)


@pytest.fixture
def server():
    with run_server() as server:
        yield server


async def until(is_so):
    with trio.fail_after(PATIENCE):
        while not is_so():  # noqa: ASYNC110 - of other processes
            await trio.sleep(0.05)


async def test_a_message_outlives_its_node_and_finds_its_receiver_at_another(tmp_path, server):
    """The receiver's node is killed, then the node that has accepted what waits for it."""
    kept = []
    async with open_nodes(tmp_path, server, 3) as group:
        one, two, three = group.nodes
        its_nodes = [two.url]
        async with group.runtime("ra", 0) as ra, group.runtime("rb", 1, its_nodes) as rb:
            ledger = await rb.deploy(partial(Ledger, kept))
            caller = await ra.deploy(Caller)
            assert (await caller.request(ledger.url, 0, durable=True)).code == 202
            await until(lambda: kept == [0])

            await two.stop(signal.SIGKILL)
            for number in range(1, 100):
                assert (await caller.request(ledger.url, number, durable=True)).code == 202
            await one.stop(signal.SIGKILL)
            server.kill()
            server.start()
            assert kept == [0]
            its_nodes[:] = [three.url]
            await until(lambda: len(kept) >= 100)
            answer = await caller.request(ledger.url, 100, durable=True)
            assert answer.code in {202, 503}
            await until(lambda: answer.code == 503 or kept[-1] == 100)
    assert kept[:100] == [*range(100)]


async def test_none_is_lost_or_doubled_while_nodes_and_the_engine_are_killed(tmp_path, server):
    """Messages go on all the time; what was answered 202 comes once, the rest once at most."""
    kept, accepted, refused = [], [], []
    async with (
        open_nodes(tmp_path, server, 3) as group,
        group.runtime("ra", 0) as ra,
        group.runtime("rb", 1) as rb,
        open_background() as nursery,
    ):
        ledger = await rb.deploy(partial(Ledger, kept))
        caller = await ra.deploy(Caller)
        is_over, has_ended = trio.Event(), trio.Event()

        async def send():
            number = 0
            while not is_over.is_set():
                answer = await caller.request(ledger.url, number, durable=True)
                (accepted if answer.code == 202 else refused).append(number)
                number += 1
            has_ended.set()

        nursery.start_soon(send)
        await until(lambda: len(accepted) > 100)
        server.kill()
        await until(lambda: refused)
        server.start()
        await until(lambda: len(accepted) > 200)
        for node in group.nodes[1], group.nodes[0]:
            before = len(accepted)
            await node.stop(signal.SIGKILL)
            await until(lambda enough=before + 100: len(accepted) > enough)
        is_over.set()
        # What is kept before its answer comes is in neither list yet.
        await until(has_ended.is_set)
        await until(lambda: set(accepted) <= set(kept))
    assert len(kept) == len(set(kept))
    assert kept == sorted(kept)
    assert set(kept) <= {*accepted, *refused}
