"""The domain registry at `DR(d)` (M-21..M-30): host of the registration core.

What came in together is made durable together, and only then is anything said or traced
of it (I-G3). If that fails, all of it is as if it had not been asked: whoever asked gets
503, and until the file can be written again changes are refused, while reads go on (R13).

What a domain registry says: answers that fit into a message, and notifications.
"""

from functools import partial
from typing import Final, TypeAlias, assert_never, final

import attrs
import orjson
import structlog
import trio
from typing_extensions import override

from actors.kit.counting.tally import Gauge
from actors.kit.ids import IdSource
from actors.kit.supervision.actor import Actor, ActorRef
from actors.node.components import attach, detach
from actors.node.errors import RegistryFileError
from actors.node.messages import Asked, BusMessage, Emitted, RuntimeLeft
from actors.node.registry.record_file import Change, RecordFile
from actors.node.registry.record_writer import Commit, Recover, Write
from actors.node.registry.requests import registry_input
from actors.node.trace import ComponentTrace
from fsm.engine import Step
from fsm.registry.records import (
    Answered,
    Create,
    Effect,
    Forget,
    Input,
    Keep,
    Leave,
    StatusChanged,
    Tick,
    Touch,
)
from fsm.registry.registration import RegistrationCore
from specs.errors import BadMessageError
from specs.jsonvalue import Json, JsonObject
from specs.limits.back_ends import STORE_RETRY
from specs.limits.protocol import MAX_MESSAGE_BYTES
from specs.message import Message, MessageType, refuse, reply_to
from specs.reply_code import Code

__all__ = ["DomainRegistry", "RegistryParts", "answer_body", "answered", "notification"]

_ROOM: Final = MAX_MESSAGE_BYTES - 8192
"""Bytes of a message that the records in it may take; the rest is for its addresses."""


def answered(request: Message, said: Answered) -> Message:
    """Answer a request."""
    return reply_to(request, said.code, answer_body(said))


def answer_body(said: Answered) -> JsonObject:
    """Return the body of an answer; of a long list as much as one message holds."""
    body: JsonObject = {}
    if said.why:
        body["description"] = said.why
    value = said.value
    if isinstance(value, list):
        value, left = _fitting(value)
        if left:
            body["description"] = f"{said.why or 'OK'}; {left} more do not fit into one message"
    if value is not None:
        body["value"] = value
    return body


def notification(number: int, registry: str, url: str, status: str) -> Message:
    """Tell a change of status to whoever subscribed (M-30, C-55)."""
    return Message(
        id=number,
        type=MessageType.UPDATE,
        from_=registry,
        to=f"{url}/registration",
        body={"attribute": "status", "value": str(status)},
    )


def _fitting(found: list[Json]) -> tuple[list[Json], int]:
    """Return the first of what was found, and how many are left out."""
    room = _ROOM
    for number, one in enumerate(found):
        room -= len(orjson.dumps(one)) + 1
        if room < 0:
            return found[:number], len(found) - number
    return found, 0


_Message: TypeAlias = Asked | RuntimeLeft

_log = structlog.get_logger("actors.node")

_NOT_KEPT: Final = "the registry cannot write its file now; nothing was changed"


@final
@attrs.frozen
class RegistryParts:
    """What a domain registry is made of.

    Attributes:
        address: Where it listens.
        file: Where its records were kept.
        bus: Whom it is attached to.
        writer: Who makes changes durable.
        clock_offset: Seconds from the Trio clock to the epoch.
    """

    address: str
    file: RecordFile
    bus: ActorRef[BusMessage]
    writer: ActorRef[Write]
    witness: ComponentTrace
    ids: IdSource
    clock_offset: float


@final
@attrs.define
class _Batch:
    """What is to be made durable together, and what of it is said then.

    Attributes:
        anyway: What is said whether it succeeds or not.
        asked: Who is to be told if it fails.
        left: Who left meanwhile, and why.
    """

    changes: list[Change] = attrs.field(factory=list)
    steps: list[Step] = attrs.field(factory=list)
    anyway: list[Emitted] = attrs.field(factory=list)
    emitted: list[Emitted] = attrs.field(factory=list)
    asked: list[Asked] = attrs.field(factory=list)
    left: dict[str, str] = attrs.field(factory=dict)


