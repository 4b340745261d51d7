"""Leaving, step by step, with an end to each."""

from collections.abc import Awaitable, Callable
from typing import Final

import trio

from specs.limits.protocol import GOODBYE_TIMEOUT

__all__ = ["in_turn"]

_SHARE: Final = 0.25
"""Part of the time of a step that each gets after one has run out of it."""


async def in_turn(*steps: Callable[[], Awaitable[None]]) -> None:
    """Take each step, at most `GOODBYE_TIMEOUT` long.

    What a node or peer that is gone does not answer is left to its own timers (P2P-28).
    Whoever did not answer one will hardly answer the next: those get less, so that all
    together fit into a drain.
    """
    patience = GOODBYE_TIMEOUT
    for step in steps:
        with trio.move_on_after(patience) as waiting:
            await step()
        if waiting.cancelled_caught:
            patience = GOODBYE_TIMEOUT * _SHARE
