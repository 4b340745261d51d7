"""A hyperty's seat in its runtime: what it speaks by, and the data objects it has to do with.

There is one for all lives of a hyperty, so that who deployed it can act in its name, too.
"""

from abc import ABC, abstractmethod
from contextlib import suppress
from typing import Final, final

import attrs
import trio

from actors.kit.errors import ActorStoppedError
from actors.kit.ids import IdSource
from actors.kit.trace import Tracer
from actors.runtime.bus.mini_bus import MiniBusPort
from actors.runtime.objects.error import ObjectError
from actors.runtime.objects.observers import Audience, Audiences
from actors.runtime.store.runtime_store import Shelf
from actors.runtime.sync.presence.registration import CHANGES
from specs.addresses.address import is_below
from specs.bodies.object import ObserverList
from specs.bodies.sync import ObjectAnew, ObjectName
from specs.child import parent_of
from specs.errors import BadMessageError
from specs.jsonvalue import JsonObject
from specs.limits.bus import MAX_ATTEMPTS
from specs.limits.sync import HAND_OVERS
from specs.message import Message, MessageType, reason_in
from specs.reply_code import LAST_SUCCESS, Code
from transports.bodies import read_body

__all__ = ["ChildrenHeard", "Seat"]

_CHANGES: Final = f"/{CHANGES}"
_OBSERVERS: Final = "/observers"


class ChildrenHeard(ABC):
    """Somebody who hears what is said of the children of an object."""

    @abstractmethod
    def heard(self, message: Message) -> Message | None:
        """Take what was said; return what it is answered with, if it is."""


