"""A process that serves lives until it is told to go."""

import os
import signal
from contextlib import asynccontextmanager

import pytest
import trio
import trio.testing

from actors.commands.exit_code import ExitCode
from actors.commands.lifetime import serve


def tell_myself(*signals):
    for one in signals:
        os.kill(os.getpid(), one)


class Service:
    """A service whose opening and closing take as long as it is told."""

    def __init__(self, opening=0.0, closing=0.0):
        self.delays = opening, closing
        self.closed = False

    @asynccontextmanager
    async def open(self):
        await trio.sleep(self.delays[0])
        try:
            yield "running"
        finally:
            await trio.sleep(self.delays[1])
            self.closed = True


@pytest.mark.parametrize("one", [signal.SIGTERM, signal.SIGINT])
async def test_the_first_signal_drains(one):
    service = Service()
    assert await serve(service.open, lambda _: tell_myself(one)) is ExitCode.OK
    assert service.closed


async def test_the_ready_line_tells_of_the_running_service():
    told = []

    def ready(running):
        told.append(running)
        tell_myself(signal.SIGTERM)

    await serve(Service().open, ready)
    assert told == ["running"]


async def test_draining_takes_bounded_time(autojump_clock):
    service = Service(closing=3600)
    with trio.fail_after(5):
        assert await serve(service.open, lambda _: tell_myself(signal.SIGTERM)) is ExitCode.OK
    assert not service.closed


async def test_a_second_signal_ends_at_once(autojump_clock):
    service, began = Service(closing=3600), trio.current_time()
    assert await serve(service.open, lambda _: tell_myself(signal.SIGTERM, signal.SIGINT)) == 0
    assert trio.current_time() == began


async def test_before_it_is_ready_a_signal_interrupts():
    service = Service(opening=3600)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(interrupt_soon)
        assert await serve(service.open, print) is ExitCode.INTERRUPTED


async def interrupt_soon():
    await trio.testing.wait_all_tasks_blocked()
    tell_myself(signal.SIGINT)
