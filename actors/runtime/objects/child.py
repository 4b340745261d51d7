"""One child of a data object as a hyperty has it in hand (SYN-24)."""

from abc import abstractmethod
from typing import Protocol, final

import attrs

from actors.runtime.objects.error import ObjectError
from actors.runtime.objects.live_value import unpacked
from fsm.sync.children.children import Kept
from fsm.sync.children.io import Act
from fsm.sync.value.json import as_json
from specs.jsonvalue import Json
from specs.reply_code import Code

__all__ = ["Child", "Siblings", "checked_child"]


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
