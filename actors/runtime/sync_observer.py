"""The objects that components of this runtime observe (M-36..M-38, M-42..M-44, M-47)."""

from functools import partial
from typing import Final, final

from actors.kit.actor import ActorRef
from actors.kit.delivery import Delivery
from actors.runtime.sync_terms import ObserveDone, Spawn, SyncContext, Tell
from specs.address import domain_of, subscription_manager
from specs.body import Path
from specs.body_sync import ObjectName, Observe, Subscription
from specs.message import Message, MessageType
from specs.reply_code import LAST_SUCCESS, Code
from transports.bodies import read_body, write_body

__all__ = ["ObservedObjects"]

_SUBSCRIPTION: Final = "subscription"
_CHANGES: Final = "changes"


@final
class ObservedObjects:
    """The observers' end of every object observed here; one path serves all observers."""

    def __init__(self, context: SyncContext, spawn: Spawn, tell: Tell) -> None:
        self._context = context
        self._spawn = spawn
        self._tell = tell
        self._observers: dict[str, set[str]] = {}
        self._listener: ActorRef[Delivery]

    def start(self, listener: ActorRef[Delivery]) -> None:
        """Let what is said to observed objects' sync managers lead to `listener`."""
        self._listener = listener

    def observed(self, address: str) -> str | None:
        """Return the observed object whose changes go to an address."""
        url = address.removesuffix(f"/{_CHANGES}")
        return url if url != address and url in self._observers else None

    # --- begin --------------------------------------------------------------------------

    async def observe(self, request: Message) -> None:
        """Observe an object for a component (M-36): its listener comes first (SYN-06)."""
        url = read_body(request, Observe).resource
        is_first = url not in self._observers
        self._observers.setdefault(url, set()).add(request.from_)
        changes = f"{url}/{_CHANGES}"
        await self._context.answer(request, Code.TRYING, resources=[])
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
        answer = await self._context.bus.request(
            self._of_observer(MessageType.SUBSCRIBE, url, request.from_)
        )
        await self._tell(ObserveDone(request, url, answer))

    def _path(self, kind: MessageType, url: str) -> Message:
        body = Path((f"{url}/{_CHANGES}",), self._context.runtime)
        # Triangle: the path is set at the reporter's node, which fans out (C-49).
        to = subscription_manager(domain_of(url))
        return self._context.request(kind, to, write_body(body))

    def renew_paths(self, domain: str) -> None:
        """Set the paths again that the node of a domain has forgotten."""
        for url in self._observers:
            if domain_of(url) == domain:
                self._spawn(partial(self._renew_path, url))

    async def _renew_path(self, url: str) -> None:
        await self._context.bus.request(self._path(MessageType.SUBSCRIBE, url))

    def _of_observer(self, kind: MessageType, url: str, observer: str) -> Message:
        body = write_body(Subscription(observer))
        return self._context.request(kind, f"{url}/{_SUBSCRIPTION}", body)

    async def done(self, done: ObserveDone) -> None:
        """Answer the observer; what was set up for nothing is removed."""
        if done.answer.code <= LAST_SUCCESS:
            value = done.answer.body.get("value")
            await self._context.answer(done.request, Code.OK, value=value)
            return
        self._spawn(partial(self._forget, done.url, done.request.from_))
        why = done.answer.body.get("description")
        told = {"description": why} if isinstance(why, str) else {}
        await self._context.answer(done.request, done.answer.code, **told)

    # --- end ----------------------------------------------------------------------------

    async def leave(self, request: Message) -> None:
        """Stop observing for a component (M-42)."""
        url = read_body(request, ObjectName).resource
        if request.from_ in self._observers.get(url, ()):
            self._spawn(partial(self._leave, request, url))
        else:
            await self._context.answer(request, Code.OK)

    async def _leave(self, request: Message, url: str) -> None:
        leaving = self._of_observer(MessageType.UNSUBSCRIBE, url, request.from_)
        await self._context.bus.request(leaving)
        await self._forget(url, request.from_)
        await self._context.answer(request, Code.OK)

    async def deleted(self, url: str, event: Message) -> None:
        """Take the reporter's word that the object is gone (M-47)."""
        await self._context.answer(event, Code.OK, source=self._context.runtime)
        for observer in tuple(self._observers.get(url, ())):
            self._spawn(partial(self._forget, url, observer))

    async def _forget(self, url: str, observer: str) -> None:
        observers = self._observers.get(url, set())
        observers.discard(observer)
        if observers or url not in self._observers:
            return
        del self._observers[url]
        changes = f"{url}/{_CHANGES}"
        await self._context.bus.remove_listener(changes, self._listener)
        await self._context.bus.unfollow(changes)
        await self._context.bus.request(self._path(MessageType.UNSUBSCRIBE, url))
