"""A data object from the view of its reporter (SYN-01..SYN-05, SYN-13..SYN-16).

The reporter also sees and controls the observers (SYN-11, SYN-18, SYN-21, SYN-23), and resumes a
stored object (SYN-25, M-51). The value obeys the schema that the reporter or the catalogue gives
(CAT-05).
"""

import math
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Final, TypeAlias, final

import attrs
import trio
from typing_extensions import override

from actors.kit.arguments import check_text
from actors.runtime.objects.children import Children
from actors.runtime.objects.live_value import LiveObject, Writes, plain_copy
from actors.runtime.objects.participant import ObjectError, ObserverMoves, Participant, SchemaError
from actors.runtime.sync.schemas import schema_named
from fsm.sync.value.json import NoSchemaError, ObjectSchema, compile_schema, json_size, unsendable
from fsm.sync.value.value import can_be_set
from fsm.sync.value.writes import flaw_in
from specs.addresses.address import domain_of
from specs.bodies import object as bodies
from specs.bodies.word import AttributeType, Operation
from specs.jsonvalue import Json, JsonInput, JsonObject, frozen_object
from specs.limits.bus import MAX_ATTEMPTS
from specs.limits.protocol import GOODBYE_TIMEOUT, MAX_LIST
from specs.limits.sync import ABOUT_BYTES, DEFINITION_DEPTH
from specs.message import MessageType
from specs.reply_code import Code
from transports.bodies import read_object, write_body
from transports.sockets import open_background


