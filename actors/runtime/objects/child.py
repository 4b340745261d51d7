"""One child of a data object as a hyperty has it in hand (SYN-24).

What becomes of the children of a data object, told one by one (SYN-24).
"""

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


class Siblings(Protocol):
    """All children of an object, as one of them needs them."""

    @abstractmethod
    def kept(self, name: str) -> Kept | None:
        """Return what is known of one."""

    @abstractmethod
    async def change(self, act: Act, name: str, value: Json = None) -> None:
        """Change or delete one.

        Raises:
            ObjectError: It is not there, or is not the hyperty's own.
        """


@final
@attrs.frozen
class Child:
    """One child of a data object; whoever created it, and nobody else, changes or deletes it.

    Attributes:
        id: Its name: address of its creator, `#`, and a number.
    """

    id: str
    _children: Siblings = attrs.field(repr=False)

    @property
    def creator(self) -> str:
        """Address of the hyperty that created it."""
        return self.id.rpartition("#")[0]

    @property
    def value(self) -> Json:
        """What it holds now, frozen; None: it is deleted."""
        kept = self._children.kept(self.id)
        return None if kept is None else kept.value

    async def update(self, value: Json) -> None:
        """Give it another value, and tell all who observe the object.

        Cancelled: it may have been told.

        Raises:
            ObjectError: 403 another created it, 404 it is deleted, 413 it would be too large,
                400 the value is None, 410 the object is gone.
            NotJsonError: The value is no JSON; nobody was told.
        """
        await self._children.change(Act.UPDATE, self.id, value)

    async def delete(self) -> None:
        """Delete it, and tell all who observe the object; otherwise as `update`."""
        await self._children.change(Act.DELETE, self.id)


def checked_child(name: str, value: Json) -> Json:
    """Return a copy of a value that a child may have.

    Raises:
        ObjectError: 400 it is none.
        NotJsonError: It is no JSON, or is nested too deep.
    """
    if value is None:
        raise ObjectError(name, Code.MALFORMED, "a child has a value")
    return as_json(value, (), unpacked)
