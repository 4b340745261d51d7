"""What becomes of the children of a data object, told one by one (SYN-24)."""

from abc import abstractmethod
from collections.abc import Iterator
from typing import Final, Protocol, final

import attrs
import trio

from fsm.sync.children.children import Kept
from specs.jsonvalue import Json

__all__ = ["ChildChange", "ChildChanges", "Watched"]


class Watched(Protocol):
    """Children that can be gone through, and waited for."""

    @abstractmethod
    def __iter__(self) -> Iterator[str]:
        """Go through their names."""

    @abstractmethod
    def kept(self, name: str) -> Kept | None:
        """Return what is known of one."""

    @abstractmethod
    async def later(self) -> bool:
        """Wait until something is new; tell whether there will be anything."""


@final
@attrs.frozen
class ChildChange:
    """What became of one child.

    Attributes:
        id: Its name.
        old: The value it had; None: it was not there.
        new: The value it has; None: it is there no more.
    """

    id: str
    old: Json
    new: Json


@final
class ChildChanges:
    """What becomes of children, one after the other."""

    def __init__(self, children: Watched) -> None:
        self._children = children
        self._seen: Final[dict[str, Kept]] = {}
        for name in children:
            kept = children.kept(name)
            if kept is not None:
                self._seen[name] = kept

    def __aiter__(self) -> "ChildChanges":
        return self

    async def __anext__(self) -> ChildChange:
        await trio.lowlevel.checkpoint()
        while (change := self._next()) is None:
            if not await self._children.later():
                raise StopAsyncIteration
        return change

    def _next(self) -> ChildChange | None:
        for name, seen in self._seen.items():
            if self._children.kept(name) is None:
                del self._seen[name]
                return ChildChange(name, seen.value, None)
        for name in self._children:
            kept, before = self._children.kept(name), self._seen.get(name)
            if kept is not None and (before is None or before.version != kept.version):
                self._seen[name] = kept
                return ChildChange(name, None if before is None else before.value, kept.value)
        return None
