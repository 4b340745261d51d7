"""The objects that components of this runtime observe (M-36..M-38, M-42..M-44, M-47)."""

from functools import partial
from typing import Final, final

import attrs
import trio

from actors.kit.actor import ActorRef
from actors.kit.delivery import Delivery
from actors.runtime.sync_place import CHANGES, SUBSCRIPTION
from actors.runtime.sync_terms import (
    ObserveDone,
    ObserverLeft,
    PathClosed,
    Spawn,
    SyncContext,
    Tell,
    code_in_use,
)
from specs.address import subscription_manager
from specs.body import Path
from specs.body_sync import ObjectName, Observe, Subscription
from specs.limits import READ_PAUSE, RECONNECT_TRIES
from specs.message import Message, MessageType, refuse
from specs.reply_code import LAST_SUCCESS, Code
from transports.bodies import read_body, write_body

__all__ = ["ObservedObjects"]

_LATER: Final = frozenset({Code.NOT_FOUND, Code.TIMEOUT, Code.INTERNAL, Code.UNAVAILABLE})
"""Answers after which an owner is asked again: he may not be back yet."""


@final
@attrs.define
class _Observed:
    """One object that is observed here.

    Attributes:
        observers: Who observes, and the id of the request by which it does.
        leaving: Who does not any more, while the reporter's end is being told.
        is_closing: Its path is being removed; who comes meanwhile waits for that.
    """

    observers: dict[str, int] = attrs.field(factory=dict)
    leaving: set[str] = attrs.field(factory=set)
    is_closing: bool = False
    waiting: list[Message] = attrs.field(factory=list)


