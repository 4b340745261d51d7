"""What a stub in a sandbox opens its sessions with, as its keeper gets it."""

from collections.abc import Awaitable, Callable
from typing import TypeAlias

import trio

__all__ = ["Login", "nothing"]

Login: TypeAlias = Callable[[], Awaitable[str | None]]
"""Returns a token that opens one session; None: there is nothing to show."""


async def nothing() -> str | None:
    """Show nothing: for nodes where nobody has to log in."""
    await trio.lowlevel.checkpoint()
    return None
