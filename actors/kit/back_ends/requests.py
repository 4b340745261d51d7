"""Requests to a domain registry, read from messages, and its answers as bodies (M-21..M-28)."""

from typing import Final, final

import attrs

from fsm.registry.records import (
    Answered,
    By,
    Create,
    Find,
    Read,
    Touch,
    address_of,
    search_of,
)
from specs.addresses.address import canonical
from specs.bodies.registry import ReadRecord, Register, UpdateRecord
from specs.errors import BadMessageError, BadUrlError
from specs.jsonvalue import JsonObject
from specs.limits.protocol import SEARCH_PAGE
from specs.message import Message, MessageType
from specs.reply_code import Code
from transports.bodies import read_body

_RUNTIME: Final = "runtime"
_OWN_AFFAIR: Final = "only the runtime itself may read all that it has registered"


@final
@attrs.frozen
class Asked:
    """A message for a service of a domain, with what only its router knows.

    Attributes:
        by: The runtime whose session it came over.
        owner: Owner of the address that the message concerns, if there is one.
        is_upstream: Whether that runtime speaks upstream's form.
        users: The users that its records may name; None: any.
        is_returning: Whether runtimes of an earlier process of the node may be on their way back.
    """

    message: Message
    by: str
    owner: str | None
    is_upstream: bool = False
    users: frozenset[str] | None = None
    is_returning: bool = False


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
            url, fields = _url(update.resource), _fields(update)
            return Touch(url, asked.by, fields, asked.is_upstream, asked.users)
        case MessageType.READ:
            read = read_body(message, ReadRecord)
            search = search_of(read.resource, read.criteria)
            if search is not None:
                if read.attribute is not None:
                    raise BadMessageError("attribute is for one record, not for a search")
                if search.by is By.RUNTIME and search.value != asked.by:
                    raise BadMessageError(_OWN_AFFAIR, Code.FORBIDDEN)
                return Find(search, read.limit or SEARCH_PAGE, read.after)
            if read.limit is not None or read.after is not None:
                raise BadMessageError("limit and after are for a search, not for one record")
            return Read(_url(address_of(read.resource)), read.attribute)
        case other:
            raise BadMessageError(f"the registry knows create, read and update, not {other}")


def _create(asked: Asked) -> Create:
    record = read_body(asked.message, Register).value
    value = asked.message.body["value"]
    if not isinstance(value, dict):
        raise BadMessageError("value is no record")
    kept: JsonObject = {**value, "url": record.url, "runtime": record.runtime}
    return Create(record.url, asked.by, asked.owner, kept, asked.is_upstream, asked.users)


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


def answer_body(said: Answered) -> JsonObject:
    """Return the body of an answer."""
    body: JsonObject = {}
    if said.why:
        body["description"] = said.why
    if said.value is not None or said.is_attribute:
        body["value"] = said.value
    if said.after is not None:
        body["next"] = said.after
    return body
