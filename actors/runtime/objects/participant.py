"""A hyperty as a participant of its runtime: what it sends, and notices of its data objects.

There is one participant for all lives of a hyperty; the program that deployed it uses it, too.
"""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias, final
from weakref import WeakSet

import attrs
import trio

from actors.kit.errors import ActorStoppedError
from actors.kit.ids import IdSource
from actors.kit.trace import Tracer
from actors.runtime.bus.mini_bus import MiniBusPort
from actors.runtime.bus.transfers import Transfers
from actors.runtime.discovery.search import Discoverer
from actors.runtime.store.runtime_store import RuntimeStore
from fsm.limits.shares import OpenShares
from fsm.sync.observers import ObserverMove, ObserversCore, ObserversSeen
from specs.addresses.address import domain_of, is_below
from specs.bodies.object import (
    ObjectAnew,
    ObjectName,
    ObserverList,
    ObserversChange,
    ReadAttribute,
    ReadChildren,
)
from specs.child import CHANGES, parent_of
from specs.errors import ProtoflyError
from specs.identity import SenderIdentity
from specs.jsonvalue import JsonObject
from specs.limits.bus import OPEN_REQUESTS, PEER_WAITING
from specs.message import Message, MessageType, reason_in
from specs.reply_code import LAST_SUCCESS, Code
from transports.bodies import read_body, write_body

if TYPE_CHECKING:
    # Not needed in a sandbox process.
    from actors.runtime.own_sender import OwnSender


_ADVICE: Final = {
    int(Code.UNAUTHENTICATED): "ask while the hyperty is deployed",
    int(Code.FORBIDDEN): "ask its reporter for an invitation",
    int(Code.NOT_FOUND): "ask its reporter for its address",
    int(Code.UNAVAILABLE): "try again later",
    int(Code.TIMEOUT): "try again when its reporter is in reach",
}
"""Advice for people by reply code; the reason of other codes needs none."""


@final
class ObjectError(ProtoflyError, public=True):
    """A data object cannot be reported, changed or observed.

    Attributes:
        about: Address of the object; or, while it has none, a description of it.
        code: Reply code: 400 the request cannot be met, 401 the hyperty is undeployed, 403
            refused, 404 no such object, 408 no answer in time, 409 a conflict, such as a second
            observation, 410 the object or the runtime is gone, 413 too large or too many, 503 it
            cannot be reached.
        why: Reason for people, as half a sentence.
    """

    def __init__(self, about: str, code: int, why: str) -> None:
        # Of children there is nothing to be advised: their reasons say all.
        advice = None if "#" in about else _ADVICE.get(code)
        said = f"{about}: {code} {why}".rstrip()
        super().__init__(said if advice is None else f"{said}; {advice}")
        self.about = about
        self.code = code
        self.why = why


@final
class SchemaError(ProtoflyError, ValueError, public=True):
    """A value does not obey the schema of its data object, or the schema is not a JSON Schema.

    The value was not written, and no observer was notified.

    Attributes:
        path: Dotted path in the value; empty: the whole value, or the schema.
        why: Reason for people, as half a sentence.
    """

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"{path}: {why}" if path else why)
        self.path = path
        self.why = why


_CHANGES: Final = f"/{CHANGES}"
_OBSERVERS: Final = "/observers"


_Shares: TypeAlias = OpenShares[trio.lowlevel.Task]


RequestWindows: TypeAlias = dict[str, _Shares]
"""Limits on the open requests of one process, by address of the receiver."""


