"""The domain registry of a node whose records are kept behind a REST interface (CON-02).

Ownership is the node's to check, before anything is changed: a record is registered by
the session that owns its address, and changed by the runtime that it names. Changes of
status are reported when a request of this node makes them, and when the server lists them.
When a session ends, its records are disconnected, as in a registry of the node's own.
"""

from functools import partial
from typing import Final, final

import attrs
import trio
from typing_extensions import override

from actors.kit.http_client import HttpAnswer, HttpClient, HttpError, ServerUrl, path_of
from actors.kit.ids import IdSource
from actors.kit.log import get_logger
from actors.node.connectors.service import (
    BackEndError,
    Plan,
    Replied,
    RetryWorker,
    Say,
    Service,
    code_of,
)
from actors.node.messages import Asked
from actors.node.registry.registry import answer_body, notification, registry_input
from fsm.machines.registration import State
from fsm.registry.records import (
    AWAY,
    NO_SUCH_STATUS,
    OK,
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
from specs.limits.node import (
    BACKEND_TIMEOUT,
    MAX_RECORDS,
    REGISTRY_POLL,
    RETRY_QUEUE_PAUSE,
    WATCHED_RECORDS,
)
from specs.message import Message
from specs.reply_code import Code

__all__ = ["RestRegistry"]

_log = get_logger("actors.node")

_UPDATED: Final = RestCall("GET", ("registry", "updated"))
_MANY: Final = Answered(Code.TOO_LARGE, f"a runtime has at most {MAX_RECORDS} records")
_AWAY: Final = Answered(Code.TIMEOUT, AWAY)
_SHOWN: Final = 200
"""Characters of a server's own words that are passed on."""


@final
class RestRegistry(Service):
    """Relays to a registry behind a REST interface."""

    def __init__(self, address: str, server: ServerUrl, ids: IdSource) -> None:
        self._address = address
        self._client = HttpClient(server)
        self._ids = ids
        self._watch = StatusWatch(WATCHED_RECORDS)
        self._live: dict[str, dict[str, bool]] = {}
        self._retries = RetryWorker("records to be disconnected", self._disconnect)
        self._say: Say | None = None

    @override
    def plan(self, asked: Asked) -> Plan | Replied:
        match registry_input(asked):
            case Create() as create:
                return Plan(partial(self._create, create), create.url)
            case Touch() as touch:
                return Plan(partial(self._touch, touch), touch.url)
            case Read() as read:
                return Plan(partial(self._read, read), read.url)
            case Find() as find:
                return Plan(partial(self._read, find))

    @override
    def left(self, runtime: str) -> None:
        for url, is_lasting in self._live.pop(runtime, {}).items():
            if not is_lasting:
                self._retries.owe(url)

    @override
    async def run(self, say: Say) -> None:
        self._say = say
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._retries.run)
            nursery.start_soon(self._poll)

    @override
    async def closing(self) -> None:
        await self._retries.settle()

    @override
    async def aclose(self) -> None:
        await self._client.aclose()

    # ---- requests

    async def _create(self, asked: Create) -> Replied:
        call = create_call(asked)
        if isinstance(call, Answered) or asked.owner != asked.by:
            refusal = call if isinstance(call, Answered) else create_refusal(asked, None)
            return _replied(refusal or OK)
        held = await self._held(asked.url)
        refusal = create_refusal(asked, None if held is None else str(held.get("runtime")))
        if refusal is None and len(self._live.get(asked.by, {})) >= MAX_RECORDS:
            refusal = _MANY
        if refusal is not None:
            return _replied(refusal)
        return await self._change(asked, call)

    async def _touch(self, asked: Touch) -> Replied:
        held = await self._held(asked.url)
        if held is None:
            return _replied(UNKNOWN)
        refusal = touch_refusal(asked, held) or size_refusal({**held, **asked.fields})
        wanted = wanted_state(_state_of(held), asked.fields)
        if refusal is None and wanted is None:
            refusal = NO_SUCH_STATUS
        if refusal is not None:
            return _replied(refusal)
        if asked.fields and wanted is not None:
            asked = attrs.evolve(asked, fields={**asked.fields, "status": wanted.value})
        return await self._change(asked, touch_call(asked))

    async def _change(self, asked: Create | Touch, call: RestCall) -> Replied:
        """Have the server change a record; for any result, it ends with the session.

        But what was registered in upstream's form lasts.
        """
        url = asked.url
        self._retries.forgive(url)
        live = self._live.setdefault(asked.by, {})
        live[url] = asked.is_lasting
        answer = await self._ask(call)
        code = code_of(answer)
        if code is not Code.OK:
            return Replied(code, {"description": _words(answer)})
        status = _status_in(call)
        if status == State.DISCONNECTED:
            live.pop(url, None)
        return Replied(code, notices=self._notices(url, status))

    async def _read(self, asked: Read | Find) -> Replied:
        call = read_call(asked)
        if isinstance(call, Answered):
            return _replied(call)
        answer = await self._ask(call)
        match code_of(answer):
            case Code.OK | Code.TIMEOUT as code:
                records = self._records(answer)
                said = _AWAY if code is Code.TIMEOUT and not records else found(asked, records)
                return _replied(said)
            case Code.NOT_FOUND:
                return _replied(UNKNOWN)
            case code:
                return Replied(code, {"description": _words(answer)})

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

    # ---- changes of status

    def _notices(self, url: str, status: str) -> tuple[Message, ...]:
        if not self._watch.changed(url, status):
            return ()
        number = self._ids.next(self._address)
        return (notification(number, self._address, url, status),)

    async def _notify(self, url: str, status: str) -> None:
        for one in self._notices(url, status):
            if self._say is not None:
                await self._say(one)

    async def _disconnect(self, url: str) -> None:
        """Note at the server that the session of a record's runtime is over."""
        call = touch_call(Touch(url, "", {"status": State.DISCONNECTED.value}))
        answer = await self._ask(call)
        if code_of(answer) is Code.OK:
            await self._notify(url, State.DISCONNECTED.value)

    async def _poll(self) -> None:
        """Look again and again at what has changed at the server."""
        pause = REGISTRY_POLL
        while True:
            await trio.sleep(pause)
            try:
                with trio.move_on_after(BACKEND_TIMEOUT):
                    await self._look()
                pause = REGISTRY_POLL
            except (HttpError, BackEndError) as exc:
                if pause == REGISTRY_POLL:
                    _log.warning("changes cannot be looked at", why=exc.reason)
                pause = min(2 * pause, RETRY_QUEUE_PAUSE)

    async def _look(self) -> None:
        answer = await self._ask(_UPDATED)
        if code_of(answer) is not Code.OK:
            raise BackEndError(f"{answer.server} answered with status {answer.status}")
        for one in records_in(answer.json()):
            await self._notify(str(one["url"]), str(one["status"]))


def _replied(said: Answered) -> Replied:
    return Replied(said.code, answer_body(said))


def _state_of(record: JsonObject) -> State:
    try:
        return State(str(record["status"]))
    except ValueError as exc:
        raise BackEndError("the record has a status that is none") from exc


def _status_in(call: RestCall) -> str:
    """Return the status a record has after a call: a sign of life makes it live."""
    named = (call.body or {}).get("status")
    return named if isinstance(named, str) else State.LIVE.value


def _words(answer: HttpAnswer) -> str:
    """Return what a server says to a refusal, if it says anything that is short and plain."""
    try:
        said = answer.json()
    except HttpError:
        said = None
    words = said.get("message") or said.get("description") if isinstance(said, dict) else None
    if isinstance(words, str) and words.isprintable():
        return words[:_SHOWN]
    return f"the registry answered with status {answer.status}"
