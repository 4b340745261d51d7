"""Sandboxes in this process, under any clock: for scenarios and tests, not for foreign code."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio

from actors.kit.log import get_logger
from actors.kit.supervision.supervisor import Crash
from actors.sandbox.sandbox import run_sandbox
from transports.link import Kind, Link, Upgrade
from transports.memory import Wire
from transports.sockets import open_background

_log = get_logger("actors.sandbox")


@asynccontextmanager
async def open_local_sandbox(label: str) -> AsyncIterator[Link]:
    """Run a sandbox in a task of this process while the context is open (see `Spawn`)."""
    wire = Wire(Kind.UNIX, label, 1, Upgrade())
    async with open_background() as background:
        background.start_soon(_live, wire.acceptor, label)
        yield wire.dialler
        await trio.aclose_forcefully(wire.dialler)


async def _live(link: Link, label: str) -> None:
    with Crash() as crash:
        await run_sandbox(link)
    if crash.error is not None:
        _log.warning("sandbox crashed", domain=label, why=str(crash.error))
    await link.aclose()