@final
class ObservedObjects:
    """The observers' end of every object observed here; one path serves all observers."""

    def __init__(self, context: SyncContext, spawn: Spawn, tell: Tell) -> None:
        self._context = context
        self._spawn = spawn
        self._tell = tell
        self._objects: dict[str, _Observed] = {}
        self._listener: ActorRef[Delivery]

    def start(self, listener: ActorRef[Delivery]) -> None:
        """Let what is said to observed objects' sync managers lead to `listener`."""
        self._listener = listener

    @property
    def is_empty(self) -> bool:
        """Whether nothing is observed here."""
        return not self._objects

    @property
    def observers(self) -> set[str]:
        """Who observes something, is about to, or is about to stop."""
        found: set[str] = set()
        for there in self._objects.values():
            found |= there.leaving.union(there.observers, (one.from_ for one in there.waiting))
        return found

    def observed(self, address: str) -> str | None:
        """Return the observed object whose changes go to an address."""
        url = address.removesuffix(f"/{CHANGES}")
        return url if url != address and url in self._objects else None

    # --- begin --------------------------------------------------------------------------

    async def observe(self, request: Message) -> None:
        """Observe an object for a component (M-36): its listener comes first (SYN-06)."""
        url = read_body(request, Observe).resource
        await self._context.answer(request, Code.TRYING, resources=[])
        there = self._objects.get(url)
        if there is not None and there.is_closing:
            there.waiting.append(request)
        else:
            await self._observe(request, url)

    async def _observe(self, request: Message, url: str) -> None:
        is_first = url not in self._objects
        self._objects.setdefault(url, _Observed()).observers[request.from_] = request.id
        changes = f"{url}/{CHANGES}"
        if is_first:
            await self._context.bus.add_listener(changes, self._listener)
        await self._context.bus.follow(changes, request.from_)
        work = self._open_path if is_first else self._subscribe
        self._spawn(partial(work, request, url))

    async def _open_path(self, request: Message, url: str) -> None:
        answer = await self._context.bus.request(self._path(MessageType.SUBSCRIBE, url))
        if answer.code > LAST_SUCCESS:
            await self._tell(ObserveDone(request, url, answer))
            return
        await self._subscribe(request, url)

    async def _subscribe(self, request: Message, url: str) -> None:
        there = self._objects.get(url)
        if there is not None and request.from_ in there.observers:
            asked = self._of_observer(MessageType.SUBSCRIBE, url, request.from_)
            answer = await self._context.bus.request(asked)
        else:
            answer = refuse(request, Code.GONE, "the observer left before it was subscribed")
        await self._tell(ObserveDone(request, url, answer))

    def _path(self, kind: MessageType, url: str) -> Message:
        body = Path((f"{url}/{CHANGES}",), self._context.runtime)
        to = subscription_manager(self._context.node_for(url))
        return self._context.request(kind, to, write_body(body))

    def renew_paths(self, domain: str) -> None:
        """Set the paths again that the node of a domain has forgotten."""
        for url, there in self._objects.items():
            if self._context.node_for(url) == domain and not there.is_closing:
                self._spawn(partial(self._renew, url))

    async def _renew(self, url: str) -> None:
        """Set a path again, and ask its owner again: the node has forgotten both.

        The owner's runtime may come back later than this one: it is asked some times.
        """
        await self._context.bus.request(self._path(MessageType.SUBSCRIBE, url))
        pause = READ_PAUSE
        for _ in range(RECONNECT_TRIES):
            if await self._is_known_again(url):
                return
            await trio.sleep(pause)
            pause *= 2

    async def _is_known_again(self, url: str) -> bool:
        there = self._objects.get(url)
        if there is None or there.is_closing:
            return True
        for observer in tuple(there.observers):
            asked = self._of_observer(MessageType.SUBSCRIBE, url, observer)
            if (await self._context.bus.request(asked)).code in _LATER:
                return False
        return True

    def _of_observer(self, kind: MessageType, url: str, observer: str) -> Message:
        body = write_body(Subscription(observer))
        return self._context.request(kind, f"{url}/{SUBSCRIPTION}", body)

    async def done(self, done: ObserveDone) -> None:
        """Answer the observer; what was set up for nothing is removed."""
        request, url, answer = done.request, done.url, done.answer
        if answer.code <= LAST_SUCCESS:
            value = answer.body.get("value")
            await self._context.answer(request, Code.OK, value=value)
            return
        if answer.code == Code.TIMEOUT:
            # The reporter's yes may be on its way: it must not stay.
            leaving = self._of_observer(MessageType.UNSUBSCRIBE, url, request.from_)
            await self._context.bus.post(leaving)
        there = self._objects.get(url)
        if there is not None and there.observers.get(request.from_) == request.id:
            # It has not asked again since.
            await self._take_off(url, request.from_)
        await self._close_if_left(url, None)
        if there is not None and there.observers:
            # The node took the path away with the refusal; others may have come since.
            self._spawn(partial(self._renew, url))
        why = answer.body.get("description")
        told = {"description": why} if isinstance(why, str) else {}
        await self._context.answer(request, code_in_use(answer.code), **told)

    # --- end ----------------------------------------------------------------------------

    async def leave(self, request: Message) -> None:
        """Stop observing for a component (M-42)."""
        url = read_body(request, ObjectName).resource
        there = self._objects.get(url)
        if there is not None and request.from_ in there.observers:
            await self._let_go(url, request.from_, request)
        else:
            await self._context.answer(request, Code.OK)

    async def leave_all(self, observer: str) -> None:
        """Leave every object for a component that is gone."""
        for url, there in self._objects.items():
            for request in [one for one in there.waiting if one.from_ == observer]:
                there.waiting.remove(request)
                await self._context.refuse(request, Code.GONE, "the observer left")
            if observer in there.observers:
                await self._let_go(url, observer, None)

    async def _let_go(self, url: str, observer: str, request: Message | None) -> None:
        await self._take_off(url, observer)
        self._objects[url].leaving.add(observer)
        self._spawn(partial(self._leave, url, observer, request))

    async def _take_off(self, url: str, observer: str) -> None:
        """Deliver no change to an observer any more; its neighbours observe on (I-D7)."""
        del self._objects[url].observers[observer]
        await self._context.bus.unfollow(f"{url}/{CHANGES}", observer)

    async def _leave(self, url: str, observer: str, request: Message | None) -> None:
        leaving = self._of_observer(MessageType.UNSUBSCRIBE, url, observer)
        await self._context.bus.request(leaving)
        await self._tell(ObserverLeft(url, observer, request))

    async def left(self, done: ObserverLeft) -> None:
        """Take note that an observer is gone; with the last one the path goes (SYN-20)."""
        there = self._objects.get(done.url)
        if there is not None:
            there.leaving.discard(done.observer)
        await self._close_if_left(done.url, done.request)

    async def _close_if_left(self, url: str, request: Message | None) -> None:
        """Remove the path if nobody observes any more, not even again."""
        there = self._objects.get(url)
        if there is not None and not there.observers and not there.is_closing:
            there.is_closing = True
            self._spawn(partial(self._close_path, url, request))
        elif request is not None:
            await self._context.answer(request, Code.OK)

    async def deleted(self, url: str, event: Message) -> None:
        """Take the reporter's word, nobody else's, that the object is gone (M-47)."""
        if event.from_ != f"{url}/{SUBSCRIPTION}":
            await self._context.refuse(event, Code.FORBIDDEN, "only its reporter deletes an object")
            return
        await self._context.answer(event, Code.OK, source=self._context.runtime)
        self._objects[url].observers.clear()
        await self._close_if_left(url, None)

    async def _close_path(self, url: str, request: Message | None) -> None:
        changes = f"{url}/{CHANGES}"
        await self._context.bus.remove_listener(changes, self._listener)
        await self._context.bus.unfollow_all(changes)
        await self._context.bus.request(self._path(MessageType.UNSUBSCRIBE, url))
        await self._tell(PathClosed(url))
        if request is not None:
            await self._context.answer(request, Code.OK)

    async def closed(self, url: str) -> None:
        """Forget an object; who wanted to observe it meanwhile begins now."""
        there = self._objects.pop(url)
        for request in there.waiting:
            await self._observe(request, url)
