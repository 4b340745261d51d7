"""A data object as its reporter has it (SYN-01..SYN-05, SYN-13..SYN-16).

Its reporter also sees and controls its observers (SYN-11, SYN-18, SYN-21, SYN-23). `resumed_object`
asks the sync manager for a stored one (SYN-25, M-51).
"""

from collections.abc import Mapping
from typing import Final, final

import trio
from typing_extensions import override

from actors.kit.arguments import check_text
from actors.runtime.objects.children import Children
from actors.runtime.objects.error import ObjectError, SchemaError
from actors.runtime.objects.live_value import LiveObject, plain_copy
from actors.runtime.objects.observers import ObserverMoves
from actors.runtime.objects.participant import Participant
from actors.runtime.objects.writes import Writes
from fsm.sync.value.value import can_be_set
from specs.bodies.object import (
    AllowObserver,
    ChangeObject,
    CreateObject,
    ExpelObserver,
    InviteObservers,
    ObjectName,
    Resume,
    Snapshot,
)
from specs.bodies.word import AttributeType, Operation
from specs.jsonvalue import Json, JsonInput, JsonObject, frozen_object
from specs.limits.bus import MAX_ATTEMPTS
from specs.limits.protocol import GOODBYE_TIMEOUT
from specs.message import MessageType
from specs.reply_code import Code
from transports.bodies import read_object, write_body


async def resumed_object(participant: Participant, created: CreateObject) -> Snapshot | None:
    """Resume the stored object of a schema and name.

    Args:
        participant: The hyperty.
        created: Schema and name of the object.

    If cancelled, the object may have been resumed, and is reported until the hyperty ends.

    Returns:
        The object with its stored value; None if there is no such object.

    Raises:
        ObjectError: 400: the runtime has no store; 409: the hyperty reports it already; 410: the
            runtime has closed; 500: it came back without a value.
    """
    body = write_body(Resume(schema=created.schema, name=created.value.name, store=True))
    try:
        answer = await participant.ask_manager(
            MessageType.CREATE, body, created.schema, MAX_ATTEMPTS
        )
    except ObjectError as error:
        if error.code == Code.NOT_FOUND:
            return None
        raise
    value = answer.body.get("value")
    first = value[0] if isinstance(value, list) and value else None
    if not isinstance(first, dict):
        raise ObjectError(created.schema, Code.INTERNAL, "it came back without a value")
    return read_object(first, Snapshot, "value")


