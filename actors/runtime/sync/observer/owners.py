"""What the owners of observed objects are asked once more (M-38, M-42, STB-09)."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Final, TypeAlias, final

import attrs
import trio

from actors.runtime.sync.context import SyncContext
from actors.runtime.sync.messages import RefusedAgain, Tell
from actors.runtime.sync.presence.registration import SUBSCRIPTION
from specs.bodies.sync import ObjectName, Subscription
from specs.jsonvalue import Json, JsonObject
from specs.limits.protocol import READ_PAUSE, RECONNECT_TRIES
from specs.limits.sync import HAND_OVER_PAUSE, LEAVE_TRIES
from specs.message import Message, MessageType
from specs.reply_code import LAST_SUCCESS, Code
from transports.bodies import write_body

__all__ = ["AskedOwners", "Observed", "of_observer"]

Leave: TypeAlias = Callable[[str, str], Awaitable[Message]]
"""Tells an object's owner that an observer leaves, and returns what he says."""

_LATER: Final = frozenset({Code.NOT_FOUND, Code.TIMEOUT, Code.INTERNAL, Code.UNAVAILABLE})
"""Answers after which an owner is asked again: he may not be back yet."""


@final
@attrs.define
class Observed:
    """One object that is observed here.

    Attributes:
        observers: Who observes, and the id of the request by which it does.
        asking: The ids of those requests that the reporter's end has not answered.
        leaving: Who does not any more, while the reporter's end is being told.
        is_closing: Its path is being removed; who comes meanwhile waits for that.
        version: The newest that came here; 0: none.
        is_renewed: Its path is being set again, and its reporter's end asked for all.
    """

    observers: dict[str, int] = attrs.field(factory=dict)
    asking: set[tuple[str, int]] = attrs.field(factory=set)
    leaving: set[str] = attrs.field(factory=set)
    is_closing: bool = False
    version: int = 0
    is_renewed: bool = False
    waiting: list[Message] = attrs.field(factory=list)


@final
class AskedOwners:
    """Asks for all who observe an object, when its consent is forgotten; or takes it back."""

    def __init__(self, context: SyncContext, objects: Mapping[str, Observed], tell: Tell) -> None:
        self._context = context
        self._objects = objects
        self._tell = tell

    async def ask_again(self, url: str) -> None:
        """Ask an owner again for everybody who observes here.

        The owner's runtime may come back later than this one: it is asked some times.
        """
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
        for observer, number in tuple(there.observers.items()):
            if observer not in there.observers:
                # It has left while others were asked for.
                continue
            asked = self._of_observer(MessageType.SUBSCRIBE, url, observer)
            answer = await self._context.bus.request(asked)
            if answer.code in _LATER:
                return False
            if answer.code <= LAST_SUCCESS:
                await self.show(url, observer, answer.body.get("value"))
            elif answer.code == Code.FORBIDDEN:
                await self._tell(RefusedAgain(url, observer, number))
        return True

    async def show(self, url: str, observer: str, value: Json) -> None:
        """Show an observer what the object is now: it may have missed what was said."""
        body: JsonObject = {"resource": url, "value": value}
        await self._context.bus.post(self._context.request(MessageType.UPDATE, observer, body))

    async def say_refused(self, url: str, observer: str) -> None:
        """Tell an observer that it does not observe any more (M-45)."""
        body = write_body(ObjectName(url))
        await self._context.bus.post(self._context.request(MessageType.UNSUBSCRIBE, observer, body))

    async def leave(self, url: str, observer: str, ask: Leave) -> None:
        """Have an observer leave; while the object is being handed over, ask again later."""
        answer = await ask(url, observer)
        for _ in range(LEAVE_TRIES - 1):
            if answer.code != Code.UNAVAILABLE:
                break
            await trio.sleep(HAND_OVER_PAUSE)
            there = self._objects.get(url)
            if there is None or observer in there.observers:
                # It observes again: that must not be taken back.
                break
            answer = await ask(url, observer)

    async def take_back(self, url: str, observer: str) -> None:
        """Say that an observer does not want what it asked for; no answer is waited for."""
        leaving = self._of_observer(MessageType.UNSUBSCRIBE, url, observer)
        await self._context.bus.post(leaving)

    def _of_observer(self, kind: MessageType, url: str, observer: str) -> Message:
        return of_observer(self._context, kind, url, Subscription(observer))


def of_observer(
    context: SyncContext, kind: MessageType, url: str, subscription: Subscription
) -> Message:
    """Write a request for an observer; what it is granted is renewed from here."""
    renews = True if kind is MessageType.SUBSCRIBE else None
    body = write_body(attrs.evolve(subscription, renews=renews))
    return context.request(kind, f"{url}/{SUBSCRIPTION}", body)
