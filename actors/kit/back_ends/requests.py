"""Requests to a domain registry, read from messages, and its answers as bodies (M-21..M-28)."""

from collections.abc import Callable
from typing import Final, TypeAlias, final

import attrs

from actors.kit.http_client import HttpAnswer, HttpClient, HttpError, path_of
from fsm.machines.registration import State
from fsm.registry import relay
from fsm.registry.records import (
    AWAY,
    NO_SUCH_STATUS,
    UNKNOWN,
    Answered,
    By,
    Create,
    Find,
    Read,
    Request,
    Touch,
    address_of,
    create_refusal,
    search_of,
    size_refusal,
    touch_refusal,
    wanted_state,
)
from specs.addresses.address import canonical
from specs.bodies.registry import ReadRecord, Register, UpdateRecord
from specs.errors import BadMessageError, BadUrlError, ReasonError
from specs.jsonvalue import JsonObject
from specs.limits.node import MAX_RECORDS, WATCHED_RECORDS
from specs.limits.protocol import SEARCH_PAGE
from specs.message import Message, MessageType
from specs.reply_code import Code
from transports.bodies import read_body

# Conversion of HTTP answers of back ends to reply codes and reasons (C-56).

_SHOWN: Final = 200
"""Maximum number of characters of a server's error text that are passed on to the requester."""


@final
class BackEndError(ReasonError, public=True):
    """A back end sent an answer that cannot be used."""

    summary = "the back end failed"


_ANSWERS: Final = {
    200: Code.OK,
    201: Code.OK,
    204: Code.OK,
    400: Code.MALFORMED,
    401: Code.UNAUTHENTICATED,
    403: Code.FORBIDDEN,
    404: Code.NOT_FOUND,
    408: Code.TIMEOUT,
    409: Code.CONFLICT,
    410: Code.GONE,
    413: Code.TOO_LARGE,
    503: Code.UNAVAILABLE,
}


def code_of(answer: HttpAnswer) -> Code:
    """Return the reply code of this project for an HTTP status of a back end.

    Raises:
        BackEndError: No reply code fits the status: the back end itself has failed.
    """
    code = _ANSWERS.get(answer.status)
    if code is None:
        raise BackEndError(f"{answer.server} answered with status {answer.status}")
    return code


def words(answer: HttpAnswer) -> str:
    """Return the error text in a server's refusal, or a sentence with the status.

    Args:
        answer: The answer.
    """
    try:
        said = answer.json()
    except HttpError:
        said = None
    words = said.get("message") or said.get("description") if isinstance(said, dict) else None
    if isinstance(words, str) and words.isprintable():
        return words[:_SHOWN]
    return f"it answered with status {answer.status}"


_RUNTIME: Final = "runtime"
_OWN_AFFAIR: Final = "only the runtime itself may read all that it has registered"


@attrs.frozen
class Asked:
    """Message for a service of a domain, with facts about its sender that only the router knows.

    Attributes:
        by: The runtime over whose session the message came.
        owner: Owner of the address that the message concerns, if there is one.
        is_upstream: Whether that runtime speaks upstream's form.
        users: The users that the runtime's registry records may name; None: any.
        is_returning: Whether runtimes of an earlier process of the node may be on their way back.
    """

    message: Message
    by: str
    owner: str | None
    is_upstream: bool = False
    users: frozenset[str] | None = None
    is_returning: bool = False


def read_request(asked: Asked) -> Request:
    """Read a request to a domain registry from its message.

    Raises:
        BadMessageError: The message is not a valid registry request.
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
    """Return the fields of a registry record that an update sets; may be empty (M-22..M-24)."""
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
    """Return the message body for an answer of the registry."""
    body: JsonObject = {}
    if said.why:
        body["description"] = said.why
    if said.value is not None or said.is_attribute:
        body["value"] = said.value
    if said.after is not None:
        body["next"] = said.after
    return body


# Records of a domain registry behind a REST interface, with the rules of every registry (CON-02).

_UPDATED: Final = relay.RestCall("GET", ("registry", "updated"))
_MANY: Final = Answered(Code.TOO_LARGE, f"a runtime has at most {MAX_RECORDS} records")
_AWAY: Final = Answered(Code.TIMEOUT, AWAY)


RecordReply: TypeAlias = tuple[Answered, str | None]
"""The answer to a change of a registry record, and the record's new status if it changed."""


def _no_change(_url: str) -> None:
    """Do nothing: the default for the callback before a change."""