@final
class ReportedObject:
    """A data object that a hyperty reports; made by `report`.

    Changes reach the observers in the order in which they were made. Several tasks may make
    changes.

    Attributes:
        url: Address of the object, by which it is observed.
        schema: Catalogue address of its data schema.
        name: Name for people; None: it has none.
        resumed: Whether it was stored before, and continues with that value and version.
    """

    def __init__(
        self,
        participant: Participant,
        url: str,
        created: CreateObject,
        writes: Writes,
        *,
        resumed: bool = False,
    ) -> None:
        self.url: Final = url
        self._participant = participant
        self._observers = participant.reported[url]
        self.resumed: Final = resumed
        self.schema: Final = created.schema
        self.name: Final = created.value.name
        self._writes = writes
        self._seen: JsonObject | None = None
        self._value = frozen_object({})
        self._children = Children.of(participant, url)

    @override
    def __repr__(self) -> str:
        state = "reported" if self.url in self._participant.reported else "over"
        where = self._participant.runtime.url
        return f"<ReportedObject {self.url} version {self.version} {state} in {where}>"

    @property
    def children(self) -> Children:
        """The children that the reporter and the observers have created beside the object."""
        return self._children

    @property
    def data(self) -> LiveObject:
        """The value, to be written like any value of Python: `data.title = "x"`.

        A write changes the value at once, and is published in the background; see `flush`. It
        raises SchemaError or ObjectError as described at `LiveObject`.
        """
        return self._writes.live

    @property
    def version(self) -> int:
        """Version that was published last; each change raises it by one."""
        return self._writes.version

    @property
    def value(self) -> Mapping[str, Json]:
        """The value with all writes, published or not; a copy of it (`copy.deepcopy`) is plain."""
        now = self._writes.now
        if self._seen is not now:
            self._seen, self._value = now, frozen_object(now)
        return self._value

    async def flush(self) -> int:
        """Wait until all writes so far are published, and return the published version.

        If cancelled, only the wait ends: the writes are published all the same, and the next
        `flush` raises what went wrong.

        Raises:
            ObjectError: A write since the last `flush` was not published, and the value is the
                published one again. 401: the hyperty is undeployed; 403: refused; 404: the
                object is deleted; 410: the runtime has closed.
        """
        return await self._writes.flush()

    async def set(self, path: str, value: JsonInput) -> int:
        """Set an attribute, wait until that is published, and return its version.

        Args:
            path: Dotted path: `room.temperature`, `items.0.done`. Missing objects on the path
                are created, missing elements of arrays are not.
            value: The new value; None removes the attribute or element.

        If cancelled while too many writes wait, nothing was written; later, the attribute has
        the new value and is published like a write to `data`.

        Raises:
            SchemaError: The value is not JSON or does not obey the schema, or the path leads
                nowhere or has an empty part; nothing has changed.
            ObjectError: This write or an earlier one was not published. 401: the hyperty is
                undeployed; 403: refused; 404: the object is deleted; 410: the runtime
                has closed.
        """
        return await self._change(path, plain_copy(value))

    async def remove(self, path: str) -> int:
        """Remove an attribute or element, wait until that is published, and return its version.

        Args:
            path: Dotted path, as for `set`.

        If cancelled, the removal is made or not, as by `set`.

        Raises:
            SchemaError: The schema requires the attribute, or the path has an empty part.
            ObjectError: This write or an earlier one was not published; codes as of `set`.
        """
        return await self._change(path)

    async def add(self, path: str, *elements: JsonInput) -> int:
        """Append elements to an array, wait until that is published, and return its version.

        Args:
            path: Dotted path of the array, as for `set`; it is created if it does not exist.
            elements: The elements.

        If cancelled, the elements are appended or not, as by `set`.

        Raises:
            SchemaError: An element is not JSON, the schema does not allow it, or the path leads
                nowhere or has an empty part; nothing has changed.
            ObjectError: This write or an earlier one was not published; codes as of `set`.
        """
        return await self._change(path, plain_copy(elements), Operation.ADD)

    async def discard(self, path: str, *elements: JsonInput) -> int:
        """Remove all equal elements from an array, wait until published, return the version.

        Args:
            path: Dotted path of the array, as for `set`.
            elements: The values to remove, each wherever it occurs.

        If cancelled, the elements are removed or not, as by `set`.

        Raises:
            SchemaError: The schema does not allow the result, a value is not JSON, or the path has
                an empty part.
            ObjectError: This write or an earlier one was not published; codes as of `set`.
        """
        return await self._change(path, plain_copy(elements), Operation.REMOVE)

    async def _change(
        self, path: str, value: Json = None, operation: Operation | None = None
    ) -> int:
        check_text(path, "path")
        if "" in path.split("."):
            raise SchemaError(path, "a path has no empty parts")
        is_made = value is not None and operation is not Operation.REMOVE
        if is_made and not can_be_set(self._writes.now, path):
            raise SchemaError(path, "no such attribute can be there")
        kind = None if operation is None else AttributeType.ARRAY.value
        word = None if operation is None else operation.value
        return await self._writes.publish(ChangeObject(self.url, path, value, kind, word))

    @property
    def observers(self) -> tuple[str, ...]:
        """Addresses of the present observers, in the order in which they subscribed."""
        return self._observers.present

    def observer_changes(self) -> ObserverMoves:
        """Iterate over joining and leaving observers from now on: `async for move in …`.

        Each item is an `ObserverJoined` or an `ObserverLeft`. A task that is more than
        `OBSERVER_CHANGES_KEPT` items behind gets the difference instead; all items in order
        always lead to `observers`. The iteration ends with the object. If the iterating task is
        cancelled, no item is lost for the same iterator.
        """
        return self._observers.moves()

    async def allow(self, observer: str) -> None:
        """Allow a hyperty to observe and read the object; it is not notified.

        Args:
            observer: Address of the hyperty.

        If cancelled, the hyperty may have been allowed.

        Raises:
            BadMessageError: `observer` is not an address.
            ObjectError: 401: the reporter is undeployed; 404: the object is deleted; 410: the
                runtime has closed; 413: too many hyperties are allowed.
        """
        check_text(observer, "observer")
        body = write_body(AllowObserver(self.url, observer))
        await self._participant.ask_manager(MessageType.CREATE, body, self.url)

    async def expel(self, observer: str) -> None:
        """Remove an observer: after the return, no change is published to it any more.

        The observer is notified, and its answer is not waited for. It also loses its
        permission. It may subscribe again, also to a public object; then
        `Hyperty.on_subscribe` decides.

        Args:
            observer: Address of the hyperty.

        If cancelled, the observer may have been removed, and not notified.

        Raises:
            BadMessageError: `observer` is not an address.
            ObjectError: 401: the reporter is undeployed; 404: the object is deleted; 410: the
                runtime has closed.
        """
        check_text(observer, "observer")
        body = write_body(ExpelObserver(self.url, observer))
        await self._participant.ask_manager(MessageType.UNSUBSCRIBE, body, self.url)
        await self._participant.post(
            observer, MessageType.UNSUBSCRIBE, write_body(ObjectName(self.url))
        )
        # Events of it come by the mailbox, which may be behind.
        with trio.move_on_after(GOODBYE_TIMEOUT):
            await self._observers.wait_without(observer)

    async def invite(self, observer: str) -> None:
        """Invite a hyperty and wait for its answer; it may observe after any answer.

        Args:
            observer: Address of the hyperty.

        If cancelled, the hyperty may have been invited.

        Raises:
            BadMessageError: `observer` is not an address.
            ObjectError: The hyperty declines (its code), does not exist (404), or does not
                answer (408); or the reporter is undeployed (401), the object is deleted (404),
                or the runtime has closed (410).
        """
        check_text(observer, "observer")
        await self._participant.ask_manager(
            MessageType.CREATE, self._invitation(observer), self.url
        )

    async def post_invitation(self, observer: str) -> None:
        """Invite a hyperty without waiting for its answer.

        Args:
            observer: Address of the hyperty.

        If cancelled, the hyperty is not invited.

        Raises:
            BadMessageError: `observer` is not an address.
            ActorStoppedError: The runtime has closed.
        """
        check_text(observer, "observer")
        hyperty, invitation = self._participant, self._invitation(observer)
        await hyperty.post(hyperty.manager, MessageType.CREATE, invitation)

    def _invitation(self, observer: str) -> JsonObject:
        shown: JsonObject = {} if self.name is None else {"name": self.name}
        return write_body(InviteObservers(self.url, self.schema, (observer,), shown))

    async def delete(self) -> None:
        """Delete the object, and what is stored of it; all observers are notified.

        Leaving the context of `report` does it, too, unless the object is stored.

        If cancelled, the object may have been deleted.

        Raises:
            ObjectError: 401: the hyperty is undeployed; 404: the object is deleted already;
                410: the runtime has closed.
        """
        body = write_body(ObjectName(self.url))
        await self._participant.ask_manager(MessageType.DELETE, body, self.url)