class RequestPlace:
    """Limit on open requests to one receiver: `async with` waits for a free one of its permits.

    Entering waits for a place, and is no checkpoint if there is one. If cancelled on entering,
    nothing is counted.
    """

    __slots__ = ("_sender", "_shares", "_to", "_windows")

    _shares: _Shares

    def __init__(self, windows: RequestWindows, sender: str, to: str) -> None:
        self._windows = windows
        self._sender = sender
        self._to = to

    async def __aenter__(self) -> None:
        """Wait for a permit, and take it."""
        shares = self._windows.get(self._to)
        if shares is None:
            shares = self._windows[self._to] = OpenShares(PEER_WAITING, OPEN_REQUESTS)
        self._shares = shares
        if not shares.enter(self._sender):
            await self._wait()

    async def _wait(self) -> None:
        task = trio.lowlevel.current_task()
        self._shares.wait(self._sender, task)

        def abort(_: object) -> trio.lowlevel.Abort:
            self._shares.give_up(self._sender, task)
            if self._shares.is_idle:
                self._windows.pop(self._to, None)
            return trio.lowlevel.Abort.SUCCEEDED

        await trio.lowlevel.wait_task_rescheduled(abort)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Return the permit; the next waiting request gets it."""
        following = self._shares.leave(self._sender)
        if following is not None:
            trio.lowlevel.reschedule(following)
        elif self._shares.is_idle:
            self._windows.pop(self._to, None)


class CoreTimer:
    """Runs the timer of a core: calls the core at its deadline and after each event.

    Args:
        deadline: Returns when its time is over; infinity: never.
    """

    def __init__(self, deadline: Callable[[], float]) -> None:
        self._deadline = deadline
        self._told = trio.Event()

    def tell(self, act: Callable[[float], None]) -> None:
        """Call a method of the core at the present time, and set the timer to its new deadline."""
        act(trio.current_time())
        self._told.set()
        self._told = trio.Event()

    async def is_over(self) -> bool:
        """Wait for the core's deadline: True; or for an event before it: False.

        If cancelled, only the wait ends.
        """
        with trio.move_on_at(self._deadline()) as scope:
            await self._told.wait()
        return scope.cancelled_caught


class Observers(ObserversCore):
    """The observers of one reported object, and those who wait for a change of them.

    Attributes:
        is_over: Whether the object is gone.
    """

    def __init__(self) -> None:
        super().__init__()
        self._readers: WeakSet[ObserverMoves] = WeakSet()
        self._waiting = trio.lowlevel.ParkingLot()
        self.is_over = False

    def add(self, moves: list[ObserverMove]) -> None:
        """Pass a notice of joining and leaving observers to the iterators over them."""
        for reader in self._readers:
            reader.seen.add(moves)
        self._waiting.unpark_all()

    def end(self) -> None:
        """Record that the object has been deleted; iterations end."""
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
        """Wait until a hyperty no longer observes the object, or the object is deleted.

        If cancelled, only the wait ends.
        """
        await trio.lowlevel.checkpoint()
        while observer in self.observers and not self.is_over:
            await self.wait()


class ObserverMoves:
    """An async iterator over joining and leaving observers; it ends with the object.

    A reader that is more than `OBSERVER_CHANGES_KEPT` items behind gets the difference between the
    observers it has seen and the present ones.
    """

    def __init__(self, observers: Observers) -> None:
        self._observers = observers
        self.seen: Final = ObserversSeen(observers.observers)

    def __aiter__(self) -> "ObserverMoves":
        return self

    async def __anext__(self) -> ObserverMove:
        await trio.lowlevel.checkpoint()
        while True:
            move = self.seen.next(self._observers.observers)
            if move is not None:
                return move
            if self._observers.is_over:
                raise StopAsyncIteration
            await self._observers.wait()


class ChildNotices(Protocol):
    """Takes the notices about the children of an object."""

    def take_notice(self, message: Message) -> Message | None:
        """Take a notice; return the answer to it, or None if there is none."""


Watcher: TypeAlias = Callable[[Message], None]
"""Function that gets the notices of one observed object.

