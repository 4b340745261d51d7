"""The messages of a session as server-sent events (CON-06)."""

from collections.abc import Sequence
from typing import final

import trio
from typing_extensions import override

from actors.node.http.page import Parts
from actors.node.http.rest_link import NewerPollError, RestGoneError, RestLink
from specs.limits.rest import REST_CURSOR_WAIT, REST_RETRY

__all__ = ["EventParts"]


@final
class EventParts(Parts):
    """One stream of events; the id of each is the number of its message.

    It ends when nobody says that what it brought was read, and from time to time when
    there is nothing to bring: who opens it anew shows that it is there, and up to where it
    has read. It also ends when somebody else asks, or the session is closed.

    Args:
        link: Whose messages.
        after: Up to where they were read.
        turn: Whose turn it is, of `RestLink.begin`.
    """

    def __init__(self, link: RestLink, after: int, turn: int) -> None:
        self._link = link
        self._sent = after
        self._turn = turn
        self._is_begun = False

    @override
    async def next(self) -> bytes | None:
        if not self._is_begun:
            self._is_begun = True
            return b"retry: %d\n\n" % REST_RETRY
        if not await self._was_read():
            return None
        try:
            lines = await self._link.wait_after(self._sent, self._turn)
        except (NewerPollError, RestGoneError):
            return None
        first, self._sent = self._sent + 1, self._sent + len(lines)
        return _events(first, lines) or None

    async def _was_read(self) -> bool:
        with trio.move_on_after(REST_CURSOR_WAIT):
            return await self._link.wait_read(self._sent)
        return False


def _events(first: int, lines: Sequence[bytes]) -> bytes:
    return b"".join(
        b"id: %d\ndata: %b\n\n" % (number, line) for number, line in enumerate(lines, first)
    )
