"""A data object whose reporter another hyperty was, taken over (SYN-26)."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final

import attrs
import trio

from actors.runtime.objects.children import Children
from actors.runtime.objects.context import Seat
from actors.runtime.objects.error import ObjectError
from actors.runtime.objects.reported_object import ReportedObject
from actors.runtime.objects.resumed import delete, have_stored, let_rest
from actors.runtime.objects.value_check import schema_for
from actors.runtime.objects.writes import Writes, published
from specs.bodies.sync import CreateObject, NewObject, Snapshot
from specs.errors import BadMessageError
from specs.limits.protocol import GOODBYE_TIMEOUT, READ_PAUSE
from specs.message import MessageType
from specs.reply_code import LAST_SUCCESS, Code
from transports.bodies import read_body

__all__ = ["open_taken_over"]

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
