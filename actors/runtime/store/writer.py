"""The store of a runtime's data objects: the only actor that writes to its file.

What comes in while one commit runs is the next one, so that a burst costs few syncs. What
observers here have of others' objects may be written a little later: it only has to be
a value that the object had.
"""

import math
from typing import TypeAlias, assert_never, final

import attrs
import structlog
import trio
from typing_extensions import override

from actors.kit.supervision.actor import Actor, Reply
from actors.runtime.store.file import ObjectFile, StoreFileError
from fsm.sync.stored import CopyForgotten, CopyKept, Keep
from specs.limits.sync import COPY_PAUSE, STORE_PAUSE

__all__ = ["Commit", "Later", "ObjectStore", "StoreMessage", "Stored"]

_log = structlog.get_logger("actors.runtime")

Stored: TypeAlias = StoreFileError | None
"""What a commit came to: an error, and nothing of it is durable; or None, and all is."""


@final
@attrs.frozen(slots=True)
class Commit:
    """Make changes durable, and say when they are."""

    changes: tuple[Keep, ...]
    done: Reply[Stored]


@final
@attrs.frozen(slots=True)
class Later:
    """Make the newest copy durable soon; of those before it nothing is needed."""

    copy: CopyKept | CopyForgotten


StoreMessage: TypeAlias = Commit | Later


@final
class ObjectStore(Actor[StoreMessage]):
    """Writes what it is asked to, together."""

    def __init__(self, file: ObjectFile) -> None:
        self._file = file
        self._asked: list[Commit] = []
        self._copies: dict[tuple[str, str], CopyKept | CopyForgotten] = {}
        self._write_at = math.inf
        self._is_broken = False

    @override
    async def handle(self, message: StoreMessage) -> None:
        match message:
            case Commit():
                self._asked.append(message)
            case Later(copy):
                self._copies[copy.url, copy.observer] = copy
                self._write_at = min(self._write_at, trio.current_time() + COPY_PAUSE)
            case _:
                assert_never(message)

    @override
    async def drained(self) -> None:
        if self._asked:
            await self._write()

    @override
    def deadline(self) -> float:
        return self._write_at

    @override
    async def timed_out(self) -> None:
        await self._write()

    @override
    async def stop(self) -> None:
        await self._write()

    async def _write(self) -> None:
        asked, self._asked = self._asked, []
        changes: list[Keep] = [one for commit in asked for one in commit.changes]
        error = await self._commit([*changes, *self._copies.values()])
        self._write_at = math.inf
        if error is None:
            self._copies.clear()
        elif self._copies:
            self._write_at = trio.current_time() + STORE_PAUSE
        for commit in asked:
            commit.done.send(error)

    async def _commit(self, changes: list[Keep]) -> Stored:
        try:
            await self._file.commit(changes)
        except StoreFileError as error:
            if not self._is_broken:
                _log.error("store cannot be written", path=str(error.where), why=error.reason)
            self._is_broken = True
            return error
        if self._is_broken:
            _log.warning("store is written again", path=str(self._file.path))
        self._is_broken = False
        return None
