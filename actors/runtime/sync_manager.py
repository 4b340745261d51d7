"""The sync manager of a runtime: reporters and observers meet through it (SYN-01..SYN-22).

It alone writes versions and publishes; a reporter asks it to (`update` to `R/sm`), so
that its snapshot is never behind what was published. What waits for others runs in
tasks; the tables change only in the mailbox's own task.
"""

from typing import assert_never, final

from typing_extensions import override

from actors.kit.actor import Actor, Reply
from actors.kit.delivery import Delivery
from actors.runtime.sync_observer import ObservedObjects
from actors.runtime.sync_reporter import ReportedObjects
from actors.runtime.sync_terms import (
    ComponentLeft,
    Decided,
    ObjectReady,
    ObjectRemoved,
    ObjectsClosed,
    ObserveDone,
    ObserverLeft,
    PathClosed,
    PathsForgotten,
    SyncContext,
    SyncMessage,
    SyncNews,
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
        self._closing: list[Reply[None]] = []
        self._leaving: list[ComponentLeft] = []

    async def _tell(self, done: SyncNews) -> None:
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
            case ObserveDone() | ObserverLeft() | PathClosed():
                await self._news_of_observed(message)
            case PathsForgotten(domain):
                self._reported.renew_paths(domain)
                self._observed.renew_paths(domain)
            case ObjectsClosed(done):
                self._closing.append(done)
            case ComponentLeft():
                self._leaving.append(message)
            case _:
                await self._news_of_reported(message)
        await self._close()

    async def _news_of_reported(self, news: ObjectReady | Decided | ObjectRemoved) -> None:
        match news:
            case ObjectReady():
                await self._reported.ready(news)
            case Decided():
                await self._reported.decided(news)
            case ObjectRemoved():
                await self._reported.removed(news)
            case _:
                assert_never(news)

    async def _news_of_observed(self, news: ObserveDone | ObserverLeft | PathClosed) -> None:
        match news:
            case ObserveDone():
                await self._observed.done(news)
            case ObserverLeft():
                await self._observed.left(news)
            case PathClosed(url):
                await self._observed.closed(url)
            case _:
                assert_never(news)

    async def _close(self) -> None:
        """End what is to end, and what came of it meanwhile; tell who waits for that."""
        gone = {left.component for left in self._leaving}
        if self._closing:
            gone |= self._reported.reporters | self._observed.observers
        for component in gone:
            await self._reported.leave(component)
            await self._observed.leave_all(component)
        for left in tuple(self._leaving):
            if left.component not in self._reported.reporters | self._observed.observers:
                self._leaving.remove(left)
                left.done.send(None)
        if self._reported.is_empty and self._observed.is_empty:
            while self._closing:
                self._closing.pop().send(None)

    @override
    def deadline(self) -> float:
        return self._reported.deadline()

    @override
    async def timed_out(self) -> None:
        await self._reported.time_over()

    @override
    async def stop(self) -> None:
        # Whoever did not answer in time, or came to a crash: every story has an end.
        self._reported.let_go()

    # --- messages ---------------------------------------------------------------------------

    async def _delivered(self, message: Message) -> None:
        if message.is_response:
            await self._answered(message)
            return
        try:
            await self._asked(message)
        except BadMessageError as exc:
            if message.is_request:
                await self._context.refuse(message, exc.code, exc.reason)

    async def _answered(self, answer: Message) -> None:
        """Take an answer to an object; other requests are awaited where they are made."""
        reported = self._reported.owner_of(answer.to)
        if reported is not None:
            await self._reported.answered(reported, answer)

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
