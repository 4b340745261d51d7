"""What set-ups have in common of which one party is a process that can be harmed."""

import signal
from collections.abc import Awaitable, Callable
from enum import Enum

import trio

from specs.reply_code import Code

HASTE = 20.0
"""How fast time goes while the harmed one is away."""

BRISK = 3.0
"""How fast time goes while a process comes back, whose own time does not: it has its deadlines."""

RETRY = 0.5
"""Seconds after which an application asks again.

It knows no more than its answers, and nothing tells it when another would be a better one.
"""

PATIENCE = 180.0
"""Seconds of the clock in which everything has to come to rest; few of them are real ones."""


class Harm(Enum):
    """What happens to a process."""

    KILLED = signal.SIGKILL
    STOPPED = signal.SIGSTOP


async def insist(ask: Callable[[], Awaitable[int]]) -> None:
    """Ask again, as an application does, until there is an answer."""
    with trio.fail_after(2 * PATIENCE):
        while await ask() != Code.OK:  # noqa: ASYNC110 - nothing else can be waited for
            await trio.sleep(RETRY)
