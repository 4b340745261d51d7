"""What the registry asks others for: each question is a task that tells the answer."""

from typing import TypeAlias, assert_never, final

import attrs
import trio

from actors.kit.ids import IdSource
from actors.runtime.bus.ports import CorePort
from fsm.registry.changes import changes_of, registry_of
from fsm.registry.resolve.effects import Connect, Disconnect, Resume, Yield
from fsm.registry.resolve.inputs import LinkRegistered, OwnerRead, PathSet, RecordRead
from specs.addresses.address import domain_of, domain_registry, subscription_manager
from specs.bodies.body import Command, Path, ReadRecord, Record
from specs.bodies.word import RecordStatus, StubMethod
from specs.errors import BadMessageError
from specs.jsonvalue import Json, JsonObject
from specs.limits.protocol import READ_PAUSE, RECONNECT_TRIES
from specs.message import Message, MessageType
from specs.reply_code import LAST_SUCCESS, Code
from transports.bodies import read_body, write_body

__all__ = ["LinkOrder", "RegistryTalk"]

LinkOrder: TypeAlias = Connect | Disconnect | Yield | Resume
"""What a registry orders a stub of its own."""


@final
class RegistryTalk:
    """The registry's requests (M-03, M-04, M-05, M-08, M-11, M-12, M-25, M-29)."""

    def __init__(self, domain: str, port: CorePort, ids: IdSource) -> None:
        self._paths = subscription_manager(domain)
        self._port = port
        self._ids = ids

    async def read_record(self, entity: str) -> RecordRead:
        """Read an entity's record at the registry of its domain (M-25, I-R10)."""
        to = domain_registry(domain_of(entity))
        answer = await self._ask(MessageType.READ, to, write_body(ReadRecord(entity)))
        record = _record(answer, answer.body.get("value")) if answer.code <= LAST_SUCCESS else None
        is_live = record is not None and record.status == RecordStatus.LIVE
        return RecordRead(entity, record if is_live else None)

    async def read_owner(self, entity: str) -> OwnerRead:
        """Read whose an entity is: its record says so while it is away, too (M-25, I-R10)."""
        to = domain_registry(domain_of(entity))
        answer = await self._ask(MessageType.READ, to, write_body(ReadRecord(entity)))
        value = answer.body.get("value")
        found = _record(answer, value[0] if isinstance(value, list) and value else value)
        record = found if found is not None and found.url == entity else None
        is_answered = found is not None or answer.code in {Code.OK, Code.NOT_FOUND}
        return OwnerRead(entity, record, is_answered)

    async def set_path(self, url: str) -> PathSet:
        """Have the own node deliver a stub's address here (M-03)."""
        answer = await self._ask(MessageType.SUBSCRIBE, self._paths, write_body(Path((url,), url)))
        return PathSet(url, _refusal(answer))

    async def renew_path(self, url: str) -> None:
        """Set a path again that the node has forgotten."""
        await self._ask(MessageType.SUBSCRIBE, self._paths, write_body(Path((url,), url)))

    async def remove_path(self, url: str) -> None:
        """Have the own node forget it (M-04)."""
        await self._ask(MessageType.UNSUBSCRIBE, self._paths, write_body(Path((url,), url)))

    async def register_link(self, link: str, handler: str) -> LinkRegistered:
        """Set the listeners of a handler's link: the bus's, then the MiniBUS's (I-P17)."""
        await self._port.follow(link, handler)
        body = write_body(Path((link,), handler))
        answer = await self._ask(MessageType.SUBSCRIBE, handler, body)
        return LinkRegistered(link, _refusal(answer))

    async def unregister_link(self, link: str) -> None:
        """Remove the bus's listener of a link."""
        await self._port.unfollow_all(link)

    async def order(self, order: LinkOrder) -> bool:
        """Tell a P2P stub what to do with one link (M-11, M-12); return whether it does.

        A requester whose link has ended for good, or that is stuck, neither connects nor
        resumes.
        """
        stub = order.stub
        match order:
            case Connect(handler=handler):
                command = Command(StubMethod.CONNECT.value, (handler,))
            case Disconnect(remote=remote, link=link):
                command = Command(StubMethod.DISCONNECT.value, (remote,), link)
            case Yield(remote=remote, negotiation=number):
                command = Command(StubMethod.YIELD.value, (remote,), stub, number)
            case Resume(remote=remote, negotiation=number):
                command = Command(StubMethod.RESUME.value, (remote,), stub, number)
            case _:
                assert_never(order)
        answer = await self._ask(MessageType.EXECUTE, stub, write_body(command))
        return answer.code <= LAST_SUCCESS

    async def follow_changes(self, remote: str) -> Message:
        """Ask another registry to tell what lives in its runtime (M-08)."""
        body = write_body(Path((changes_of(remote),)))
        return await self._ask(MessageType.SUBSCRIBE, registry_of(remote), body)

    async def watch(self, address: str, domain: str) -> Message:
        """Have the node of a domain deliver here what is told of a record (M-29)."""
        body, to = write_body(Path((address,))), subscription_manager(domain)
        return await self._ask(MessageType.SUBSCRIBE, to, body)

    async def renew_watch(self, address: str, domain: str) -> Message:
        """Do so again; a node that is coming back may have to be asked some times."""
        answer, pause = await self.watch(address, domain), READ_PAUSE
        for _ in range(RECONNECT_TRIES - 1):
            if answer.code <= LAST_SUCCESS:
                break
            await trio.sleep(pause)
            pause *= 2
            answer = await self.watch(address, domain)
        return answer

    async def unwatch(self, address: str, domain: str) -> None:
        """Have that node forget it."""
        body, to = write_body(Path((address,))), subscription_manager(domain)
        await self._ask(MessageType.UNSUBSCRIBE, to, body)

    async def _ask(self, kind: MessageType, to: str, body: JsonObject) -> Message:
        sender = self._port.url
        return await self._port.request(Message(self._ids.next(sender), kind, sender, to, body))


def _record(answer: Message, value: Json) -> Record | None:
    if not isinstance(value, dict):
        return None
    try:
        return read_body(attrs.evolve(answer, body=value), Record)
    except BadMessageError:
        return None


def _refusal(answer: Message) -> str | None:
    if answer.code <= LAST_SUCCESS:
        return None
    return f"{answer.code} {answer.body.get('description', '')}".rstrip()
