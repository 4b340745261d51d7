"""Begin and end of reporting a data object (SYN-01, SYN-05, SYN-25).

Also: which schema the value of an object must obey (CAT-05).
"""

import math
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Final, TypeAlias, final

import attrs
import trio

from actors.runtime.objects.error import ObjectError, SchemaError
from actors.runtime.objects.live_value import plain_copy
from actors.runtime.objects.participant import Participant
from actors.runtime.objects.reported_object import ReportedObject, resumed_object
from actors.runtime.objects.writes import Writes, publishing
from actors.runtime.sync.schemas import schema_named
from fsm.sync.value.json import NoSchemaError, ObjectSchema, compiled, json_size, unsendable
from fsm.sync.value.writes import flaw_in
from specs.addresses.address import domain_of
from specs.bodies.object import CreateObject, EndReport, NewObject, ObjectName
from specs.jsonvalue import Json, JsonInput, JsonObject
from specs.limits.bus import MAX_ATTEMPTS
from specs.limits.protocol import GOODBYE_TIMEOUT, MAX_LIST
from specs.limits.sync import ABOUT_BYTES, DEFINITION_DEPTH
from specs.message import MessageType
from specs.reply_code import Code
from transports.bodies import write_body
from transports.sockets import open_background


async def schema_for(
    participant: Participant, address: str, definition: Mapping[str, JsonInput] | None
) -> ObjectSchema | None:
    """Return the schema that values of an object must obey; None: each value is accepted.

    Args:
        participant: The hyperty.
        address: Catalogue address of the data schema.
        definition: JSON Schema to use instead; None: that of the catalogue.

    If cancelled, nothing has changed.

    Raises:
        SchemaError: The definition is not a JSON Schema.
        ObjectError: The catalogue has a schema, but it cannot be fetched or is not trusted; or 410:
            the runtime has closed.
    """
    if definition is None:
        found = await _read_schema(participant, address)
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


async def _read_schema(participant: Participant, address: str) -> Json:
    """Read a data schema by the runtime; None: there is none."""
    body = write_body(ObjectName(address))
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


@final
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
        public: Whether every hyperty may.
        store: Whether the object outlives the process, and is resumed.
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


_Created: TypeAlias = tuple[ReportedObject, Writes]
_FIRST: Final = 1
"""Version of the first value of an object."""


@asynccontextmanager
async def open_report(participant: Participant, wanted: NewReport) -> AsyncIterator[ReportedObject]:
    """Report an object while the context is open; when it is left, the object is deleted or stored.

    Invited hyperties may observe from the beginning; only `ReportedObject.invite` waits for their
    answers. When the context is left, waiting writes are published, for at most `GOODBYE_TIMEOUT`
    seconds; observers that do not answer are not waited for.

    Args:
        participant: The hyperty.
        wanted: The object.

    Yields:
        The reported object.

    If cancelled on entering, an object that is created within `GOODBYE_TIMEOUT` seconds is deleted
    at once, and one that is created later with the hyperty; a refusal is not raised.

    Raises:
        BadMessageError: On entering: an observer or allowed hyperty has no address.
        ObjectError: On entering: the object gets no address or no path; codes as of `report`.
        SchemaError: On entering: the value does not obey the schema, or that is no JSON Schema.
    """
    created: list[_Created] = []
    try:
        thing, writes = await _await_creation(participant, wanted, created)
        for observer in wanted.observers:
            await thing.post_invitation(observer)
        for observer in wanted.allow if thing.resumed else wanted.allow[MAX_LIST:]:
            await thing.allow(observer)
        async with publishing(writes), thing.children.open():
            yield thing
    finally:
        if created:
            thing, _ = created[0]
            # With the hyperty its objects are deleted anyway.
            with suppress(ObjectError), trio.move_on_after(GOODBYE_TIMEOUT, shield=True):
                # A stored object stays, and its reporter may resume it.
                end = EndReport(thing.url, store=True) if wanted.store else ObjectName(thing.url)
                await participant.ask_manager(MessageType.DELETE, write_body(end), thing.url)
            thing.children.forget()
            participant.end_report(thing.url)


async def _await_creation(
    participant: Participant, wanted: NewReport, created: list[_Created]
) -> _Created:
    """Create an object; it is in `created` even if the wait for it is cancelled."""
    body, schema = await _describe(participant, wanted)
    is_over, hold = trio.Event(), trio.CancelScope(shield=True)

    async def create() -> None:
        with hold, participant.expecting_object():
            had = await resumed_object(participant, body) if wanted.store else None
            url = had.url if had else await _create(participant, body, wanted.schema)
            participant.begin_report(url)
            data, version = (had.data, had.version) if had else (body.value.data, _FIRST)
            writes = Writes(participant, url, data, version, schema)
            thing = ReportedObject(participant, url, body, writes, resumed=had is not None)
            # From the first moment: a resuming reporter has the stored value.
            thing.children.begin(had.children_objects if had else {})
            created.append((thing, writes))
            is_over.set()

    async def create_or_forget() -> None:
        try:
            await create()
        except ObjectError:
            # What refuses it after the wait was cancelled has nobody to hear it.
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
    participant: Participant, wanted: NewReport
) -> tuple[CreateObject, ObjectSchema | None]:
    """Return the request for a new object, and the schema of its value."""
    size = json_size([wanted.name, *wanted.resources])
    if size > ABOUT_BYTES:
        why = f"name and resources have {size} bytes, and may have {ABOUT_BYTES}"
        raise ObjectError(f"the {wanted.schema} object", Code.TOO_LARGE, why)
    if flaw := unsendable([wanted.name, *wanted.resources, wanted.schema]):
        why = f"name, resources or schema: {flaw.why}"
        raise ObjectError("the new object", Code.MALFORMED, why)
    address = schema_named(wanted.schema, domain_of(participant.url))
    schema = await schema_for(participant, address, wanted.definition)
    new = NewObject(
        participant.url,
        checked_value(wanted.data, schema),
        runtime=participant.runtime.url,
        name=wanted.name,
        schema=address,
        resources=wanted.resources,
    )
    body = CreateObject(
        new,
        address,
        store=wanted.store or None,
        allow=wanted.allow[:MAX_LIST] or None,
        public=wanted.public or None,
    )
    return body, schema


async def _create(participant: Participant, body: CreateObject, schema: str) -> str:
    """Create an object; return its address."""
    about = f"the {schema} object"
    # Whoever gave up earlier would not know whether there is an object, and report another.
    new = write_body(body)
    answer = await participant.ask_manager(MessageType.CREATE, new, about, MAX_ATTEMPTS)
    url = answer.body.get("resource")
    if not isinstance(url, str):
        raise ObjectError(about, Code.INTERNAL, "it was given no address")
    return url
