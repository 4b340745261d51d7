"""A process that serves lives until a signal stops it."""

import os
import signal
import sys
from contextlib import asynccontextmanager

import pytest
import trio
import trio.testing

from actors.cli.group import ExitCode
from actors.cli.lifetime import serve
from tests.support.command import ROOT

HANGING = """
import os, signal, threading, trio
from contextlib import asynccontextmanager
from actors.cli.lifetime import serve
from actors.kit.log import Level, configure_log

configure_log(Level.ERROR)

@asynccontextmanager
async def service():
    try:
        yield
    finally:
        with trio.CancelScope(shield=True):
            await trio.to_thread.run_sync(threading.Event().wait)

def ready(_):
    for one in (signal.SIGTERM, signal.SIGINT)[:{signals}]:
        os.kill(os.getpid(), one)

trio.run(serve, service, ready)
"""
"""A process whose service cannot be closed."""


def tell_myself(*signals):
    for one in signals:
        os.kill(os.getpid(), one)


class Service:
    """A service whose opening and closing take a given time."""

    def __init__(self, opening=0.0, closing=0.0):
        self.delays = opening, closing
        self.closed = False

    @asynccontextmanager
    async def open(self):
        await trio.sleep(self.delays[0])  # real time: it is interrupted
        try:
            yield "running"
        finally:
            await trio.sleep(self.delays[1])  # real time: it is interrupted
            self.closed = True


@pytest.mark.parametrize("one", [signal.SIGTERM, signal.SIGINT])
async def test_the_first_signal_drains(one):
    service = Service()
    assert await serve(service.open, lambda _: tell_myself(one)) is ExitCode.OK
    assert service.closed


async def test_a_second_signal_ends_at_once(autojump_clock):
    service, began = Service(closing=3600), trio.current_time()
    ended = await serve(service.open, lambda _: tell_myself(signal.SIGTERM, signal.SIGINT))
    assert (ended, trio.current_time()) == (ExitCode.INTERRUPTED, began)


@pytest.mark.parametrize(("signals", "code"), [(1, ExitCode.FAILED), (2, ExitCode.INTERRUPTED)])
async def test_a_thread_that_ignores_cancellation_does_not_keep_a_process(signals, code):
    """A thread that hangs, as on a disk; the process gets that many signals."""
    program = HANGING.format(signals=signals)
    with trio.fail_after(60):  # the start of the interpreter included
        ended = await trio.run_process(
            [sys.executable, "-c", program], cwd=ROOT, check=False, capture_stderr=True
        )
    assert ended.returncode == code
    assert ended.stderr.decode().startswith("protofly: ")