Raises BadMessageError for an expulsion by neither its reporter nor the own sync manager.
"""


class HypertyRuntime(Protocol):
    """The services of a runtime that a hyperty needs; a sandbox process provides them, too."""

    @property
    def url(self) -> str:
        """Address of the runtime."""

    @property
    def ids(self) -> IdSource:
        """Ids of the messages of the runtime."""

    @property
    def tracer(self) -> Tracer:
        """Tracer of the state transitions of copies of data objects."""

    @property
    def store(self) -> RuntimeStore:
        """Store of copies of data objects."""

    @property
    def transfers(self) -> Transfers:
        """Memory and permits that the hyperties of the process share for bodies in chunks."""

    @property
    def windows(self) -> RequestWindows:
        """Limits on the open requests of the process."""

    @property
    def answer_within(self) -> float | None:
        """Seconds that handlers of requests may take; None: as long as they like."""

    @property
    def own(self) -> "OwnSender | None":
        """Identity of the runtime as a sender; None: it is not known here."""


class Participant:
    """The access of one hyperty to its runtime; it can act in no other hyperty's name.

    Args:
        runtime: The runtime.
        port: Port to the bus of the runtime; valid in later lives of the hyperty, too.

    Attributes:
        url: Address of the hyperty.
        manager: Address of the sync manager of the runtime.
        reported: The observers of each object that it reports, about whom it is asked.
        children: Objects that it observes or reports, each with what takes notices of children.
        discoverer: Searches in its name.
        configuration: Configuration of its descriptor; empty if it came from no catalogue.
    """

    def __init__(self, runtime: HypertyRuntime, port: MiniBusPort) -> None:
        self.runtime: Final = runtime
        self.port: Final = port
        self.url: Final = port.url
        self.ids: Final = runtime.ids
        self.manager: Final = f"{runtime.url}/sm"
        self.reported: Final[dict[str, Observers]] = {}
        self.children: Final[dict[str, ChildNotices]] = {}
        self.discoverer: Final = Discoverer(
            domain_of(runtime.url), f"{runtime.url}/registry", self.ask, self.post
        )
        self.configuration: JsonObject = {}
        self._observed: Final[dict[str, Watcher]] = {}
        self._unclaimed: Final[dict[str, Observers]] = {}
        self._expected = 0

    @property
    def identity(self) -> SenderIdentity | None:
        """Identity that the bus gives the hyperty's messages; None: it is not known here."""
        own = self.runtime.own
        return None if own is None else own.identity

    def ask(
        self, to: str, type_: MessageType, body: JsonObject, attempts: int = 1
    ) -> Awaitable[Message]:
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
        return self.port.insist(message, attempts)

    def window(self, to: str) -> RequestPlace:
        """Return a context in which one more request to a receiver is open.

        Entering waits while `OPEN_REQUESTS` of the hyperty are, or as many of all hyperties as the
        receiver takes of one runtime: a further one would be refused.

        Args:
            to: Address of the receiver.
        """
        return RequestPlace(self.runtime.windows, self.url, to)

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

    async def read(self, url: str, part: ReadAttribute | ReadChildren | None = None) -> Message:
        """Read a data object, or a part of it, and return the answer, as of `ask` (M-41).

        Args:
            url: Address of the object.
            part: An attribute, or a page of its children; None: the whole object.

        If cancelled, nothing has changed.

        Raises:
            ActorStoppedError: The runtime has closed.
        """
        body = {} if part is None else write_body(part)
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

    # --- objects that it reports ---------------------------------------------------------

    @contextmanager
    def expecting_object(self) -> Iterator[None]:
        """Take notices about a new object without a known address while the context is open."""
        self._expected += 1
        try:
            yield
        finally:
            self._expected -= 1
            if not self._expected:
                self._unclaimed.clear()

    def begin_report(self, url: str) -> None:
        """Take notices about a reported object, until `end_report`."""
        if url not in self.reported:
            self.reported[url] = self._unclaimed.pop(url, Observers())

    def end_report(self, url: str) -> None:
        """Forget an object. Idempotent."""
        observers = self.reported.pop(url, None)
        if observers is not None:
            observers.end()

    def take_observer_notice(self, message: Message) -> Observers | None:
        """Take a notice of a reported object about its observers.

        Returns:
            The observers of the object; None: the message is no such notice.

        Raises:
            BadMessageError: The notice has no valid body.
        """
        url = message.to.removesuffix(_OBSERVERS)
        if message.type is not MessageType.UPDATE or url == message.to or message.from_ != url:
            return None
        observers = self.reported.get(url)
        if observers is None and self._expected:
            observers = self._unclaimed.setdefault(url, Observers())
        if observers is not None:
            observers.add(observers.changed(read_body(message, ObserversChange)))
        return observers

    # --- objects that it observes --------------------------------------------------------

    def watch(self, url: str, watcher: Watcher) -> None:
        """Pass the notices of an object to a function from now on.

        Args:
            url: Address of the object.
            watcher: Takes the notices.

        Raises:
            ObjectError: 409: the hyperty observes it already.
        """
        if url in self._observed:
            raise ObjectError(url, Code.CONFLICT, "this hyperty observes it already: share it")
        self._observed[url] = watcher

    def unwatch(self, url: str) -> None:
        """Stop passing the notices of an object, as `watch` began."""
        del self._observed[url]

    def pass_snapshot(self, message: Message) -> None:
        """Pass on a whole object that the sync manager sends again; drop one that nobody watches.

        Raises:
            BadMessageError: The message names no object.
        """
        take = self._observed.get(read_body(message, ObjectAnew).resource)
        if take is not None:
            take(message)

    def is_watching(self, message: Message) -> bool:
        """Return whether a message names a watched object."""
        url = message.body.get("resource")
        return isinstance(url, str) and url in self._observed

    def pass_expulsion(self, message: Message) -> None:
        """Pass on the notice that the reporter has expelled this hyperty (SYN-21, M-45).

        Raises:
            BadMessageError: The sender is neither the reporter nor the own sync manager.
        """
        self._observed[read_body(message, ObjectName).resource](message)

    def pass_notice(self, message: Message) -> bool:
        """Pass on a notice of an observed object; return whether the message was such a notice."""
        url = message.to.removesuffix(_CHANGES)
        take = self._observed.get(url)
        if take is None or url == message.to or not is_below(message.from_, url):
            return False
        take(message)
        return True

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
            whole = read_body(attrs.evolve(answer, body=value), ObserverList)
            observers.add(observers.read(whole))

    async def pass_child_notice(self, message: Message) -> bool:
        """Pass on a notice about a child, and send the answer to it.

        If cancelled, the notice was passed on, and its answer was not sent.

        Returns:
            Whether the message was such a notice.

        Raises:
            ActorStoppedError: The runtime has closed.
        """
        url = parent_of(message.to) or ""
        children = self.children.get(url)
        if children is None:
            return False
        answer = children.take_notice(message)
        if answer is not None:
            await self.port.post(answer)
        return True
