"""A data object as the hyperty that reports it has it in hand (SYN-01..SYN-05, SYN-13..SYN-16).

What the reporter of an object has to do with its observers (SYN-11, SYN-18, SYN-21, SYN-23).

How a hyperty takes up what it reported, or observed, before a restart (SYN-25, M-51, M-52).
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, final

import trio

from actors.runtime.objects.children import Children
from actors.runtime.objects.context import Seat
from actors.runtime.objects.error import ObjectError, SchemaError
from actors.runtime.objects.live_value import LiveObject, plain_copy
from actors.runtime.objects.observers import ObserverMoves
from actors.runtime.objects.writes import Writes
from fsm.sync.value.value import has_way
from specs.bodies.object import Delegate, ObserverName, Resume
from specs.bodies.sync import (
    ChangeObject,
    CreateObject,
    EndReport,
    InviteObservers,
    ObjectName,
    Snapshot,
)
from specs.bodies.word import AttributeType, Operation
from specs.jsonvalue import Json, JsonObject
from specs.limits.protocol import GOODBYE_TIMEOUT
from specs.message import MessageType
from specs.reply_code import Code
from transports.bodies import read_object, write_body

__all__ = ["Attended", "ReportedObject", "delete", "have_stored", "let_rest", "taken_up"]


async def taken_up(seat: Seat, told: CreateObject) -> Snapshot | None:
    """Take up the stored object of that schema and name; None: there is none.

    Raises:
        ObjectError: 409 the hyperty reports it already.
    """
    body = write_body(Resume(schema=told.schema, name=told.value.name, store=True))
    try:
        answer = await seat.ask_manager(MessageType.CREATE, body, told.schema)
    except ObjectError as error:
        if error.code == Code.NOT_FOUND:
            return None
        raise
    value = answer.body.get("value")
    first = value[0] if isinstance(value, list) and value else None
    if not isinstance(first, dict):
        raise ObjectError(told.schema, Code.INTERNAL, "it came back without a value")
    return read_object(first, Snapshot, "value")


async def have_stored(seat: Seat, url: str) -> None:
    """Have an object stored that was handed over to this hyperty; all of it is on disk then.

    Raises:
        ObjectError: 400 this runtime stores nothing, 404 it was not handed over.
    """
    body = write_body(Resume(store=True, resource=url))
    await seat.ask_manager(MessageType.CREATE, body, url)


async def delete(seat: Seat, url: str) -> None:
    """Delete an object, a stored one, too.

    Raises:
        ObjectError: It is deleted already, or the hyperty undeployed.
    """
    await seat.ask_manager(MessageType.DELETE, write_body(ObjectName(url)), url)


async def let_rest(seat: Seat, url: str) -> None:
    """Let a stored object wait for its reporter to come back.

    Raises:
        ObjectError: It is deleted, or the hyperty undeployed.
    """
    await seat.ask_manager(MessageType.DELETE, write_body(EndReport(url, store=True)), url)


class Attended:
    """An object that others observe, as its reporter has it in hand.

    Attributes:
        url: Its address, by which it is observed.
    """

    def __init__(self, seat: Seat, url: str) -> None:
        self.url: Final = url
        self._seat = seat
        self._audience = seat.audiences.take(url)

    @property
    def observers(self) -> tuple[str, ...]:
        """Who observes now, in the order they came."""
        return self._audience.observers

    def observer_changes(self) -> ObserverMoves:
        """Go through who comes and leaves from now on: `async for move in …`.

        Each is an `ObserverJoined` or `ObserverLeft`. Whoever reads too slowly gets the
        difference instead; taken in order they always lead to `observers`. The loop ends
        with the object.
        """
        return self._audience.moves()

    async def allow(self, observer: str) -> None:
        """Let a hyperty observe and read the object without being asked; it is told nothing.

        Raises:
            ObjectError: 413 too many are allowed, 404 the object is deleted, 410 the
                hyperty is undeployed.
        """
        body = write_body(ObserverName(self.url, observer))
        await self._seat.ask_manager(MessageType.CREATE, body, self.url)

    async def expel(self, observer: str) -> None:
        """Shut a hyperty out: when this returns, nothing more is published to it.

        It is told, and is not waited for. It may ask again, also if the object is public:
        then `on_subscribe` decides. Whoever does not observe loses its allowance.

        Cancelled: it may be out, and not told.

        Raises:
            ObjectError: 404 the object is deleted, 410 the hyperty is undeployed.
        """
        body = write_body(ObserverName(self.url, observer))
        await self._seat.ask_manager(MessageType.UNSUBSCRIBE, body, self.url)
        await self._seat.post(observer, MessageType.UNSUBSCRIBE, write_body(ObjectName(self.url)))
        # What is told of it comes by the mailbox, which may be behind.
        with trio.move_on_after(GOODBYE_TIMEOUT):
            await self._audience.wait_without(observer)


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
