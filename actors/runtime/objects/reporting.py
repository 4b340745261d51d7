"""How a hyperty comes to report a data object, and how that ends (SYN-01, SYN-05, SYN-25).

A data object whose reporter another hyperty was, taken over (SYN-26).

Which schema the value of a new object must obey, and whether the first one does (CAT-05).
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Final, TypeAlias, final

import attrs
import trio

from actors.runtime.objects.children import Children
from actors.runtime.objects.context import Seat
from actors.runtime.objects.error import ObjectError, SchemaError
from actors.runtime.objects.live_value import plain_copy
from actors.runtime.objects.reported_object import (
    ReportedObject,
    delete,
    have_stored,
    let_rest,
    taken_up,
)
from actors.runtime.objects.writes import Writes, published
from actors.runtime.sync.presence.registration import schema_named
from fsm.sync.value.json import NoSchemaError, ObjectSchema, compiled
from fsm.sync.value.writes import flaw_in
from specs.addresses.address import domain_of
from specs.bodies.sync import CreateObject, NewObject, ObjectName, Snapshot
from specs.errors import BadMessageError
from specs.jsonvalue import Json, JsonObject
from specs.limits.protocol import GOODBYE_TIMEOUT, MAX_LIST, READ_PAUSE
from specs.limits.sync import DEFINITION_DEPTH
from specs.message import MessageType
from specs.reply_code import LAST_SUCCESS, Code
from transports.background import open_background
from transports.bodies import read_body, write_body

__all__ = ["NewReport", "checked_value", "open_report", "open_taken_over", "schema_for"]


async def schema_for(
    seat: Seat, address: str, definition: Mapping[str, Json] | None
) -> ObjectSchema | None:
    """Return what values of an object must obey; None: any will do.

    Args:
        seat: Whose object it is.
        address: Catalogue address of its data schema.
        definition: What it is to obey instead.

    Raises:
        SchemaError: It is no schema.
        ObjectError: There is one, but it cannot be had, or not be trusted.
    """
    if definition is None:
        found = await _found(seat, address)
    else:
        found = plain_copy(definition, depth=DEFINITION_DEPTH)
    if found is None:
        return None
    if not isinstance(found, dict):
        raise SchemaError("", "the definition is no JSON object")
    try:
        return compiled(found)
    except NoSchemaError as exc:
        raise SchemaError("", str(exc)) from exc


async def _found(seat: Seat, address: str) -> Json:
    """Ask the runtime for a data schema; None: it knows none."""
    body = write_body(ObjectName(address))
    try:
        return (await seat.ask_manager(MessageType.READ, body, address)).body.get("value")
    except ObjectError as exc:
        if exc.code == Code.NOT_FOUND:
            return None
        raise


def checked_value(value: Mapping[str, Json], schema: ObjectSchema | None) -> JsonObject:
    """Return a copy of a whole value that can be that of an object.

    Raises:
        SchemaError: It cannot.
    """
    copy = plain_copy(value)
    if not isinstance(copy, dict):
        raise SchemaError("", "the value of an object is a JSON object")
    flaw = flaw_in(copy, schema)
    if flaw is not None:
        raise SchemaError(flaw.path, flaw.why)
    return copy


_FIRST_PAUSE: Final = 0.05
"""Seconds between the first two looks whether the role is here; each pause is twice as long."""

_PATIENCE: Final = 60.0
"""Seconds in which the role must come: its hand-over is four questions to others."""


@asynccontextmanager
async def open_taken_over(seat: Seat, url: str, *, store: bool) -> AsyncIterator[ReportedObject]:
    """Report an object that is handed over to this hyperty, while the context is open.

    Waits until the role is here. On leaving the object is deleted; a stored one rests.

    Raises:
        ObjectError: 408 it did not come; 400 it cannot be stored: it can be taken without.
    """
    # It hears of the object's children from the first moment on.
    children = Children.of(seat, url)
    try:
        snapshot = await _await_role(seat, url)
        if store:
            await have_stored(seat, url)
        async with _reported(seat, snapshot, store=store) as thing:
            yield thing
    finally:
        children.forget()


@asynccontextmanager
async def _reported(seat: Seat, had: Snapshot, *, store: bool) -> AsyncIterator[ReportedObject]:
    """Report what is here now; nobody else does: whatever happens, it is not left behind."""
    url = had.url
    seat.reported.add(url)
    try:
        schema = await schema_for(seat, had.schema or "", None)
        told = NewObject(seat.url, had.data, name=had.name)
        writes = Writes(seat, url, had.data, had.version, schema)
        thing = ReportedObject(seat, url, CreateObject(told, had.schema or url), writes)
        await seat.read_observers(url, seat.audiences.take(url))
        thing.children.begin(had.children_objects)
        async with published(writes), thing.children.open():
            yield thing
    finally:
        # With the hyperty its objects are deleted anyway.
        with suppress(ObjectError), trio.move_on_after(GOODBYE_TIMEOUT, shield=True):
            await (let_rest(seat, url) if store else delete(seat, url))
        seat.reported.discard(url)
        seat.delegated.pop(url, None)
        seat.audiences.drop(url)


async def _await_role(seat: Seat, url: str) -> Snapshot:
    """Read the object until this hyperty is its reporter."""
    pause = _FIRST_PAUSE
    with trio.move_on_after(_PATIENCE):
        while True:
            snapshot = None
            # Who has just given it away cannot answer as the object any more.
            with trio.move_on_after(READ_PAUSE):
                snapshot = await _read(seat, url)
            if snapshot is not None and snapshot.reporter == seat.url:
                return snapshot
            await trio.sleep(pause)
            pause = min(2 * pause, READ_PAUSE)
    raise ObjectError(url, Code.TIMEOUT, "it was not handed over to this hyperty")


async def _read(seat: Seat, url: str) -> Snapshot | None:
    """Read an object; None: it is not shown."""
    answer = await seat.ask(url, MessageType.READ, {})
    value = answer.body.get("value")
    if answer.code > LAST_SUCCESS or not isinstance(value, dict):
        return None
    with suppress(BadMessageError):
        return read_body(attrs.evolve(answer, body=value), Snapshot)
    return None


@final
@attrs.frozen
class NewReport:
    """What a hyperty says of an object that it is about to report.

    Attributes:
        schema: `comm`, `ctxt`, or the catalogue address of a data schema.
        data: Its first value.
        name: For people.
        resources: What it is about, such as `chat`.
        observers: Who is invited from the beginning.
        definition: The JSON Schema it must obey; None: that of the catalogue, if any.
        allow: Who may observe and read without being asked about.
        public: Whether everybody may.
        store: Whether it outlives the process, and is taken up again.
    """

    schema: str
    data: JsonObject
    name: str | None = None
    resources: tuple[str, ...] = ()
    observers: tuple[str, ...] = ()
    definition: Mapping[str, Json] | None = None
    allow: tuple[str, ...] = ()
    public: bool = False
    store: bool = False


_Created: TypeAlias = tuple[ReportedObject, Writes]
_FIRST: Final = 1
"""Version of an object's first value."""


