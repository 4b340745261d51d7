"""The body of a request as httpcore sends it."""

from typing import final

__all__ = ["HttpBody"]


@final
class HttpBody:
    """Bytes in one part, from the beginning each time that they are asked for.

    httpcore makes a generator of bytes that it is given, and leaves it half-way where the
    connection breaks while it writes; Python complains of that when it is collected.
    """

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._left = [content]

    def __aiter__(self) -> "HttpBody":
        return HttpBody(self._content)

    async def __anext__(self) -> bytes:
        if not self._left:
            raise StopAsyncIteration
        return self._left.pop()
