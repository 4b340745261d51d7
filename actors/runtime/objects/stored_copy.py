"""What an observer has of an object, stored for its next life (SYN-25, M-52)."""

from contextlib import suppress
from typing import Final, final

from actors.runtime.objects.context import Seat
from actors.runtime.objects.error import ObjectError
from actors.runtime.sync.reporter.stored import NO_STORE
from fsm.sync.copy_io import Recalled
from fsm.sync.stored_io import CopyForgotten, CopyKept
from specs.bodies.object import Resume
from specs.jsonvalue import JsonObject
from specs.limits.sync import COPIES_STORED
from specs.message import MessageType
from specs.reply_code import Code
from transports.bodies import write_body

__all__ = ["StoredCopy", "check_room"]


def check_room(seat: Seat, url: str) -> None:
    """Say no if a copy cannot be stored.

    Raises:
        ObjectError: 400 there is no store, 413 it is full.
    """
    if not seat.shelf.stores:
        raise ObjectError(url, Code.MALFORMED, NO_STORE)
    if not seat.shelf.has_room(url, seat.url):
        raise ObjectError(url, Code.TOO_LARGE, f"{COPIES_STORED} observed objects are stored")


@final
class StoredCopy:
    """One observer's copy of one object, on disk."""

    def __init__(self, seat: Seat, url: str) -> None:
        self._seat: Final = seat
        self._url: Final = url

    async def recall(self) -> Recalled | None:
        """Return what was stored before a restart (M-52); None: nothing was."""
        kept = self._seat.shelf.copy(self._url, self._seat.url)
        if kept is None:
            return None
        with suppress(ObjectError):
            body = write_body(Resume(store=True))
            await self._seat.ask_manager(MessageType.SUBSCRIBE, body, self._url)
        return Recalled(kept.version, kept.data)

    def keep(self, version: int, data: JsonObject) -> None:
        """Store a newer value, soon."""
        self._seat.shelf.later(CopyKept(self._url, self._seat.url, version, data))

    def forget(self) -> None:
        """Store it no more: the object is gone, or not for this observer."""
        self._seat.shelf.later(CopyForgotten(self._url, self._seat.url))
