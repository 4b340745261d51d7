"""Records of a domain registry behind a REST interface, with the rules of every registry (CON-02).

Ownership is checked before anything is changed: a record is registered by the runtime that owns
its address, and changed by the runtime that it names. The nodes and runtimes that use the server
keep these rules; the server does not know the owners.
"""

from collections.abc import Callable
from typing import Final, final

import attrs

from actors.kit.back_ends.answers import BackEndError, code_of, words
from actors.kit.http_client import HttpAnswer, HttpClient, path_of
from fsm.machines.registration import State
from fsm.registry.records import (
    AWAY,
    NO_SUCH_STATUS,
    UNKNOWN,
    Answered,
    Create,
    Find,
    Read,
    Touch,
    create_refusal,
    size_refusal,
    touch_refusal,
    wanted_state,
)
from fsm.registry.upstream_rest import (
    RestCall,
    StatusWatch,
    create_call,
    found,
    read_call,
    records_in,
    touch_call,
)
from specs.jsonvalue import JsonObject
from specs.limits.node import MAX_RECORDS, WATCHED_RECORDS
from specs.reply_code import Code

_UPDATED: Final = RestCall("GET", ("registry", "updated"))
_MANY: Final = Answered(Code.TOO_LARGE, f"a runtime has at most {MAX_RECORDS} records")
_AWAY: Final = Answered(Code.TIMEOUT, AWAY)


@final
@attrs.frozen
class RecordReply:
    """The answer to a request, and the change that others see.

    Attributes:
        status: The new status of the record, if others see a change of it; None: they do not.
    """

    said: Answered
    status: str | None = None


def _no_change(_url: str) -> None:
    """Do nothing before a change."""


@final
class RestRecords:
    """Sends requests to the server, within the rules; methods raise the errors of `HttpClient.ask`.

    Args:
        client: Asks the server.
        changing: Gets the address of each record before the server is asked to change it.
    """

    def __init__(self, client: HttpClient, changing: Callable[[str], None] = _no_change) -> None:
        self._client = client
        self._changing = changing
        self._watch = StatusWatch(WATCHED_RECORDS)
        self._live: dict[str, dict[str, bool]] = {}

    def left(self, runtime: str) -> tuple[str, ...]:
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
        call = create_call(asked)
        if isinstance(call, Answered):
            return RecordReply(call)
        refusal = create_refusal(asked, None)
        if refusal is None:
            held = await self._held(asked.url)
            refusal = create_refusal(asked, None if held is None else str(held.get("runtime")))
        if refusal is None and len(self._live.get(asked.by, {})) >= MAX_RECORDS:
            refusal = _MANY
        return await self._change(asked, call) if refusal is None else RecordReply(refusal)

    async def touch(self, asked: Touch) -> RecordReply:
        """Change a record, unregister it or keep it alive (M-22..M-24).

        If cancelled, it may be changed.

        Raises:
            HttpError: The server gave no answer.
            BackEndError: The answer cannot be used.
        """
        held = await self._held(asked.url)
        if held is None:
            return RecordReply(UNKNOWN)
        refusal = touch_refusal(asked, held) or size_refusal({**held, **asked.fields})
        wanted = wanted_state(_state_of(held), asked.fields)
        if refusal is None and wanted is None:
            refusal = NO_SUCH_STATUS
        if refusal is not None:
            return RecordReply(refusal)
        if asked.fields and wanted is not None:
            asked = attrs.evolve(asked, fields={**asked.fields, "status": wanted.value})
        return await self._change(asked, touch_call(asked))

    async def read(self, asked: Read | Find) -> Answered:
        """Read a record, or search for records (M-25..M-28).

        If cancelled, nothing has changed.

        Raises:
            HttpError: The server gave no answer.
            BackEndError: The answer cannot be used.
        """
        call = read_call(asked)
        if isinstance(call, Answered):
            return call
        answer = await self._ask(call)
        match code_of(answer):
            case Code.OK | Code.TIMEOUT as code:
                records = self._records(answer)
                return _AWAY if code is Code.TIMEOUT and not records else found(asked, records)
            case Code.NOT_FOUND:
                return UNKNOWN
            case code:
                return Answered(code, words(answer))

    async def disconnect(self, url: str) -> str | None:
        """Note at the server that the session of a record's runtime is over.

        If cancelled, it may be noted.

        Args:
            url: Address of the record.

        Returns:
            The new status, if others see a change of it.

        Raises:
            HttpError: The server gave no answer.
            BackEndError: The answer cannot be used.
        """
        call = touch_call(Touch(url, "", {"status": State.DISCONNECTED.value}))
        is_done = code_of(await self._ask(call)) is Code.OK
        return self._changed(url, State.DISCONNECTED.value) if is_done else None

    async def updated(self) -> tuple[tuple[str, str], ...]:
        """Return the records whose status others have changed, each with its new status.

        If cancelled, nothing has changed.

        Raises:
            HttpError: The server gave no answer.
            BackEndError: The answer cannot be used.
        """
        answer = await self._ask(_UPDATED)
        if code_of(answer) is not Code.OK:
            raise BackEndError(f"{answer.server} answered with status {answer.status}")
        read = [(str(one["url"]), str(one["status"])) for one in records_in(answer.json())]
        return tuple((url, status) for url, status in read if self._changed(url, status))

    async def aclose(self) -> None:
        """Close every connection."""
        await self._client.aclose()

    async def _change(self, asked: Create | Touch, call: RestCall) -> RecordReply:
        """Change a record at the server; for any result, the record ends with the session.

        A record that was registered in upstream's form lasts.
        """
        url = asked.url
        self._changing(url)
        live = self._live.setdefault(asked.by, {})
        live[url] = asked.is_lasting
        answer = await self._ask(call)
        code = code_of(answer)
        if code is not Code.OK:
            return RecordReply(Answered(code, words(answer)))
        status = _status_in(call)
        if status == State.DISCONNECTED:
            live.pop(url, None)
        return RecordReply(Answered(code), self._changed(url, status))

    def _changed(self, url: str, status: str) -> str | None:
        return status if self._watch.changed(url, status) else None

    async def _held(self, url: str) -> JsonObject | None:
        """Return the record of an address as the server has it; None: it has none."""
        call = read_call(Read(url))
        if isinstance(call, Answered):
            return None
        answer = await self._ask(call)
        match code_of(answer):
            case Code.OK | Code.TIMEOUT:
                named = [one for one in self._records(answer) if one["url"] == url]
                return named[0] if named else None
            case Code.NOT_FOUND:
                return None
            case code:
                raise BackEndError(f"{answer.server} answered {code} to a read")

    async def _ask(self, call: RestCall) -> HttpAnswer:
        path = path_of(*call.path, query=call.query)
        return await self._client.ask(call.method, path, call.body)

    def _records(self, answer: HttpAnswer) -> list[JsonObject]:
        records = records_in(answer.json())
        for one in records:
            self._watch.seen(str(one["url"]), str(one["status"]))
        return records


def _state_of(record: JsonObject) -> State:
    try:
        return State(str(record["status"]))
    except ValueError as exc:
        raise BackEndError("the record has a status that is none") from exc


def _status_in(call: RestCall) -> str:
    """Return the status a record has after a call: a sign of life makes it live."""
    named = (call.body or {}).get("status")
    return named if isinstance(named, str) else State.LIVE.value
