"""What a request to the domain registry asks for (M-21..M-28); for every back end of it."""

from actors.node.messages import Asked
from fsm.registry.record_index import address_of, search_of
from fsm.registry.records import Create, Find, Read, Touch
from specs.addresses.address import canonical
from specs.bodies.body import ReadRecord, Register, UpdateRecord
from specs.errors import BadMessageError, BadUrlError
from specs.jsonvalue import JsonObject
from specs.message import MessageType
from transports.bodies import read_body

__all__ = ["registry_input"]

_RUNTIME = "runtime"


def registry_input(asked: Asked) -> Create | Touch | Read | Find:
    """Read a request.

    Raises:
        BadMessageError: It is none that a registry knows.
    """
    message = asked.message
    match message.type:
        case MessageType.CREATE:
            return _create(asked)
        case MessageType.UPDATE:
            update = read_body(message, UpdateRecord)
            return Touch(_url(update.resource), asked.by, _fields(update), asked.is_upstream)
        case MessageType.READ:
            read = read_body(message, ReadRecord)
            search = search_of(read.resource, read.criteria)
            return Read(_url(address_of(read.resource))) if search is None else Find(search)
        case other:
            raise BadMessageError(f"the registry knows create, read and update, not {other}")


def _create(asked: Asked) -> Create:
    record = read_body(asked.message, Register).value
    value = asked.message.body["value"]
    if not isinstance(value, dict):
        raise BadMessageError("value is no record")
    kept: JsonObject = {**value, "url": record.url, "runtime": record.runtime}
    return Create(record.url, asked.by, asked.owner, kept, asked.is_moved, asked.is_upstream)


def _fields(update: UpdateRecord) -> JsonObject:
    """Return what an update sets: an attribute, several fields, or nothing (M-22..M-24)."""
    if update.attribute is not None:
        return {update.attribute: update.value}
    if update.value is None:
        return {}
    if not isinstance(update.value, dict):
        raise BadMessageError("value is no object, and no attribute is named")
    runtime = update.value.get(_RUNTIME)
    if isinstance(runtime, str):
        return {**update.value, _RUNTIME: _url(runtime)}
    return update.value


def _url(text: str) -> str:
    try:
        return canonical(text)
    except BadUrlError as exc:
        raise BadMessageError(f"resource {exc}") from exc
