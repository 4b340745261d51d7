"""How a hyperty comes to report a data object, and how that ends (SYN-01, SYN-05, SYN-25)."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Final, TypeAlias, final

import attrs
import trio

from actors.runtime.objects.context import Seat
from actors.runtime.objects.error import ObjectError
from actors.runtime.objects.reported_object import ReportedObject
from actors.runtime.objects.resumed import let_rest, taken_up
from actors.runtime.objects.value_check import checked_value, schema_for
from actors.runtime.objects.writes import Writes, published
from actors.runtime.sync.presence.registration import schema_named
from fsm.sync.value.schema import ObjectSchema
from specs.addresses.address import domain_of
from specs.bodies.sync import CreateObject, NewObject
from specs.jsonvalue import Json, JsonObject
from specs.limits.protocol import GOODBYE_TIMEOUT, MAX_LIST
from specs.message import MessageType
from specs.reply_code import Code
from transports.background import open_background
from transports.bodies import write_body

__all__ = ["NewReport", "open_report"]


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
