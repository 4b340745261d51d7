"""Sandboxes that are no sandboxes: what a host has to cope with."""

import json
from contextlib import asynccontextmanager

from actors.pipe.plan import PipeMessage, SandboxError, Word, write_message
from transports.errors import LinkError
from transports.link import Kind, Upgrade
from transports.memory import Wire
from transports.sockets import open_background


def no_sandbox(_label):
    raise SandboxError("there is none")


@asynccontextmanager
async def deaf_sandbox(label):
    """Yield a pipe at whose other end nobody is."""
    yield Wire(Kind.UNIX, label, 1, Upgrade()).dialler


def sandbox_that_says(word, reported, *messages):
    """Make sandboxes that say they are ready, then this, and hear nothing."""

    @asynccontextmanager
    async def spawn(label):
        wire = Wire(Kind.UNIX, label, 1, Upgrade())
        lines = (
            [PipeMessage(Word(word), 0, "", reported)]
            if not messages
            else [PipeMessage(Word(word), rest=json.dumps(one).encode()) for one in messages]
        )
        async with open_background() as background:
            background.start_soon(_say, wire.acceptor, lines)
            yield wire.dialler

    return spawn


async def _say(link, lines):
    try:
        await link.receive()
        for one in (PipeMessage(Word.READY), *lines):
            await link.send(write_message(one))
        while True:
            await link.receive()
    except LinkError:
        pass
