"""Memory in bytes: what looked-up values and JSON that is kept take."""

from collections.abc import Iterable
from sys import getsizeof
from typing import Final, TypeVar

from typing_extensions import override

from specs.jsonvalue import Json
from specs.message import Message

_MESSAGE: Final = 512
"""Bytes of a message without its addresses and its body."""


def json_bytes(value: Json) -> int:
    """Return the bytes of memory of JSON as objects; what is contained twice counts twice."""
    total, level = 0, [value]
    while level:
        part = level.pop()
        total += getsizeof(part)
        if isinstance(part, dict):
            total += sum(map(getsizeof, part))
            level.extend(part.values())
        elif isinstance(part, list):
            level.extend(part)
    return total


def message_bytes(message: Message) -> int:
    """Return the bytes of memory that a message takes."""
    return _MESSAGE + len(message.from_) + len(message.to) + json_bytes(dict(message.body))


K = TypeVar("K")
V = TypeVar("V")


class Memory(dict[K, V]):
    """A mapping that is looked up as often as a plain one, and begins anew when it is full.

    Only `keep` adds entries.

    Args:
        entries: Maximum number of entries.
        size: Maximum bytes of the texts that the entries are kept with.
    """

    __slots__ = ("_entries", "_left", "_size")

    def __init__(self, entries: int, size: int) -> None:
        super().__init__()
        self._entries: Final = entries
        self._size: Final = size
        self._left = size

    def keep(self, key: K, value: V, texts: Iterable[str]) -> V:
        """Keep and return a value; one that is larger than the whole memory is only returned.

        Args:
            key: The key.
            value: The value.
            texts: The texts that it holds, and its key; all else is small.
        """
        size = sum(map(getsizeof, texts))
        if size > self._size:
            return value
        if size > self._left or len(self) >= self._entries:
            self.clear()
        self._left -= size
        self[key] = value
        return value

    @override
    def clear(self) -> None:
        super().clear()
        self._left = self._size
