"""The process of a sandbox: its standard input is its pipe, and all it has.

Not for people: the host of a sandbox starts it (`actors/pipe/process.py`).
"""

import socket
import sys

import trio

from actors.kit.log import Level, configure_log
from actors.sandbox.confine import confine, preload
from actors.sandbox.sandbox import run_sandbox
from transports.link import Kind, Upgrade
from transports.socket_link import StreamLink

__all__ = ["main"]


def main(parent: int) -> None:
    """Give up everything, then live in the sandbox until the pipe ends."""
    configure_log(Level.WARNING)
    preload()
    confined = confine(parent)
    print(confined.summary, file=sys.stderr, flush=True)
    trio.run(_live, confined.lacking)


async def _live(lacking: tuple[str, ...]) -> None:
    pipe = trio.socket.from_stdlib_socket(socket.socket(fileno=0))
    link = StreamLink((Kind.UNIX, "pipe", Upgrade()), trio.SocketStream(pipe))
    try:
        await run_sandbox(link, lacking)
    finally:
        with trio.CancelScope(shield=True):
            await link.aclose()
