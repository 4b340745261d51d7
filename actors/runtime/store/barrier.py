"""What is said of stored objects waits here until what it says is on disk (SYN-25, I-D2).

The sync manager notes what is to be written as it goes; when its batch of messages is done
all of it is committed together, and then what had to wait is said, in order. A store that
cannot be written is tried again; until then what concerns the objects in question waits, new
changes of stored objects are refused, and everything else goes on.
"""

import math
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Final, TypeAlias, final

import trio

from actors.kit.supervision.actor import ActorRef
from actors.runtime.store.writer import Commit, StoreMessage
from fsm.sync.stored import ChildrenKept, Keep, Rest
from specs.jsonvalue import JsonObject
from specs.limits.sync import STORE_PAUSE
from specs.message import Message

__all__ = ["Act", "StoreGate"]

Act: TypeAlias = Callable[[], Awaitable[None]]
"""What is said once all is written."""


@final
class StoreGate:
    """Between the sync manager and whom it tells.

    Args:
        store: Who writes; None: this runtime stores nothing.
        rest: What is stored; it follows what is written.

    Attributes:
        is_broken: Whether the store cannot be written now.
        stored: The objects that are stored.
    """

    def __init__(
        self, store: ActorRef[StoreMessage] | None = None, rest: Rest | None = None
    ) -> None:
        self.is_broken = False
        self.stored: Final[set[str]] = set()
        self._store = store
        self.rest: Final = Rest() if rest is None else rest
        self._changes: list[Keep] = []
        self._dirty: set[str] = set()
        self._held: list[Act] = []
        self._retry_at = math.inf

    @property
    def stores(self) -> bool:
        """Whether anything can be stored."""
        return self._store is not None

    def keep(self, url: str, changes: Iterable[Keep]) -> None:
        """Have changes written of an object; what is said of it from now on waits for that."""
        before = len(self._changes)
        self._changes += changes
        if len(self._changes) > before:
            self._dirty.add(url)

    def keep_children(self, url: str, children: JsonObject) -> None:
        """Have the children of an object written, if it is stored."""
        if url in self.stored:
            self.keep(url, [ChildrenKept(url, children)])

    def holds(self, *messages: Message) -> bool:
        """Say whether a message, or the answer to one, has to wait."""
        return bool(self._dirty) and any(map(self._concerns, messages))

    def _concerns(self, message: Message) -> bool:
        named = message.body.get("resource")
        said = (message.from_, message.to, named if isinstance(named, str) else "")
        return any(one == url or one.startswith(f"{url}/") for url in self._dirty for one in said)

    def hold(self, act: Act) -> None:
        """Do something once all is written."""
        self._held.append(act)

    def hold_note(self, note: Callable[[], None]) -> None:
        """Note something once all is written."""

        async def act() -> None:
            note()

        self._held.append(act)

    def is_dirty(self, url: str) -> bool:
        """Say whether something of an object is not written yet."""
        return url in self._dirty

    def deadline(self) -> float:
        """Return when `settle` is due although nothing has come."""
        return self._retry_at

    async def settle(self) -> None:
        """Have all written that is to be, and then say what had to wait."""
        if self._store is None or not self._changes:
            return
        if self.is_broken and trio.current_time() < self._retry_at:
            return
        error = await self._store.ask(partial(Commit, tuple(self._changes)))
        self.is_broken = error is not None
        if self.is_broken:
            self._retry_at = trio.current_time() + STORE_PAUSE
            return
        self._retry_at = math.inf
        self._changes.clear()
        while self._held:
            held, self._held = self._held, []
            for act in held:
                await act()
        self._dirty.clear()