@final
class DomainRegistry(Actor[_Message]):
    """Answers what is asked of the records of a domain, after the commit."""

    def __init__(self, parts: RegistryParts) -> None:
        self._parts: Final = parts
        self._core = RegistrationCore()
        self._batch = _Batch()
        self._owed: dict[str, str] = {}
        self._retry_at: float | None = None

    @override
    async def start(self) -> None:
        self._core = RegistrationCore(self._parts.file.load())
        self._parts.witness.counters.watch(Gauge.RECORDS, self._core.__len__)
        await attach(self._parts.bus, self._parts.address, self.me)

    @override
    async def handle(self, message: Asked | RuntimeLeft) -> None:
        match message:
            case Asked():
                self._answer(message)
            case RuntimeLeft(runtime, why):
                self._leave(runtime, why)
            case _:
                assert_never(message)

    @override
    async def stop(self) -> None:
        detach(self._parts.bus, self._parts.address, self.me)

    @override
    def deadline(self) -> float:
        if self._retry_at is not None:
            return self._retry_at
        return self._core.deadline() - self._parts.clock_offset

    @override
    async def timed_out(self) -> None:
        if self._retry_at is not None:
            await self._recover()
        if self._retry_at is None:
            self._feed(Tick())

    @override
    async def drained(self) -> None:
        """Make durable what came in, then say it."""
        batch, self._batch = self._batch, _Batch()
        if batch.changes:
            changes = tuple(batch.changes)
            error = await self._parts.writer.ask(partial(Commit, changes))
            if error is not None:
                self._core.revert()
                self._fail(batch, error)
                refused = [_not_kept(asked) for asked in batch.asked]
                batch = _Batch(anyway=batch.anyway, emitted=refused)
        self._core.settle()
        for step in batch.steps:
            self._parts.witness.step(step)
        for one in (*batch.anyway, *batch.emitted):
            await self._parts.bus.tell(one)

    def _answer(self, asked: Asked) -> None:
        try:
            happened = registry_input(asked)
        except BadMessageError as exc:
            refusal = refuse(asked.message, exc.code, exc.reason)
            self._batch.anyway.append(Emitted(refusal, asked.by))
            return
        if self._retry_at is not None and isinstance(happened, Create | Touch):
            self._batch.anyway.append(_not_kept(asked))
        else:
            self._feed(happened, asked)

    def _leave(self, runtime: str, why: str) -> None:
        if self._retry_at is None:
            self._batch.left[runtime] = why
            self._feed(Leave(runtime, why))
        else:
            self._owed[runtime] = why

    def _feed(self, happened: Input, asked: Asked | None = None) -> None:
        told: list[Emitted] = []
        if asked is not None:
            self._batch.asked.append(asked)
        now = trio.current_time() + self._parts.clock_offset
        for effect in self._core.feed(happened, now):
            self._note(effect, asked, told)
        self._batch.emitted += told

    def _note(self, effect: Effect, asked: Asked | None, told: list[Emitted]) -> None:
        match effect:
            case Keep() | Forget():
                self._batch.changes.append(effect)
            case Step():
                self._batch.steps.append(effect)
            case StatusChanged(url, status):
                address = self._parts.address
                number = self._parts.ids.next(address)
                told.append(Emitted(notification(number, address, url, status)))
            case Answered() if asked is not None:
                # Whoever asked hears before those who subscribed (SC-12).
                told.insert(0, Emitted(answered(asked.message, effect), asked.by))
            case _:
                pass

    # ---- a file that cannot be written

    def _fail(self, batch: _Batch, error: RegistryFileError) -> None:
        """Change nothing any more until the file can be written again."""
        self._owed.update(batch.left)
        if self._retry_at is None:
            _log.error("registry file cannot be written", path=str(error.where), why=error.reason)
        self._retry_at = trio.current_time() + STORE_RETRY

    async def _recover(self) -> None:
        """Try to write all there is; then do what had to wait."""
        error = await self._parts.writer.ask(Recover)
        if error is not None:
            self._retry_at = trio.current_time() + STORE_RETRY
            return
        _log.warning("registry file is written again")
        self._retry_at = None
        owed, self._owed = self._owed, {}
        for runtime, why in owed.items():
            self._leave(runtime, why)


def _not_kept(asked: Asked) -> Emitted:
    return Emitted(refuse(asked.message, Code.UNAVAILABLE, _NOT_KEPT), asked.by)
