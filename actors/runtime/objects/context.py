"""The context of a hyperty in its runtime: its port, its store, its data objects and observers.

There is one context for all lives of a hyperty, which the program that deployed it uses, too.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final, final
from weakref import WeakSet

import attrs
import trio

from actors.kit.errors import ActorStoppedError
from actors.kit.ids import IdSource
from actors.kit.trace import Tracer
from actors.runtime.bus.mini_bus import MiniBusPort
from actors.runtime.bus.transfers import Transfers
from actors.runtime.discovery.search import Discoverer
from actors.runtime.objects.error import ObjectError
from actors.runtime.objects.windows import RequestPlace, RequestWindows
from actors.runtime.store.runtime_store import RuntimeStore
from actors.runtime.sync.registration import CHANGES
from fsm.sync.observers import ObserverMove, ObserversCore, ObserversSeen
from specs.addresses.address import domain_of, is_below
from specs.bodies.object import ObserverList, ObserversChange
from specs.bodies.sync import ObjectAnew, ObjectName, ReadAttribute
from specs.child import parent_of
from specs.errors import BadMessageError
from specs.identity import SenderIdentity
from specs.jsonvalue import JsonObject
from specs.message import Message, MessageType, reason_in
from specs.reply_code import LAST_SUCCESS, Code
from transports.bodies import read_body, write_body

if TYPE_CHECKING:
    # Not needed in a sandbox process.
    from actors.runtime.own_sender import OwnSender


@final
class Observers:
    """The observers of one reported object.

    Attributes:
        is_over: Whether the object is gone.
    """

    def __init__(self) -> None:
        self._core = ObserversCore()
        self._readers: WeakSet[ObserverMoves] = WeakSet()
        self._waiting = trio.lowlevel.ParkingLot()
        self.is_over = False

    @property
    def present(self) -> tuple[str, ...]:
        """Addresses of the observers, in the order in which they subscribed."""
        return self._core.observers

    @property
    def is_behind(self) -> bool:
        """Whether a notice was lost, so that the whole list has to be read."""
        return self._core.is_behind and not self.is_over

    def changed(self, change: ObserversChange) -> None:
        """Take a notice of the sync manager."""
        self._add(self._core.changed(change))

    def read(self, whole: ObserverList) -> None:
        """Take the whole list."""
        self._add(self._core.read(whole))

    def end(self) -> None:
        """Note that the object is gone."""
        self.is_over = True
        self._waiting.unpark_all()

    def moves(self) -> "ObserverMoves":
        """Iterate over joining and leaving observers from now on."""
        reader = ObserverMoves(self)
        self._readers.add(reader)
        return reader

    async def wait(self) -> None:
        """Wait for the next notice.

        If cancelled, only the wait ends.
        """
        await self._waiting.park()

    async def wait_without(self, observer: str) -> None:
        """Wait until a hyperty does not observe, or the object is gone.

        If cancelled, only the wait ends.
        """
        await trio.lowlevel.checkpoint()
        while observer in self.present and not self.is_over:
            await self.wait()

    def _add(self, moves: list[ObserverMove]) -> None:
        for reader in self._readers:
            reader.seen.add(moves)
        self._waiting.unpark_all()


@final
class ObserverMoves:
    """An async iterator over joining and leaving observers; it ends with the object.

    A reader that is more than `OBSERVER_CHANGES_KEPT` items behind gets the difference between the
    observers it has seen and the present ones.
    """

    def __init__(self, observers: Observers) -> None:
        self._observers = observers
        self.seen: Final = ObserversSeen(observers.present)

    def __aiter__(self) -> "ObserverMoves":
        return self

    async def __anext__(self) -> ObserverMove:
        await trio.lowlevel.checkpoint()
        while True:
            move = self.seen.next(self._observers.present)
            if move is not None:
                return move
            if self._observers.is_over:
                raise StopAsyncIteration
            await self._observers.wait()


@final
class ReportedObservers:
    """The observers of all objects that one hyperty reports."""

    def __init__(self) -> None:
        self._of: dict[str, Observers] = {}
        self._taken: set[str] = set()
        self._expecting = 0

    @contextmanager
    def expecting(self) -> Iterator[None]:
        """Take notices about a new object without a known address while the context is open."""
        self._expecting += 1
        try:
            yield
        finally:
            self._expecting -= 1
            if not self._expecting:
                self._of = {url: one for url, one in self._of.items() if url in self._taken}

    def take(self, url: str) -> Observers:
        """Return the observers of a reported object, until it is dropped."""
        self._taken.add(url)
        return self._of.setdefault(url, Observers())

    def drop(self, url: str) -> None:
        """Forget an object. Idempotent."""
        self._taken.discard(url)
        gone = self._of.pop(url, None)
        if gone is not None:
            gone.end()

    def heard(self, message: Message) -> Observers | None:
        """Take a notice of a reported object about its observers.

        Returns:
            The observers of the object; None: the message is no such notice.

        Raises:
            BadMessageError: The notice has no valid body.
        """
        url = message.to.removesuffix(_OBSERVERS)
        if message.type is not MessageType.UPDATE or url == message.to or message.from_ != url:
            return None
        observers = self._of.get(url)
        if observers is None and self._expecting:
            observers = self._of.setdefault(url, Observers())
        if observers is not None:
            observers.changed(read_body(message, ObserversChange))
        return observers


_CHANGES: Final = f"/{CHANGES}"
_OBSERVERS: Final = "/observers"


class ChildrenHeard(ABC):
    """Takes the notices about the children of an object."""

    @abstractmethod
    def heard(self, message: Message) -> Message | None:
        """Take a notice; return the answer to it, or None if there is none."""


@final
class HypertyContext:
    """The context of one hyperty: what it can do in its runtime, and no other hyperty in its name.

    Args:
        runtime: Address of the runtime.
        port: Port to the bus of the runtime; valid in later lives of the hyperty, too.
        ids: Ids of the messages of the hyperty.
        tracer: Takes the steps of its copies of data objects.
        store: Store of its copies; None: they are not stored.
        transfers: What the bodies in chunks of the process share; None: it has none else.
        windows: The open requests of the process; None: it has no other hyperty.

    Attributes:
        url: Address of the hyperty.
        manager: Address of the sync manager of the runtime.
        reported: Addresses of the objects that it reports, about whose observers it is asked.
        observers: Observers of those objects.
        children: Objects that it observes or reports, each with what takes notices of children.
        discoverer: Searches in its name.
        configuration: Configuration of its descriptor; empty if it came from no catalogue.
    """

    def __init__(
        self,
        runtime: str,
        port: MiniBusPort,
        ids: IdSource,
        tracer: Tracer,
        store: RuntimeStore | None = None,
        *,
        transfers: Transfers | None = None,
        windows: RequestWindows | None = None,
        own: "OwnSender | None" = None,
    ) -> None:
        self.store: Final = store or RuntimeStore(None)
        self.transfers: Final = transfers or Transfers()
        self.url: Final = port.url
        self.runtime: Final = runtime
        self.manager: Final = f"{runtime}/sm"
        self.port: Final = port
        self.ids: Final = ids
        self.tracer: Final = tracer
        self.reported: Final[set[str]] = set()
        self.observers: Final = ReportedObservers()
        self.children: Final[dict[str, ChildrenHeard]] = {}
        self.discoverer: Final = Discoverer(
            domain_of(runtime), f"{runtime}/registry", self.ask, self.post
        )
        self._windows: Final = windows or RequestWindows()
        self._own: Final = own
        self.configuration: JsonObject = {}
        self._observed: Final[dict[str, trio.MemorySendChannel[Message]]] = {}
        self._reporters: Final[dict[str, str]] = {}

    @property
    def identity(self) -> SenderIdentity | None:
        """Identity that the bus gives the hyperty's messages; None: it is not known here."""
        return None if self._own is None else self._own.identity

    async def ask(
        self, to: str, type_: MessageType, body: JsonObject, attempts: int = 1
    ) -> Message:
        """Send a request as the hyperty and return its final answer, which may be a refusal.

        Args:
            to: Address of the receiver.
            type_: Verb of the request.
            body: Body of the request.
            attempts: How often the same message is sent at most while no answer comes.

        If cancelled, a message that the bus has not taken yet is not sent; the answer to one
        that was sent is dropped.

        Raises:
            ActorStoppedError: The runtime has closed.
        """
        message = Message(self.ids.next(self.url), type_, self.url, to, body)
        return await self.port.insist(message, attempts)

    def window(self, to: str) -> RequestPlace:
        """Return a context in which one more request to a receiver is open.

        Entering waits while `OPEN_REQUESTS` of the hyperty are, or as many of all hyperties as the
        receiver takes of one runtime: a further one would be refused.

        Args:
            to: Address of the receiver.
        """
        return self._windows.place(self.url, to)

    async def post(self, to: str, type_: MessageType, body: JsonObject) -> None:
        """Send a request as the hyperty without waiting for its answer.

        Args:
            to: Address of the receiver.
            type_: Verb of the request.
            body: Body of the request.

        If cancelled, the message was not sent.

        Raises:
            ActorStoppedError: The runtime has closed.
        """
        await self.port.post(Message(self.ids.next(self.url), type_, self.url, to, body))

    async def post_to_manager(self, type_: MessageType, body: JsonObject) -> None:
        """Send a request to the sync manager without waiting for its answer.

        Args:
            type_: Verb of the request.
            body: Body of the request.

        If cancelled, the message was not sent.

        Raises:
            ActorStoppedError: The runtime has closed.
        """
        await self.post(self.manager, type_, body)

    async def read(self, url: str, attribute: str | None = None) -> Message:
        """Read a data object, or one attribute of it, and return the answer, as of `ask` (M-41).

        Args:
            url: Address of the object.
            attribute: Dotted path in its value; None: the whole object.

        If cancelled, nothing has changed.

        Raises:
            ActorStoppedError: The runtime has closed.
        """
        body = {} if attribute is None else write_body(ReadAttribute(attribute))
        answer = await self.ask(url, MessageType.READ, body)
        if answer.code == Code.UNAUTHENTICATED:
            # It may have gone by a link, which proves nothing; the node knows the requester.
            answer = await self.ask(url, MessageType.READ, {**body, "p2p": False})
        return answer

    async def ask_manager(
        self, type_: MessageType, body: JsonObject, about: str, attempts: int = 1
    ) -> Message:
        """Send a request to the sync manager, and return its successful answer.

        Args:
            type_: Verb of the request.
            body: Body of the request.
            about: The object, for the error.
            attempts: How many times `REPLY_TIMEOUT` the answer may take.

        If cancelled, the sync manager may still do what it is asked.

        Raises:
            ObjectError: The sync manager refused; or 410: the runtime has closed.
        """
        try:
            answer = await self.ask(self.manager, type_, body, attempts)
        except ActorStoppedError as exc:
            raise ObjectError(about, Code.GONE, "the hyperty was undeployed") from exc
        if answer.code > LAST_SUCCESS:
            raise ObjectError(about, answer.code, reason_in(answer))
        return answer

    def watch(self, url: str, events: trio.MemorySendChannel[Message]) -> None:
        """Send notices of an object to its observers to `events`, from now on.

        Args:
            url: Address of the object.
            events: Takes the notices.

        Raises:
            ObjectError: 409: the hyperty observes it already.
        """
        if url in self._observed:
            raise ObjectError(url, Code.CONFLICT, "this hyperty observes it already: share it")
        self._observed[url] = events

    async def shown(self, message: Message) -> None:
        """Pass on an object that the sync manager shows again; dropped if it is not watched.

        If cancelled while the observation has no room, the message is lost.

        Raises:
            BadMessageError: The message names no object.
        """
        events = self._observed.get(read_body(message, ObjectAnew).resource)
        if events is not None:
            await _send(events, message)

    def unwatch(self, url: str) -> None:
        """End what `watch` began."""
        del self._observed[url]
        self._reporters.pop(url, None)

    def reported_by(self, url: str, reporter: str | None) -> None:
        """Note the reporter of a watched object: only it can expel the hyperty.

        Args:
            url: Address of the object.
            reporter: Address of the reporter; None: nothing is noted.
        """
        if reporter is not None and url in self._observed:
            self._reporters[url] = reporter

    def watches(self, message: Message) -> bool:
        """Return whether a message names a watched object."""
        url = message.body.get("resource")
        return isinstance(url, str) and url in self._observed

    async def expelled(self, message: Message) -> None:
        """Pass on that the reporter of an object expels the hyperty (SYN-21, M-45).

        If cancelled while the observation has no room, the message is lost.

        Raises:
            BadMessageError: The sender is neither the reporter nor the own sync manager.
        """
        url = read_body(message, ObjectName).resource
        if message.from_ not in {self._reporters.get(url), self.manager}:
            raise BadMessageError("only its reporter expels an observer", Code.FORBIDDEN)
        await _send(self._observed[url], message)

    async def read_observers(self, url: str, observers: Observers) -> None:
        """Read the observers of a reported object, after a notice about them was lost.

        Args:
            url: Address of the object.
            observers: Takes the list; unchanged if the object cannot be read.

        If cancelled, the list is unchanged.

        Raises:
            ActorStoppedError: The runtime has closed.
            BadMessageError: The answer is not a list of observers.
        """
        answer = await self.ask(f"{url}{_OBSERVERS}", MessageType.READ, {})
        value = answer.body.get("value")
        if answer.code <= LAST_SUCCESS and isinstance(value, dict):
            observers.read(read_body(attrs.evolve(answer, body=value), ObserverList))

    async def hears_of_child(self, message: Message) -> bool:
        """Pass on a notice about a child, and send the answer to it.

        If cancelled, the notice was passed on, and its answer was not sent.

        Returns:
            Whether the message was such a notice.

        Raises:
            ActorStoppedError: The runtime has closed.
        """
        url = parent_of(message.to) or ""
        heard = self.children.get(url)
        if heard is None:
            return False
        answer = heard.heard(message)
        if answer is not None:
            await self.port.post(answer)
        return True

    async def hears(self, message: Message) -> bool:
        """Pass on a notice of an observed object.

        If cancelled while the observation has no room, the notice is lost.

        Returns:
            Whether the message was such a notice.
        """
        url = message.to.removesuffix(_CHANGES)
        events = self._observed.get(url)
        if events is None or url == message.to or not is_below(message.from_, url):
            return False
        await _send(events, message)
        return True


async def _send(events: trio.MemorySendChannel[Message], message: Message) -> None:
    # An observation that has just ended does not listen any more.
    with suppress(trio.BrokenResourceError):
        await events.send(message)
