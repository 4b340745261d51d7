"""The seam between whoever keeps a sandbox and what makes one."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import TypeAlias

from transports.link import Link

__all__ = ["Spawn"]

Spawn: TypeAlias = Callable[[str], AbstractAsyncContextManager[Link]]
"""Opens a room and yields the keeper's end of its pipe; the argument is what logs call it.

When the context is left, nothing of the room runs any more, whatever went on in it.

Raises:
    RoomError: There is none to be had; raised on entering.
"""
