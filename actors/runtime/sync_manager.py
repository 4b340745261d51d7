"""The sync manager of a runtime: reporters and observers meet through it (SYN-01..SYN-22).

It alone writes versions and publishes; a reporter asks it to (`update` to `R/sm`), so
that its snapshot is never behind what was published. What waits for others runs in
tasks; the tables change only in the mailbox's own task.
"""

from typing import final

from typing_extensions import override

from actors.kit.actor import Actor
from actors.kit.delivery import Delivery
from actors.runtime.sync_observer import ObservedObjects
from actors.runtime.sync_reporter import ReportedObjects
from actors.runtime.sync_terms import (
    Decided,
    ObjectReady,
    ObserveDone,
    PathsForgotten,
    SyncContext,
    SyncMessage,
)
from specs.errors import BadMessageError
from specs.message import Message, MessageType
from specs.reply_code import Code

__all__ = ["SyncManager"]


@final
class SyncManager(Actor[SyncMessage]):
    """`R/sm`."""

    def __init__(self, context: SyncContext) -> None:
        self._context = context
        self._reported = ReportedObjects(context, self.spawn, self._tell)
        self._observed = ObservedObjects(context, self.spawn, self._tell)

    async def _tell(self, done: ObjectReady | Decided | ObserveDone) -> None:
        await self.me.tell(done)

    @override
    async def start(self) -> None:
        self._reported.start(self.me)
        self._observed.start(self.me)
        await self._context.bus.add_listener(self._context.bus.url, self.me)

    @override
    async def handle(self, message: SyncMessage) -> None:
        match message:
            case Delivery():
                await self._delivered(message.message)
            case ObjectReady():
                await self._reported.ready(message)
            case Decided():
                await self._reported.decided(message)
            case ObserveDone():
                await self._observed.done(message)
            case PathsForgotten(domain):
                self._reported.renew_paths(domain)
                self._observed.renew_paths(domain)

    async def _delivered(self, message: Message) -> None:
        if message.is_response:
            # Requests are awaited where they are made; this one came too late for that.
            return
        try:
            await self._asked(message)
        except BadMessageError as exc:
            if message.is_request:
                await self._context.refuse(message, exc.code, exc.reason)

    async def _asked(self, message: Message) -> None:
        if message.to == self._context.bus.url:
            await self._by_component(message)
            return
        reported = self._reported.owner_of(message.to)
        observed = self._observed.observed(message.to)
        if reported is not None:
            await self._reported.asked(reported, message)
        elif observed is not None and message.type is MessageType.DELETE:
            await self._observed.deleted(observed, message)
        elif message.is_request:
            await self._context.refuse(message, Code.NOT_FOUND, "no such object")

    async def _by_component(self, message: Message) -> None:
        match message.type:
            case MessageType.CREATE if "authorise" in message.body:
                await self._reported.invite(message)
            case MessageType.CREATE:
                self._reported.create(message)
            case MessageType.UPDATE:
                await self._reported.change(message)
            case MessageType.DELETE:
                await self._reported.delete(message)
            case MessageType.SUBSCRIBE:
                await self._observed.observe(message)
            case MessageType.UNSUBSCRIBE:
                await self._observed.leave(message)
            case _:
                raise BadMessageError("a sync manager does not do this")
