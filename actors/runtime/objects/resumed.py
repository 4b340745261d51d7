"""How a hyperty takes up what it reported, or observed, before a restart (SYN-25, M-51, M-52)."""

from actors.runtime.objects.context import Seat
from actors.runtime.objects.error import ObjectError
from specs.bodies.object import Resume
from specs.bodies.sync import CreateObject, EndReport, ObjectName, Snapshot
from specs.message import MessageType
from specs.reply_code import Code
from transports.bodies import read_object, write_body

__all__ = ["delete", "have_stored", "let_rest", "taken_up"]


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