@final
class Seat:
    """What a hyperty, and nobody else, can do by its runtime.

    Args:
        runtime: Address of the runtime.
        port: The way to its bus; as good in a later life of the hyperty.
        ids: Ids of the hyperty's messages.
        tracer: Takes the steps of its copies of data objects.
        shelf: Where its copies are stored; by default nowhere.

    Attributes:
        url: The hyperty's address.
        manager: Address of the sync manager it asks.
        reported: The objects it reports, whose observers it is asked about.
        audiences: Who observes them.
        delegated: The objects that the hyperty has agreed to take over, and of whom.
        children: Who hears of the children of objects that it observes, or reports.
    """

    def __init__(
        self,
        runtime: str,
        port: MiniBusPort,
        ids: IdSource,
        tracer: Tracer,
        shelf: Shelf | None = None,
    ) -> None:
        self.shelf: Final = shelf or Shelf(None)
        self.url: Final = port.url
        self.runtime: Final = runtime
        self.manager: Final = f"{runtime}/sm"
        self.port: Final = port
        self.ids: Final = ids
        self.tracer: Final = tracer
        self.reported: Final[set[str]] = set()
        self.audiences: Final = Audiences()
        self.delegated: Final[dict[str, str]] = {}
        self.children: Final[dict[str, ChildrenHeard]] = {}
        self._observed: Final[dict[str, trio.MemorySendChannel[Message]]] = {}
        self._reporters: Final[dict[str, str]] = {}

    async def ask(self, to: str, type_: MessageType, body: JsonObject) -> Message:
        """Send a request as the hyperty and return its final answer, refusals too."""
        message = Message(self.ids.next(self.url), type_, self.url, to, body)
        return await self.port.request(message)

    async def insist(self, message: Message, attempts: int) -> Message:
        """Send a request as often as that while nobody answers; return its final answer."""
        return await self.port.insist(message, max(1, min(attempts, MAX_ATTEMPTS)))

    async def post(self, to: str, type_: MessageType, body: JsonObject) -> None:
        """Send a request as the hyperty whose answer nobody waits for."""
        await self.port.post(Message(self.ids.next(self.url), type_, self.url, to, body))

    async def post_to_manager(self, type_: MessageType, body: JsonObject) -> None:
        """Ask the sync manager for something whose answer nobody waits for."""
        await self.post(self.manager, type_, body)

    async def ask_manager(self, type_: MessageType, body: JsonObject, about: str) -> Message:
        """Ask the sync manager for something, and return its consent.

        Args:
            type_: What kind of request it is.
            body: What it says.
            about: The object, for people.

        Raises:
            ObjectError: It refused, or the hyperty is not there any more.
        """
        try:
            answer = await self.ask(self.manager, type_, body)
        except ActorStoppedError as exc:
            raise ObjectError(about, Code.GONE, "the hyperty was undeployed") from exc
        if answer.code > LAST_SUCCESS:
            raise ObjectError(about, answer.code, reason_in(answer))
        return answer

    def watch(self, url: str, events: trio.MemorySendChannel[Message]) -> None:
        """Have what is said to the observers of an object sent to `events` from now on.

        Raises:
            ObjectError: The hyperty observes it already.
        """
        if url in self._observed:
            raise ObjectError(url, Code.CONFLICT, "this hyperty observes it already: share it")
        self._observed[url] = events

    async def shown(self, message: Message) -> None:
        """Pass on an object that the sync manager shows again; who left does not see it.

        Raises:
            BadMessageError: It shows none.
        """
        events = self._observed.get(read_body(message, ObjectAnew).resource)
        if events is not None:
            await _send(events, message)

    def unwatch(self, url: str) -> None:
        """End it."""
        del self._observed[url]
        self._reporters.pop(url, None)

    def reported_by(self, url: str, reporter: str | None) -> None:
        """Note who reports an object that is watched: nobody else can expel the hyperty."""
        if reporter is not None and url in self._observed:
            self._reporters[url] = reporter

    def watches(self, message: Message) -> bool:
        """Say whether a message names an object that is watched."""
        url = message.body.get("resource")
        return isinstance(url, str) and url in self._observed

    async def expelled(self, message: Message) -> None:
        """Pass on that the reporter of an object shuts the hyperty out (SYN-21, M-45).

        Raises:
            BadMessageError: Neither it nor the own sync manager says so.
        """
        url = read_body(message, ObjectName).resource
        if message.from_ not in {self._reporters.get(url), self.manager}:
            raise BadMessageError("only its reporter expels an observer", Code.FORBIDDEN)
        await _send(self._observed[url], message)

    def agree(self, url: str, manager: str) -> None:
        """Note that the hyperty takes an object over of a sync manager.

        Of too many the first is forgotten.
        """
        self.delegated[url] = manager
        if len(self.delegated) > HAND_OVERS:
            del self.delegated[next(iter(self.delegated))]

    def decides_on(self, url: str) -> bool:
        """Say whether the hyperty is asked about the observers of an object."""
        return url in self.reported or url in self.delegated

    async def take_over(self, part: Message) -> None:
        """Give a part of an object that is handed over to the sync manager (M-54).

        Raises:
            ObjectError: It does not take it.
        """
        await self.ask_manager(MessageType.CREATE, part.body, part.from_)

    async def read_observers(self, url: str, audience: Audience) -> None:
        """Read who observes an own object: something that was told of it is missing."""
        answer = await self.ask(f"{url}{_OBSERVERS}", MessageType.READ, {})
        value = answer.body.get("value")
        if answer.code <= LAST_SUCCESS and isinstance(value, dict):
            audience.read(read_body(attrs.evolve(answer, body=value), ObserverList))

    async def hears_of_child(self, message: Message) -> bool:
        """Pass on what is said of a child, and answer it; tell whether it was that."""
        heard = self.children.get(parent_of(message.to) or "")
        if heard is None:
            return False
        answer = heard.heard(message)
        if answer is not None:
            await self.port.post(answer)
        return True

    async def hears(self, message: Message) -> bool:
        """Pass on what an observed object says; tell whether it was that."""
        url = message.to.removesuffix(_CHANGES)
        events = self._observed.get(url)
        if events is None or url == message.to or not is_below(message.from_, url):
            return False
        await _send(events, message)
        return True


async def _send(events: trio.MemorySendChannel[Message], message: Message) -> None:
    # Whoever has just stopped observing does not listen any more.
    with suppress(trio.BrokenResourceError):
        await events.send(message)
