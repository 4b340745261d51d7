"""A search of a domain registry, which comes in pages (M-26..M-28)."""

from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, Self, TypeAlias, final

from specs.bodies.registry import FoundRecord, ReadRecord
from specs.errors import BadMessageError, ProtoflyError
from specs.jsonvalue import JsonObject
from specs.message import Message, reason_in
from specs.reply_code import LAST_SUCCESS, Code
from transports.bodies import read_object, write_body

__all__ = ["RecordSearch", "SearchError"]

_Ask: TypeAlias = Callable[[JsonObject], Awaitable[Message]]
"""Reads at the registry that is searched."""


@final
class SearchError(ProtoflyError):
    """A registry did not answer a search, or refused it.

    Attributes:
        code: Code of its answer.
    """

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(f"the registry answered {code} to a search: {reason}")
        self.code = code


@final
class RecordSearch:
    """The records that a search finds, newest first; an asynchronous iterator.

    A page is read when its first record is wanted. Records that are registered after the first
    page was read are not among them. If none of the records is live, those are returned whose
    hyperties or objects are away; their `status` says so. Records of a wrong form are left out:
    anybody can have written them.

    Args:
        ask: Reads at the registry.
        search: What is searched for; its `after` is not used.
    """

    def __init__(self, ask: _Ask, search: ReadRecord) -> None:
        self._ask: Final = ask
        self._search: Final = search
        self._page: deque[FoundRecord] = deque()
        self._after: str | None = None
        self._is_over = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> FoundRecord:
        """Return the next record.

        If cancelled, the record is the next one of a later call.

        Raises:
            SearchError: The registry does not answer, or refuses; a later call asks again.
            ActorStoppedError: The runtime has closed.
        """
        while not self._page and not self._is_over:
            await self._turn()
        if not self._page:
            raise StopAsyncIteration
        return self._page.popleft()

    async def _turn(self) -> None:
        """Read the next page."""
        body = write_body(self._search)
        if self._after is not None:
            body["after"] = self._after
        answer = await self._ask(body)
        value = answer.body.get("value")
        if answer.code == Code.NOT_FOUND:
            value = []
        elif answer.code > LAST_SUCCESS and answer.code != Code.TIMEOUT:
            raise SearchError(answer.code, reason_in(answer))
        if not isinstance(value, list):
            raise SearchError(answer.code, reason_in(answer) or "it has no list of records")
        for one in value:
            with suppress(BadMessageError):
                if isinstance(one, dict):
                    self._page.append(read_object(one, FoundRecord, "record"))
        following = answer.body.get("next")
        self._after = following if isinstance(following, str) and value else None
        self._is_over = self._after is None