@final
class ReportedObject:
    """A data object that a hyperty reports; made by `report`.

    Changes reach the observers in the order in which they were made. Several tasks may make
    changes.

    Attributes:
        url: Address of the object, by which it is observed.
        schema: Catalogue address of its data schema.
        name: Name for people; None: it has none.
        resumed: Whether it was stored before, and continues with the stored value and version.
    """

    def __init__(
        self,
        participant: Participant,
        url: str,
        created: bodies.CreateObject,
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
        self._frozen_from: JsonObject | None = None
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
        """The value, which can be written like any value of Python: `data.title = "x"`.

        A write changes the value at once, and is published in the background; see `flush`. Errors
        of a write are those of `LiveObject`.
        """
        return self._writes.live

    @property
    def version(self) -> int:
        """The last published version; each change raises the version by one."""
        return self._writes.version

    @property
    def value(self) -> Mapping[str, Json]:
        """The immutable value after all writes; `copy.deepcopy` makes a mutable copy."""
        now = self._writes.now
        if self._frozen_from is not now:
            self._frozen_from, self._value = now, frozen_object(now)
        return self._value

    async def flush(self) -> int:
        """Wait until all writes so far are published, and return the published version.

        If cancelled, only the wait ends: the writes are published all the same, and the next
        `flush` raises the error.

        Raises:
            ObjectError: A write since the last `flush` was not published, and the value is the
                published one again. 401: the hyperty is undeployed; 403: refused; 404: the
                object is deleted; 410: the runtime has closed.
        """
        return await self._writes.flush()

    async def set(self, path: str, value: JsonInput) -> int:
        """Set an attribute, wait for the publication, and return its version.

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
        """Remove an attribute or element, wait for the publication, and return its version.

        Args:
            path: Dotted path, as for `set`.

        If cancelled, the removal is made or not, as by `set`.

        Raises:
            SchemaError: The schema requires the attribute, or the path has an empty part.
            ObjectError: This write or an earlier one was not published; codes as of `set`.
        """
        return await self._change(path)

    async def add(self, path: str, *elements: JsonInput) -> int:
        """Append elements to an array, wait for the publication, and return its version.

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
        """Remove all equal elements from an array, wait for the publication, return its version.

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
        return await self._writes.publish(bodies.ChangeObject(self.url, path, value, kind, word))

    @property
    def observers(self) -> tuple[str, ...]:
        """Addresses of the present observers, in the order in which they subscribed."""
        return self._observers.observers

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
        body = write_body(bodies.AllowObserver(self.url, observer))
        await self._participant.ask_manager(MessageType.CREATE, body, self.url)

    async def expel(self, observer: str) -> None:
        """Remove an observer: after the return, the observer gets no change any more.

        The observer is notified, without waiting for its answer, and loses its permission. When it
        subscribes again, also to a public object, `Hyperty.on_subscribe` decides.

        Args:
            observer: Address of the hyperty.

        If cancelled, the observer may have been removed, and not notified.

        Raises:
            BadMessageError: `observer` is not an address.
            ObjectError: 401: the reporter is undeployed; 404: the object is deleted; 410: the
                runtime has closed.
        """
        check_text(observer, "observer")
        body = write_body(bodies.ExpelObserver(self.url, observer))
        await self._participant.ask_manager(MessageType.UNSUBSCRIBE, body, self.url)
        await self._participant.post(
            observer, MessageType.UNSUBSCRIBE, write_body(bodies.ObjectName(self.url))
        )
        # The list of observers follows by events, which may still be in the mailbox.
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
        public_part: JsonObject = {} if self.name is None else {"name": self.name}
        return write_body(bodies.InviteObservers(self.url, self.schema, (observer,), public_part))

    async def delete(self) -> None:
        """Delete the object, also in the store, and notify all observers.

        The end of the context of `report` deletes the object, too, unless it is stored.

        If cancelled, the object may have been deleted.

        Raises:
            ObjectError: 401: the hyperty is undeployed; 404: the object is deleted already;
                410: the runtime has closed.
        """
        body = write_body(bodies.ObjectName(self.url))
        await self._participant.ask_manager(MessageType.DELETE, body, self.url)


async def schema_for(
    participant: Participant, address: str, definition: Mapping[str, JsonInput] | None
) -> ObjectSchema | None:
    """Return the schema that values of an object must obey; None: each value is accepted.

    Args:
        participant: The hyperty.
        address: Catalogue address of the data schema.
        definition: JSON Schema to use instead; None: the schema of the catalogue is used.

    If cancelled, nothing has changed.

    Raises:
        SchemaError: The definition is not a JSON Schema.
        ObjectError: The catalogue has a schema, but it cannot be fetched or is not trusted; or 410:
            the runtime has closed.
    """
    if definition is None:
        value = await _read_schema(participant, address)
    else:
        value = plain_copy(definition, depth=DEFINITION_DEPTH)
    if value is None:
        return None
    if not isinstance(value, dict):
        raise SchemaError("", "the definition is no JSON object")
    try:
        return compile_schema(value)
    except NoSchemaError as exc:
        raise SchemaError("", str(exc)) from exc


async def _read_schema(participant: Participant, address: str) -> Json:
    """Read a data schema through the sync manager; None: there is none."""
    body = write_body(bodies.ObjectName(address))
    try:
        return (await participant.ask_manager(MessageType.READ, body, address)).body.get("value")
    except ObjectError as exc:
        if exc.code == Code.NOT_FOUND:
            return None
        raise


def checked_value(value: Mapping[str, JsonInput], schema: ObjectSchema | None) -> JsonObject:
    """Return a copy of a value that an object can have.

    Args:
        value: The value.
        schema: The schema that it must obey; None: each value is accepted.

    Raises:
        SchemaError: The value is not a JSON object, or does not obey the schema.
    """
    copy = plain_copy(value)
    if not isinstance(copy, dict):
        raise SchemaError("", "the value of an object is a JSON object")
    flaw = flaw_in(copy, schema)
    if flaw is not None:
        raise SchemaError(flaw.path, flaw.why)
    return copy


@attrs.frozen
class NewReport:
    """A data object that a hyperty is about to report.

    Attributes:
        schema: `comm`, `ctxt`, or the catalogue address of a data schema.
        data: The first value.
        name: Name for people.
        resources: What it is about, such as `chat`.
        observers: Addresses of hyperties that are invited.
        definition: JSON Schema of the value; None: that of the catalogue, if any.
        allow: Addresses of hyperties that may observe and read without a question.
        public: Whether every hyperty may observe and read.
        store: Whether the object outlives the process, and can be resumed.
        children: The children that it keeps; None: all, within the limits of an object.
    """

    schema: str
    data: Mapping[str, JsonInput]
    name: str | None = None
    resources: tuple[str, ...] = ()
    observers: tuple[str, ...] = ()
    definition: Mapping[str, JsonInput] | None = None
    allow: tuple[str, ...] = ()
    public: bool = False
    store: bool = False
    children: bodies.ChildWindow | None = None


_Created: TypeAlias = tuple[ReportedObject, Writes]
_FIRST: Final = 1
"""Version of the first value of an object."""


@asynccontextmanager
async def open_report(participant: Participant, new: NewReport) -> AsyncIterator[ReportedObject]:
    """Report an object while the context is open; when it is left, the object is deleted or stored.

    Invited hyperties may observe from the beginning; only `ReportedObject.invite` waits for their
    answers. When the context is left, waiting writes are published, for at most `GOODBYE_TIMEOUT`
    seconds; observers that do not answer are not waited for.

    Args:
        participant: The hyperty.
        new: The object.

    Yields:
        The reported object.

    If cancelled on entering, an object that is created within `GOODBYE_TIMEOUT` seconds is deleted
    at once, and one that is created later with the hyperty; a refusal is not raised.

    Raises:
        BadMessageError: On entering: an observer or allowed hyperty has no address.
        ObjectError: On entering: the object gets no address or no path; codes as of `report`.
        SchemaError: On entering: the value does not obey the schema, or the schema is invalid.
    """
    created: list[_Created] = []
    try:
        report, writes = await _await_creation(participant, new, created)
        for observer in new.observers:
            await report.post_invitation(observer)
        for observer in new.allow if report.resumed else new.allow[MAX_LIST:]:
            await report.allow(observer)
        async with writes.publishing(), report.children.open():
            yield report
    finally:
        for report, _ in created:
            # An error here means that the objects were deleted together with the hyperty.
            with suppress(ObjectError), trio.move_on_after(GOODBYE_TIMEOUT, shield=True):
                # A stored object stays, and its reporter may resume it.
                end = (
                    bodies.EndReport(report.url, store=True)
                    if new.store
                    else bodies.ObjectName(report.url)
                )
                await participant.ask_manager(MessageType.DELETE, write_body(end), report.url)
            report.children.forget()
            participant.end_report(report.url)


async def _await_creation(
    participant: Participant, new: NewReport, created: list[_Created]
) -> _Created:
    """Create an object, and add it to `created`, also if the wait is cancelled."""
    body, schema = await _describe(participant, new)
    is_over, hold = trio.Event(), trio.CancelScope(shield=True)

    async def create() -> None:
        with hold, participant.expecting_object():
            stored = await _resume(participant, body) if new.store else None
            url = stored.url if stored else await _create(participant, body, new.schema)
            participant.begin_report(url)
            data, version = (stored.data, stored.version) if stored else (body.value.data, _FIRST)
            writes = Writes(participant, url, data, version, schema)
            report = ReportedObject(participant, url, body, writes, resumed=stored is not None)
            # A resuming reporter has the stored children from the first moment.
            listed, window = (
                ({}, body.value.children_window)
                if stored is None
                else (
                    stored.children_objects,
                    stored.children_window,
                )
            )
            report.children.begin(listed, window)
            created.append((report, writes))
            is_over.set()

    async def create_or_forget() -> None:
        try:
            await create()
        except ObjectError:
            # After the wait was cancelled, nobody is there to get a refusal.
            if hold.deadline == math.inf:
                raise

    async with open_background() as nursery:
        nursery.start_soon(create_or_forget)
        try:
            await is_over.wait()
        finally:
            # The creation is open: the requester cannot know whether it succeeds.
            hold.deadline = trio.current_time() + GOODBYE_TIMEOUT
    return created[0]


async def _describe(
    participant: Participant, new: NewReport
) -> tuple[bodies.CreateObject, ObjectSchema | None]:
    """Return the request for a new object, and the schema of its value."""
    size = json_size([new.name, *new.resources])
    if size > ABOUT_BYTES:
        why = f"name and resources have {size} bytes, and may have {ABOUT_BYTES}"
        raise ObjectError(f"the {new.schema} object", Code.TOO_LARGE, why)
    if flaw := unsendable([new.name, *new.resources, new.schema]):
        why = f"name, resources or schema: {flaw.why}"
        raise ObjectError("the new object", Code.MALFORMED, why)
    address = schema_named(new.schema, domain_of(participant.url))
    schema = await schema_for(participant, address, new.definition)
    draft = bodies.NewObject(
        participant.url,
        checked_value(new.data, schema),
        runtime=participant.runtime.url,
        name=new.name,
        schema=address,
        resources=new.resources,
        children_window=new.children,
    )
    body = bodies.CreateObject(
        draft,
        address,
        store=new.store or None,
        allow=new.allow[:MAX_LIST] or None,
        public=new.public or None,
    )
    return body, schema


async def _create(participant: Participant, body: bodies.CreateObject, schema: str) -> str:
    """Create an object; return its address."""
    about = f"the {schema} object"
    # Several attempts: without an answer, it is unknown whether there is an object already.
    new = write_body(body)
    answer = await participant.ask_manager(MessageType.CREATE, new, about, MAX_ATTEMPTS)
    url = answer.body.get("resource")
    if not isinstance(url, str):
        raise ObjectError(about, Code.INTERNAL, "the answer has no address")
    return url


async def _resume(participant: Participant, created: bodies.CreateObject) -> bodies.Snapshot | None:
    """Resume the stored object of a schema and name.

    Args:
        participant: The hyperty.
        created: Schema and name of the object.

    If cancelled, the object may have been resumed, and is reported until the hyperty ends.

    Returns:
        The object with its stored value; None if there is no such object.

    Raises:
        ObjectError: 400: the runtime has no store; 409: the hyperty reports the object already;
            410: the runtime has closed; 500: the answer has no value.
    """
    body = write_body(bodies.Resume(schema=created.schema, name=created.value.name, store=True))
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
        raise ObjectError(created.schema, Code.INTERNAL, "the answer has no value")
    return read_object(first, bodies.Snapshot, "value")
