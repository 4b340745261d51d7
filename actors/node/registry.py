"""The domain registry at `DR(d)` (M-21..M-30): host of the registration core."""

from typing import Final, TypeAlias, assert_never, final

import attrs
import trio
from typing_extensions import override

from actors.kit.actor import Actor, ActorRef
from actors.kit.ids import IdSource
from actors.node.bus_message import Asked, Attached, BusMessage, Emitted, RuntimeLeft
from actors.node.record_file import Change, RecordFile
from actors.node.record_writer import Settle
from actors.node.witness import Witness
from fsm.cores.record_index import search_of
from fsm.cores.registration import RegistrationCore
from fsm.cores.registration_terms import (
    Answered,
    Create,
    Effect,
    Find,
    Forget,
    Input,
    Keep,
    Leave,
    Read,
    StatusChanged,
    Tick,
    Touch,
)
from fsm.engine import Step
from specs.address import canonical
from specs.body import ReadRecord, Register, UpdateRecord
from specs.errors import BadMessageError, BadUrlError
from specs.jsonvalue import JsonObject
from specs.message import Message, MessageType, refuse, reply_to
from transports.bodies import read_body

__all__ = ["DomainRegistry", "RegistryParts"]

_Message: TypeAlias = Asked | RuntimeLeft


@final
@attrs.frozen
class RegistryParts:
    """What a domain registry is made of.

    Attributes:
        address: Where it listens.
        file: Where its records are kept.
        bus: Whom it is attached to.
        writer: Through whom it speaks.
        clock_offset: Seconds from the Trio clock to the epoch.
    """

    address: str
    file: RecordFile
    bus: ActorRef[BusMessage]
    writer: ActorRef[Settle]
    witness: Witness
    ids: IdSource
    clock_offset: float


@final
class DomainRegistry(Actor[_Message]):
    """Answers what is asked of the records of a domain, after the commit."""

    def __init__(self, parts: RegistryParts) -> None:
        self._parts: Final = parts
        self._core = RegistrationCore()

    @override
    async def start(self) -> None:
        self._core = RegistrationCore(self._parts.file.load())
        await self._parts.bus.tell(Attached(self._parts.address, self.me))

    @override
    async def handle(self, message: Asked | RuntimeLeft) -> None:
        match message:
            case Asked():
                await self._answer(message)
            case RuntimeLeft(runtime, why):
                await self._feed(Leave(runtime, why))
            case _:
                assert_never(message)

    @override
    def deadline(self) -> float:
        return self._core.deadline() - self._parts.clock_offset

    @override
    async def timed_out(self) -> None:
        await self._feed(Tick())

    async def _answer(self, asked: Asked) -> None:
        try:
            happened = _input(asked)
        except BadMessageError as exc:
            answer = refuse(asked.message, exc.code, exc.reason)
            await self._parts.writer.tell(Settle((), (Emitted(answer, asked.by),)))
        else:
            await self._feed(happened, asked)

    async def _feed(self, happened: Input, asked: Asked | None = None) -> None:
        changes: list[Change] = []
        emitted: list[Emitted] = []
        now = trio.current_time() + self._parts.clock_offset
        for effect in self._core.feed(happened, now):
            match effect:
                case Keep() | Forget():
                    changes.append(effect)
                case _:
                    emitted += self._said(effect, asked)
        if changes or emitted:
            await self._parts.writer.tell(Settle(tuple(changes), _answer_first(emitted)))

    def _said(self, effect: Effect, asked: Asked | None) -> list[Emitted]:
        match effect:
            case Step():
                self._parts.witness.step(effect)
            case StatusChanged(url, status):
                return [Emitted(self._notification(url, status))]
            case Answered() if asked is not None:
                return [Emitted(_answered(asked.message, effect), asked.by)]
            case _:
                pass
        return []

    def _notification(self, url: str, status: str) -> Message:
        """Tell a change of status to whoever subscribed (M-30, C-55)."""
        return Message(
            id=self._parts.ids.next(self._parts.address),
            type=MessageType.UPDATE,
            from_=self._parts.address,
            to=f"{url}/registration",
            body={"attribute": "status", "value": str(status)},
        )


def _answer_first(emitted: list[Emitted]) -> tuple[Emitted, ...]:
    """Whoever asked hears before those who subscribed (SC-12)."""
    return tuple(sorted(emitted, key=lambda one: one.to_runtime is None))


def _answered(request: Message, answered: Answered) -> Message:
    body: JsonObject = {}
    if answered.why:
        body["description"] = answered.why
    if answered.value is not None:
        body["value"] = answered.value
    return reply_to(request, answered.code, body)


def _input(asked: Asked) -> Input:
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
            return Touch(_url(update.resource), asked.by, _fields(update))
        case MessageType.READ:
            read = read_body(message, ReadRecord)
            search = search_of(read.resource, read.criteria)
            return Read(_url(read.resource)) if search is None else Find(search)
        case other:
            raise BadMessageError(f"the registry knows create, read and update, not {other}")


def _create(asked: Asked) -> Create:
    record = read_body(asked.message, Register).value
    value = asked.message.body["value"]
    if not isinstance(value, dict):
        raise BadMessageError("value is no record")
    kept: JsonObject = {**value, "url": record.url, "runtime": record.runtime}
    return Create(record.url, asked.by, asked.owner, kept)


def _fields(update: UpdateRecord) -> JsonObject:
    """Return what an update sets: an attribute, several fields, or nothing (M-22..M-24)."""
    if update.attribute is not None:
        return {update.attribute: update.value}
    if update.value is None:
        return {}
    if not isinstance(update.value, dict):
        raise BadMessageError("value is no object, and no attribute is named")
    return update.value


def _url(text: str) -> str:
    try:
        return canonical(text)
    except BadUrlError as exc:
        raise BadMessageError(f"resource {exc}") from exc
