"""Which schema the value of a new object must obey, and whether the first one does (CAT-05)."""

from collections.abc import Mapping

from actors.runtime.objects.context import Seat
from actors.runtime.objects.error import ObjectError, SchemaError
from actors.runtime.objects.live_value import plain_copy
from fsm.sync.value.schema import NoSchemaError, ObjectSchema, compiled
from fsm.sync.value.writes import flaw_in
from specs.bodies.sync import ObjectName
from specs.jsonvalue import Json, JsonObject
from specs.limits.sync import DEFINITION_DEPTH
from specs.message import MessageType
from specs.reply_code import Code
from transports.bodies import write_body

__all__ = ["checked_value", "schema_for"]


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
