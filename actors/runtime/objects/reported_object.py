"""A data object as the hyperty that reports it has it in hand (SYN-01..SYN-05, SYN-13..SYN-16)."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, final

from actors.runtime.objects.children import Children
from actors.runtime.objects.context import Seat
from actors.runtime.objects.error import SchemaError
from actors.runtime.objects.live_value import LiveObject, plain_copy
from actors.runtime.objects.observer_control import Attended
from actors.runtime.objects.resumed import delete
from actors.runtime.objects.writes import Writes
from fsm.sync.value.value import has_way
from specs.bodies.object import Delegate
from specs.bodies.sync import ChangeObject, CreateObject, InviteObservers
from specs.bodies.word import AttributeType, Operation
from specs.jsonvalue import Json, JsonObject
from specs.message import MessageType
from specs.reply_code import Code
from transports.bodies import write_body

__all__ = ["ReportedObject"]


@final
class ReportedObject(Attended):
    """An object that a hyperty reports; made by `report`.

    Changes reach the observers in the order in which they were made; several tasks may
    make them.

    Attributes:
        url: Its address, by which it is observed.
        schema: Catalogue address of its data schema.
        name: For people.
        resumed: Whether it was stored, and goes on with the value and version it had.
    """

    def __init__(
        self,
        seat: Seat,
        url: str,
        told: CreateObject,
        writes: Writes,
        *,
        resumed: bool = False,
    ) -> None:
        super().__init__(seat, url)
        self.resumed: Final = resumed
        self.schema: Final = told.schema
        self.name: Final = told.value.name
        self._writes = writes
        self._children = Children.of(seat, url)

    @property
    def children(self) -> Children:
        """What the hyperty itself and those who observe have created beside the object."""
        return self._children

    @property
    def data(self) -> LiveObject:
        """The value, to be written like any value of Python: `data.title = "x"`.

        Each write is in it at once, and is published soon; see `flush`.
        """
        return self._writes.live

    @property
    def version(self) -> int:
        """Of the change that was published last; rises by one with each."""
        return self._writes.version

    @property
    def value(self) -> Mapping[str, Json]:
        """The value with all that was written; what is in it is not to be changed in place."""
        return MappingProxyType(self._writes.now)

    async def flush(self) -> int:
        """Wait until all that was written into `data` so far is published; return the version.

        Raises:
            ObjectError: A write since the last `flush` was not published: 403 refused, 404
                the object is deleted, 410 the hyperty is undeployed. The value is what was.
        """
        return await self._writes.flush()

    async def set(self, path: str, value: Json) -> int:
        """Set an attribute, wait until that is published, and return the version it has.

        Args:
            path: Where, dotted: `room.temperature`, `items.0.done`. Objects on the way are
                made, elements of lists are not.
            value: What; None removes the attribute, or the element.

        Cancelled: the change may have been made.

        Raises:
            ObjectError: The object is deleted, or the hyperty undeployed; or an earlier write
                was not published.
            SchemaError: The schema does not take it; nothing has changed.
        """
        return await self._change(path, plain_copy(value))

    async def remove(self, path: str) -> int:
        """Remove an attribute, or an element; otherwise as `set`."""
        return await self._change(path)

    async def add(self, path: str, *elements: Json) -> int:
        """Append elements to an array, which is made if it is not there; otherwise as `set`."""
        return await self._change(path, plain_copy(elements), Operation.ADD)

    async def discard(self, path: str, *elements: Json) -> int:
        """Take all that equals these elements out of an array; otherwise as `set`."""
        return await self._change(path, plain_copy(elements), Operation.REMOVE)

    async def _change(
        self, path: str, value: Json = None, operation: Operation | None = None
    ) -> int:
        is_made = value is not None and operation is not Operation.REMOVE
        if not path or (is_made and not has_way(self._writes.now, path)):
            raise SchemaError(path, "no such attribute can be there")
        kind = None if operation is None else AttributeType.ARRAY.value
        word = None if operation is None else operation.value
        return await self._writes.publish(ChangeObject(self.url, path, value, kind, word))

    async def invite(self, observer: str) -> None:
        """Invite a hyperty: it may observe from now on, whatever it answers.

        Raises:
            ObjectError: It does not want to, is not there, or does not answer; or the
                object is deleted.
        """
        await self._seat.ask_manager(MessageType.CREATE, self._invitation(observer), self.url)

    async def post_invitation(self, observer: str) -> None:
        """Invite a hyperty, and wait for no answer."""
        await self._seat.post_to_manager(MessageType.CREATE, self._invitation(observer))

    def _invitation(self, observer: str) -> JsonObject:
        shown: JsonObject = {} if self.name is None else {"name": self.name}
        return write_body(InviteObservers(self.url, self.schema, (observer,), shown))

    async def delegate(self, to: str) -> None:
        """Hand the object over to another hyperty of the domain, which reports it from now on.

        It is asked (`on_delegated`), and then goes on with the next version, at the same
        address and with the same observers. From the call on nothing can be written here;
        if this raises, all is as it was.

        Cancelled: it may have been handed over, now or soon; then no write is published.

        Raises:
            ObjectError: 403 it does not want to, or lives in another domain; 404, 408 it is
                not there, or does not answer; 409 a hand-over is under way; 410 it is not
                known what became of the object: the node has forgotten it.
        """
        await self._writes.flush()
        self._writes.shut(Code.CONFLICT, "it is being handed over")
        is_given = False
        try:
            body = write_body(Delegate(self.url, to))
            await self._seat.ask_manager(MessageType.CREATE, body, self.url)
            is_given = to != self._seat.url
        finally:
            self._writes.reopen()
        if is_given:
            self._writes.shut(Code.GONE, "another hyperty reports it now")

    async def delete(self) -> None:
        """Delete the object, a stored one, too; all observers are told.

        Called on leaving, unless it is stored.
        """
        await delete(self._seat, self.url)