@asynccontextmanager
async def open_report(seat: Seat, wanted: NewReport) -> AsyncIterator[ReportedObject]:
    """Report an object while the context is open; on leaving it is deleted, or rests.

    Who is invited may observe from the beginning; what each answers is asked by
    `ReportedObject.invite` only. On leaving, what was written is published first, if that
    takes no longer than a second; observers that do not answer are not waited for. Cancelled
    on entering: an object that comes to be within a second is deleted at once, a later one
    with the hyperty.

    Raises:
        ObjectError: The object gets no address or no path.
        SchemaError: The value does not obey the schema, or that is none.
    """
    created: list[_Created] = []
    try:
        thing, writes = await _await_creation(seat, wanted, created)
        for observer in wanted.observers:
            await thing.post_invitation(observer)
        for observer in wanted.allow if thing.resumed else wanted.allow[MAX_LIST:]:
            await thing.allow(observer)
        async with published(writes), thing.children.open():
            yield thing
    finally:
        if created:
            thing, _ = created[0]
            # With the hyperty its objects are deleted anyway.
            with suppress(ObjectError), trio.move_on_after(GOODBYE_TIMEOUT, shield=True):
                await (let_rest(seat, thing.url) if wanted.store else thing.delete())
            thing.children.forget()
            seat.reported.discard(thing.url)
            seat.audiences.drop(thing.url)


async def _await_creation(seat: Seat, wanted: NewReport, created: list[_Created]) -> _Created:
    """Have an object created; it is in `created` even if the wait for it is cancelled."""
    told, schema = await _told(seat, wanted)
    is_over, hold = trio.Event(), trio.CancelScope(shield=True)

    async def create() -> None:
        with hold, seat.audiences.expecting():
            had = await taken_up(seat, told) if wanted.store else None
            url = had.url if had else await _create(seat, told, wanted.schema)
            seat.reported.add(url)
            data, version = (had.data, had.version) if had else (told.value.data, _FIRST)
            writes = Writes(seat, url, data, version, schema)
            thing = ReportedObject(seat, url, told, writes, resumed=had is not None)
            # From the first moment: who reports again has what was there before.
            thing.children.begin(had.children_objects if had else {})
            created.append((thing, writes))
            is_over.set()

    async with open_background() as nursery:
        nursery.start_soon(create)
        try:
            await is_over.wait()
        finally:
            # What was asked for is under way: who asked cannot tell whether it comes to be.
            hold.deadline = trio.current_time() + GOODBYE_TIMEOUT
    return created[0]


async def _told(seat: Seat, wanted: NewReport) -> tuple[CreateObject, ObjectSchema | None]:
    """Return what the sync manager is told of a new object, and what its value must obey."""
    address = schema_named(wanted.schema, domain_of(seat.url))
    schema = await schema_for(seat, address, wanted.definition)
    new = NewObject(
        seat.url,
        checked_value(wanted.data, schema),
        runtime=seat.runtime,
        name=wanted.name,
        schema=address,
        resources=wanted.resources,
    )
    told = CreateObject(
        new,
        address,
        store=wanted.store or None,
        allow=wanted.allow[:MAX_LIST] or None,
        public=wanted.public or None,
    )
    return told, schema


async def _create(seat: Seat, told: CreateObject, schema: str) -> str:
    """Have an object created; return its address."""
    about = f"the {schema} object"
    answer = await seat.ask_manager(MessageType.CREATE, write_body(told), about)
    url = answer.body.get("resource")
    if not isinstance(url, str):
        raise ObjectError(about, Code.INTERNAL, "it was given no address")
    return url