class RestRecords:
    """Client of a registry with a REST interface; methods raise the errors of `HttpClient.ask`.

    Args:
        client: Asks the server.
        changing: Gets the address of each record before the server is asked to change it.
    """

    def __init__(self, client: HttpClient, changing: Callable[[str], None] = _no_change) -> None:
        self._client = client
        self._changing = changing
        self._watch = relay.StatusWatch(WATCHED_RECORDS)
        self._live: dict[str, dict[str, bool]] = {}

    def remove_runtime(self, runtime: str) -> tuple[str, ...]:
        """Remove a runtime; return the addresses of its records that end with its session.

        Args:
            runtime: Address of the runtime.
        """
        live = self._live.pop(runtime, {})
        return tuple(url for url, is_lasting in live.items() if not is_lasting)

    async def create(self, asked: Create) -> RecordReply:
        """Register a record (M-21).

        If cancelled, it may be registered.

        Raises:
            HttpError: The server gave no answer.
            BackEndError: The answer cannot be used.
        """
        call = relay.create_call(asked)
        if isinstance(call, Answered):
            return call, None
        refusal = create_refusal(asked, None)
        if refusal is None:
            held = await self._read_record(asked.url)
            refusal = create_refusal(asked, None if held is None else str(held.get("runtime")))
        if refusal is None and len(self._live.get(asked.by, {})) >= MAX_RECORDS:
            refusal = _MANY
        return await self._change(asked, call) if refusal is None else (refusal, None)

    async def touch(self, asked: Touch) -> RecordReply:
        """Change a record, unregister it or keep it alive (M-22..M-24).

        If cancelled, it may be changed.

        Raises:
            HttpError: The server gave no answer.
            BackEndError: The answer cannot be used.
        """
        held = await self._read_record(asked.url)
        if held is None:
            return UNKNOWN, None
        refusal = touch_refusal(asked, held) or size_refusal({**held, **asked.fields})
        wanted = wanted_state(_state_of(held), asked.fields)
        if refusal is None and wanted is None:
            refusal = NO_SUCH_STATUS
        if refusal is not None:
            return refusal, None
        if asked.fields and wanted is not None:
            asked = attrs.evolve(asked, fields={**asked.fields, "status": wanted.value})
        return await self._change(asked, relay.touch_call(asked))

    async def read(self, asked: Read | Find) -> Answered:
        """Read a record, or search for records (M-25..M-28).

        If cancelled, nothing has changed.

        Raises:
            HttpError: The server gave no answer.
            BackEndError: The answer cannot be used.
        """
        call = relay.read_call(asked)
        if isinstance(call, Answered):
            return call
        answer = await self._ask(call)
        match code_of(answer):
            case Code.OK | Code.TIMEOUT as code:
                records = self._records(answer)
                return (
                    _AWAY
                    if code is Code.TIMEOUT and not records
                    else relay.records_answer(asked, records)
                )
            case Code.NOT_FOUND:
                return UNKNOWN
            case code:
                return Answered(code, words(answer))

    async def disconnect(self, url: str) -> str | None:
        """Set a record's status at the server to disconnected: its runtime's session has ended.

        If cancelled, it may be noted.

        Args:
            url: Address of the record.

        Returns:
            The new status, if others see a change of it.

        Raises:
            HttpError: The server gave no answer.
            BackEndError: The answer cannot be used.
        """
        call = relay.touch_call(Touch(url, "", {"status": State.DISCONNECTED.value}))
        is_done = code_of(await self._ask(call)) is Code.OK
        return self._new_status(url, State.DISCONNECTED.value) if is_done else None

    async def read_changes(self) -> tuple[tuple[str, str], ...]:
        """Return the records whose status others have changed, each with its new status.

        If cancelled, nothing has changed.

        Raises:
            HttpError: The server gave no answer.
            BackEndError: The answer cannot be used.
        """
        answer = await self._ask(_UPDATED)
        if code_of(answer) is not Code.OK:
            raise BackEndError(f"{answer.server} answered with status {answer.status}")
        read = [(str(each["url"]), str(each["status"])) for each in relay.records_in(answer.json())]
        return tuple((url, status) for url, status in read if self._new_status(url, status))

    async def aclose(self) -> None:
        """Close all connections to the server."""
        await self._client.aclose()

    async def _change(self, asked: Create | Touch, call: relay.RestCall) -> RecordReply:
        """Change a record at the server, and note that the record ends with its runtime's session.

        A record that was registered in upstream's form remains after the session.
        """
        url = asked.url
        self._changing(url)
        live = self._live.setdefault(asked.by, {})
        live[url] = asked.is_lasting
        answer = await self._ask(call)
        code = code_of(answer)
        if code is not Code.OK:
            return Answered(code, words(answer)), None
        status = _status_in(call)
        if status == State.DISCONNECTED:
            live.pop(url, None)
        return Answered(code), self._new_status(url, status)

    def _new_status(self, url: str, status: str) -> str | None:
        return status if self._watch.is_change(url, status) else None

    async def _read_record(self, url: str) -> JsonObject | None:
        """Return the record of an address from the server; None: the server has none."""
        call = relay.read_call(Read(url))
        if isinstance(call, Answered):
            return None
        answer = await self._ask(call)
        match code_of(answer):
            case Code.OK | Code.TIMEOUT:
                named = [record for record in self._records(answer) if record["url"] == url]
                return named[0] if named else None
            case Code.NOT_FOUND:
                return None
            case code:
                raise BackEndError(f"{answer.server} answered {code} to a read")

    async def _ask(self, call: relay.RestCall) -> HttpAnswer:
        path = path_of(*call.path, query=call.query)
        return await self._client.ask(call.method, path, call.body)

    def _records(self, answer: HttpAnswer) -> list[JsonObject]:
        records = relay.records_in(answer.json())
        for record in records:
            self._watch.record_status(str(record["url"]), str(record["status"]))
        return records


def _state_of(record: JsonObject) -> State:
    try:
        return State(str(record["status"]))
    except ValueError as exc:
        raise BackEndError("the record has a status that is none") from exc


def _status_in(call: relay.RestCall) -> str:
    """Return the status that a record has after a call; a sign of life sets the status to live."""
    named = (call.body or {}).get("status")
    return named if isinstance(named, str) else State.LIVE.value
