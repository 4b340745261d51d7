"""One child of a data object, and an iterator over the changes of children (SYN-24)."""

from abc import abstractmethod
from collections.abc import Iterator
from typing import Final, Protocol, final

import attrs
import trio

from actors.runtime.objects.error import ObjectError
from actors.runtime.objects.live_value import unpacked
from fsm.sync.children.children import Kept
from fsm.sync.children.io import Act
from fsm.sync.value.json import as_json
from specs.jsonvalue import Json
from specs.reply_code import Code

__all__ = ["Child", "ChildChange", "ChildChanges", "Siblings", "Watched", "checked_child"]


class Watched(Protocol):
    """Children that can be iterated and waited for."""

    @abstractmethod
    def __iter__(self) -> Iterator[str]:
        """Iterate over their names."""

    @abstractmethod
    def kept(self, name: str) -> Kept | None:
        """Return version and value of a child; None: there is none of this name."""

    @abstractmethod
    async def later(self) -> bool:
        """Wait for the next change of any child.

        If cancelled, only the wait ends.

        Returns:
            Whether further changes can come.
        """


@final
@attrs.frozen
class ChildChange:
    """A change of one child.

    Attributes:
        id: Name of the child.
        old: Its value before; None: it did not exist.
        new: Its value after; None: it was deleted.
    """

    id: str
    old: Json
    new: Json


@final
class ChildChanges:
    """An async iterator over the changes of children."""

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


class Siblings(Protocol):
    """All children of an object, as one of them uses them."""

    @abstractmethod
    def kept(self, name: str) -> Kept | None:
        """Return version and value of a child; None: there is none of this name."""

    @abstractmethod
    async def change(self, act: Act, name: str, value: Json = None) -> None:
        """Change or delete a child.

        Args:
            act: `Act.UPDATE` or `Act.DELETE`.
            name: Name of the child.
            value: The new value of an update.

        If cancelled, the change may have been sent.

        Raises:
            ObjectError: The child does not exist, or another hyperty created it.
            NotJsonError: The value is not JSON; nothing was sent.
        """


@final
@attrs.frozen
class Child:
    """One child of a data object; only the hyperty that created it changes or deletes it.

    Attributes:
        id: Its name: the address of its creator, `#`, and a number.
    """

    id: str
    _children: Siblings = attrs.field(repr=False)

    @property
    def creator(self) -> str:
        """Address of the hyperty that created it."""
        return self.id.rpartition("#")[0]

    @property
    def value(self) -> Json:
        """Its present value, immutable on every level; None: it was deleted."""
        kept = self._children.kept(self.id)
        return None if kept is None else kept.value

    async def update(self, value: Json) -> None:
        """Replace the value, and notify all observers of the object.

        Args:
            value: The new value; any JSON but None.

        If cancelled while it waits for other operations on children of the object, nothing has
        changed; later, the copy here has the new value, and the observers get it when the
        runtime next finds the difference.

        Raises:
            ObjectError: 400: the value is None; 403: another hyperty created the child; 404: it
                was deleted; 410: the object is gone or left, or the runtime has closed; 413: no
                room for the value.
            NotJsonError: The value is not JSON; nothing was sent.
        """
        await self._children.change(Act.UPDATE, self.id, value)

    async def delete(self) -> None:
        """Delete the child, and notify all observers of the object.

        If cancelled while it waits for other operations on children of the object, nothing has
        changed; later, the child is deleted here, and the observers get that when the
        runtime next finds the difference.

        Raises:
            ObjectError: 403: another hyperty created the child; 404: it was deleted before;
                410: the object is gone or left, or the runtime has closed.
        """
        await self._children.change(Act.DELETE, self.id)


def checked_child(name: str, value: Json) -> Json:
    """Return a copy of a value that a child may have.

    Args:
        name: Name of the child, for the error.
        value: The value.

    Raises:
        ObjectError: 400: the value is None.
        NotJsonError: The value is not JSON, or is nested too deep.
    """
    if value is None:
        raise ObjectError(name, Code.MALFORMED, "a child has a value")
    return as_json(value, (), unpacked)
