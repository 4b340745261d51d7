"""Steps of leaving, each with a time limit."""

from collections.abc import Awaitable, Callable
from typing import Final

import trio

from specs.limits.protocol import GOODBYE_TIMEOUT

__all__ = ["in_turn"]

_SHARE: Final = 0.25
"""Share of its time limit that each step gets after one has exceeded it."""


async def in_turn(*steps: Callable[[], Awaitable[None]]) -> None:
    """Take each step, for at most `GOODBYE_TIMEOUT` seconds.

    A node or peer that is gone does not answer; its own timers end what is left there (P2P-28). One
    that did not answer one step will hardly answer the next: the others get less time, so that all
    together fit into the time to drain.

    If cancelled, the remaining steps are left out.
    """
    patience = GOODBYE_TIMEOUT
    for step in steps:
        with trio.move_on_after(patience) as waiting:
            await step()
        if waiting.cancelled_caught:
            patience = GOODBYE_TIMEOUT * _SHARE
