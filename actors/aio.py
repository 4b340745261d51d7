"""Runtimes and nodes in a program on asyncio: Trio runs beside it, in a thread of its own.

`open_runtime` and `open_node` are those of `actors` for coroutines of asyncio. They start a thread
that runs Trio while the context is open; each operation is done in this thread, and its result is
awaited by the coroutine. Handlers of hyperties are coroutines of asyncio and run in its loop.

    async with aio.open_node("a.example") as node:
        async with aio.open_runtime("a.example", "bob", node=node.url) as runtime:
            async with runtime.deploy(greet) as greeter:
                answer = await runtime.request(greeter, "Alice")
"""

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from functools import partial
from typing import Final, Generic, TypeVar, TypeVarTuple, cast, final

import trio
from typing_extensions import override

from actors import embedded_node, embedding
from actors.kit.arguments import PathInput
from actors.kit.errors import ActorStoppedError
from actors.node.app import Node as RunningNode
from actors.node.config import NodeConfig
from actors.resources import Trace, bare_error
from actors.runtime.config import RuntimeConfig
from actors.runtime.hyperty.hyperty import Hyperty
from actors.runtime.hyperty.typed import Sendable
from actors.runtime.objects.observation import ObservedObject
from actors.runtime.objects.reported_object import ReportedObject
from actors.runtime.stubs.credentials import NO_CREDENTIALS, Credentials
from fsm.sync.value.value import ObjectChange
from specs.jsonvalue import Json, JsonInput
from specs.limits.protocol import GOODBYE_TIMEOUT
from specs.message import Message, MessageType
from transports.link import Network

__all__ = ["Node", "Observed", "Reported", "Runtime", "TrioThread", "open_node", "open_runtime"]

S = TypeVar("S")
T = TypeVar("T")
Ts = TypeVarTuple("Ts")

_THREAD: Final = "protofly trio"


class _Job(Generic[T]):
    """A Trio function that a coroutine awaits.

    Attributes:
        result: What the coroutine awaits.
        scope: Cancels the function.
    """

    def __init__(self, work: Callable[[], Awaitable[T]]) -> None:
        self.result: Final[asyncio.Future[T]] = asyncio.get_running_loop().create_future()
        self.scope: Final = trio.CancelScope()
        self._work = work

    async def run(self, thread: "TrioThread") -> None:
        """Run the function in Trio, and hand its result or error to the coroutine."""
        try:
            with self.scope:
                value = await self._work()
                thread.tell(_settle, self.result, value)
                return
        except Exception as exc:  # noqa: BLE001 - every error is the coroutine's
            thread.tell(_fail, self.result, exc)
        else:
            thread.tell(_fail, self.result, ActorStoppedError(_THREAD))


def _settle(result: "asyncio.Future[T]", value: T) -> None:
    if not result.done():
        result.set_result(value)


def _fail(result: "asyncio.Future[T]", error: BaseException) -> None:
    if not result.done():
        result.set_exception(error)
        # A coroutine that was cancelled does not look at the error.
        result.exception()


async def _wait_until_done(result: "asyncio.Future[T]") -> None:
    """Await the end of a future, also if cancelled meanwhile; raise the cancellation after it.

    anyio cancels a task again and again until it leaves its scope: one shield is not enough.
    """
    cancelled: asyncio.CancelledError | None = None
    while not result.done():
        try:
            await asyncio.wait([result])
        except asyncio.CancelledError as exc:
            cancelled = cancelled or exc
    if cancelled is not None:
        raise cancelled


@final
class TrioThread:
    """A thread that runs Trio for coroutines of one asyncio loop; made by `open`."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._started: asyncio.Future[None] = self._loop.create_future()
        self._ended: asyncio.Future[None] = self._loop.create_future()
        self._failing: set[Callable[[BaseException], None]] = set()
        self._stop = trio.Event()
        self._crash: BaseException | None = None

    @classmethod
    @asynccontextmanager
    async def open(cls) -> AsyncIterator["TrioThread"]:
        """Run Trio in a thread while the context is open.

        If cancelled, everything that runs in the thread is cancelled, and the thread is awaited.

        Raises:
            ActorStoppedError: At the end of the block: Trio crashed; the cause is its error.
        """
        opened = cls()
        thread = threading.Thread(target=opened._main, name=_THREAD, daemon=True)
        thread.start()
        try:
            await _wait_until_done(opened._started)
            yield opened
        finally:
            opened._soon(opened._stop.set)
            try:
                await _wait_until_done(opened._ended)
            finally:
                # It does nothing any more.
                thread.join()
        if opened._crash is not None:
            raise opened._stop_error()

    def _main(self) -> None:
        crash: BaseException | None = None
        try:
            trio.run(self._serve)
        except BaseException as exc:  # noqa: BLE001 - the coroutines get it as the cause
            crash = exc
        self.tell(self._end, crash)

    async def _serve(self) -> None:
        self._token = trio.lowlevel.current_trio_token()
        with bare_error():
            async with trio.open_nursery() as nursery:
                self._nursery = nursery
                self.tell(_settle, self._started, None)
                try:
                    await self._stop.wait()
                finally:
                    # Also if a job crashed: a closed nursery takes no job.
                    self._stop.set()
                    nursery.cancel_scope.cancel()

    def _start(self, job: _Job[T]) -> None:
        """Start a job, in Trio."""
        if self._stop.is_set():
            self.tell(_fail, job.result, self._stop_error())
        else:
            self._nursery.start_soon(job.run, self)

    def _end(self, crash: BaseException | None) -> None:
        """Take note in the loop of asyncio that Trio has ended."""
        self._crash = crash
        for fail in self._failing:
            fail(self._stop_error())
        _settle(self._started, None)
        _settle(self._ended, None)

    def _stop_error(self) -> ActorStoppedError:
        stopped = ActorStoppedError(_THREAD)
        stopped.__cause__ = self._crash
        return stopped

    def tell(self, act: Callable[[*Ts], object], *args: *Ts) -> None:
        """Call a function in the loop of asyncio soon; called from any thread."""
        try:
            self._loop.call_soon_threadsafe(act, *args)
        except RuntimeError:
            # The loop was closed: no coroutine waits any more.
            return

    def _soon(self, act: Callable[[*Ts], object], *args: *Ts) -> None:
        """Call a function in Trio soon; do nothing once Trio has ended."""
        if not self._ended.done():
            # If Trio has just ended, `_end` comes next, and fails what waits.
            with suppress(trio.RunFinishedError):
                self._token.run_sync_soon(act, *args)

    async def run(self, work: Callable[[*Ts], Awaitable[T]], *args: *Ts) -> T:
        """Await an async function of Trio, such as a method of a runtime of `actors`.

        Args:
            work: The function.
            args: Its arguments.

        If cancelled, the function is cancelled, and its end is awaited.

        Raises:
            ActorStoppedError: The thread has ended; if Trio crashed, the cause is its error.
            Exception: What the function raises.
        """
        if self._ended.done():
            raise self._stop_error()
        job: _Job[T] = _Job(partial(work, *args))
        fail = partial(_fail, job.result)
        self._failing.add(fail)
        self._soon(self._start, job)
        try:
            return await asyncio.shield(job.result)
        except asyncio.CancelledError:
            self._soon(job.scope.cancel)
            await _wait_until_done(job.result)
            raise
        finally:
            self._failing.discard(fail)

    @asynccontextmanager
    async def enter(self, context: AbstractAsyncContextManager[T]) -> AsyncIterator[T]:
        """Keep an async context of Trio open while this context is open.

        Args:
            context: The context, such as that of `actors.open_runtime`.

        Yields:
            What the context yields; its async methods are called by `run`.

        If the context ends by an error, the block is cancelled, and the error is raised.
        """
        leave = trio.Event()
        entered: asyncio.Future[T] = self._loop.create_future()

        async def hold() -> None:
            async with context as value:
                self.tell(_settle, entered, value)
                await leave.wait()

        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self.run(hold))
                value = await entered
                try:
                    yield value
                finally:
                    self._soon(leave.set)
        except BaseExceptionGroup as errors:
            if len(errors.exceptions) > 1:
                raise
            raise errors.exceptions[0] from errors.exceptions[0].__cause__

    def iterate(self, source: AsyncIterator[T]) -> AsyncIterator[T]:
        """Return an async iterator for asyncio over the items of an async iterator of Trio.

        The next item is asked for when it is wanted.

        Args:
            source: The iterator.
        """
        return _Iterator(self, source)

    async def call_back(self, act: Callable[[*Ts], Coroutine[None, None, T]], *args: *Ts) -> T:
        """Await a coroutine function of asyncio from Trio.

        Args:
            act: The function; its coroutine runs in the loop of asyncio.
            args: Its arguments.

        If cancelled, the coroutine is cancelled, and its end awaited for `GOODBYE_TIMEOUT` seconds.

        Raises:
            RuntimeError: The coroutine was cancelled in asyncio.
            Exception: What the coroutine raises.
        """
        done, token = trio.Event(), self._token
        tasks: list[asyncio.Task[T]] = []

        def note(_: object) -> None:
            # A coroutine may go on for longer than Trio waits for it.
            with suppress(trio.RunFinishedError):
                token.run_sync_soon(done.set)

        def begin() -> None:
            task = self._loop.create_task(act(*args))
            tasks.append(task)
            task.add_done_callback(note)

        def cancel() -> None:
            tasks[0].cancel()

        self.tell(begin)
        try:
            await done.wait()
        finally:
            if not done.is_set():
                self.tell(cancel)
                with trio.move_on_after(GOODBYE_TIMEOUT, shield=True):
                    await done.wait()
        # An asyncio.CancelledError would end Trio.
        if tasks[0].cancelled():
            raise RuntimeError(f"{act!r} was cancelled in asyncio")
        return tasks[0].result()


@final
class _Iterator(AsyncIterator[T]):
    """The items of an iterator of Trio, for asyncio."""

    def __init__(self, thread: TrioThread, source: AsyncIterator[T]) -> None:
        self._thread = thread
        self._source = source

    @override
    async def __anext__(self) -> T:
        items = await self._thread.run(self._read)
        if not items:
            raise StopAsyncIteration
        return items[0]

    async def _read(self) -> list[T]:
        """Return the next item in a list, which is empty at the end."""
        try:
            return [await anext(self._source)]
        except StopAsyncIteration:
            return []


Handler = Callable[[Message], Coroutine[None, None, Sendable]]
"""A coroutine function of asyncio that handles a request; it returns the value of the answer."""


class _Served(Hyperty):
    """A hyperty whose handlers are coroutine functions of asyncio."""

    def __init__(
        self,
        thread: TrioThread,
        request: Handler | None,
        event: Callable[[Message], Coroutine[None, None, object]] | None,
    ) -> None:
        self._thread = thread
        self._request = request
        self._event = event

    @override
    async def on_request(self, message: Message) -> Sendable:
        if self._request is None:
            return await super().on_request(message)
        return await self._thread.call_back(self._request, message)

    @override
    async def on_event(self, message: Message) -> None:
        if self._event is not None:
            await self._thread.call_back(self._event, message)


@final
class Node:
    """A running message node; made by `open_node`.

    Attributes:
        url: Its address for runtimes, such as `ws://127.0.0.1:4123/link`.
        running: The node of `actors`; its async methods are called by `thread.run`.
        thread: The thread in which it runs.
    """

    def __init__(self, running: RunningNode, thread: TrioThread) -> None:
        self.url: Final = running.url
        self.running: Final = running
        self.thread: Final = thread


@final
class Observed:
    """A copy of a data object; made by `Runtime.observe`."""

    def __init__(self, copy: ObservedObject, thread: TrioThread) -> None:
        self._copy = copy
        self._thread = thread

    @property
    def value(self) -> Mapping[str, Json]:
        """The newest value."""
        return self._copy.value

    @property
    def version(self) -> int:
        """The version of the newest value."""
        return self._copy.version

    def changes(self) -> AsyncIterator[ObjectChange]:
        """Return an async iterator over the changes from now on, as of `ObservedObject.changes`.

        Raises:
            ObjectError: On iteration: the observation has ended by an error.
        """
        return self._thread.iterate(self._copy.changes())


@final
class Reported:
    """A data object that this runtime reports; made by `Runtime.report`.

    Attributes:
        url: Its address.
    """

    def __init__(self, reported: ReportedObject, thread: TrioThread) -> None:
        self.url: Final = reported.url
        self._reported = reported
        self._thread = thread

    @property
    def value(self) -> Mapping[str, Json]:
        """The value after all writes."""
        return self._reported.value

    async def set(self, path: str, value: JsonInput) -> int:
        """Set an attribute, as `ReportedObject.set` does; return the version.

        Raises:
            SchemaError: The value is not allowed.
            ObjectError: The change was not published.
        """
        return await self._thread.run(self._reported.set, path, value)


@final
class Runtime:
    """A running hyperty runtime; made by `open_runtime`.

    Attributes:
        url: Its address.
        running: The runtime of `actors`; its async methods are called by `thread.run`.
        thread: The thread in which it runs.
    """

    def __init__(self, running: embedding.Runtime, thread: TrioThread) -> None:
        self.url: Final = running.url
        self.running: Final = running
        self.thread: Final = thread
        self._caller: asyncio.Task[Hyperty] | None = None

    async def _own_caller(self) -> Hyperty:
        """Return the hyperty in whose name the runtime sends; it is deployed at the first call."""
        known = self._caller
        if known is None or (known.done() and (known.cancelled() or known.exception())):
            self._caller = asyncio.create_task(self.thread.run(self._deploy_caller))
        return await asyncio.shield(cast("asyncio.Task[Hyperty]", self._caller))

    async def _deploy_caller(self) -> Hyperty:
        caller = _Served(self.thread, None, None)
        await self.running.deploy(lambda: caller, "caller")
        return caller

    async def request(
        self,
        to: str,
        value: Sendable = None,
        type_: str = MessageType.CREATE,
        *,
        path: str = "",
        answer_within: float | None = None,
        traceparent: str | None = None,
    ) -> Message:
        """Send a request and return its final answer, as `Hyperty.request` does.

        Args:
            to: Address of the receiver.
            value: JSON value of the request.
            type_: Verb of the request.
            path: What the request is about.
            answer_within: Seconds for which the answer is awaited.
            traceparent: The span that the request belongs to, such as the header of a web request.

        If cancelled, the request is cancelled as that of a hyperty.

        Raises:
            TypeError: An argument is of a wrong kind.
            ValueError: `type_` is no verb of requests, or `answer_within` is out of range.
            NotJsonError: The value is not JSON; nothing was sent.
            AllocationError: The node gave no address to send from.
            ActorStoppedError: The runtime has closed.
        """
        caller = await self._own_caller()
        ask = partial(caller.request, to, value, type_, path=path, answer_within=answer_within)
        return await self.thread.run(partial(ask, traceparent=traceparent))

    async def send(self, to: str, value: Sendable = None) -> None:
        """Send an event to a hyperty, as `Hyperty.send` does.

        Args:
            to: Address of the hyperty.
            value: JSON value of the event.

        If cancelled, the event may have been sent.

        Raises:
            ValueError: `to` is not the address of a hyperty.
            NotJsonError: The value is not JSON; nothing was sent.
            AllocationError: The node gave no address to send from.
            ActorStoppedError: The runtime has closed.
        """
        caller = await self._own_caller()
        await self.thread.run(caller.send, to, value)

    @asynccontextmanager
    async def deploy(
        self,
        request: Handler,
        name: str | None = None,
        *,
        event: Callable[[Message], Coroutine[None, None, object]] | None = None,
    ) -> AsyncIterator[str]:
        """Run a hyperty while the context is open.

        Args:
            request: Coroutine function that handles a request, and returns the value of the answer;
                it raises `actors.Refused` to refuse. It is cancelled with its request's handler.
            name: Name of the hyperty in the domain registry; None: that of the function.
            event: Coroutine function that handles an event; None: events are ignored.

        Yields:
            The address of the hyperty.

        Raises:
            TypeError: A handler is no coroutine function.
            AllocationError: The node gave no address.
            RegistrationError: The domain registry did not take the record.
            ActorStoppedError: The runtime has closed.
        """
        for each in (request, event):
            if each is not None and not asyncio.iscoroutinefunction(each):
                advice = "deploy a class by `thread.run(runtime.running.deploy, ...)`"
                hint = f"; {advice}" if isinstance(each, type) else ""
                raise TypeError(f"{each!r} is no coroutine function (`async def`){hint}")
        made = partial(_Served, self.thread, request, event)
        async with self.thread.enter(self._keep_deployed(made, name or request.__name__)) as url:
            yield url

    @asynccontextmanager
    async def _keep_deployed(self, made: Callable[[], Hyperty], name: str) -> AsyncIterator[str]:
        async with await self.running.deploy(made, name) as deployed:
            yield deployed.url

    @asynccontextmanager
    async def observe(self, url: str) -> AsyncIterator[Observed]:
        """Observe a data object while the context is open.

        A runtime observes an object once at a time. All coroutines share the copy; each call of
        `changes` gives an iterator of its own.

        Args:
            url: Address of the object.

        Yields:
            A copy of the object that follows its changes.

        Raises:
            BadMessageError: `url` is not an address.
            ObjectError: As of `Hyperty.observe`; 409 if this runtime observes the object already.
        """
        caller = await self._own_caller()
        async with self.thread.enter(_in_trio(caller.observe, url)) as copy:
            yield Observed(copy, self.thread)

    @asynccontextmanager
    async def report(
        self,
        schema: str,
        value: Mapping[str, JsonInput],
        *,
        name: str | None = None,
        public: bool = False,
    ) -> AsyncIterator[Reported]:
        """Report a data object while the context is open.

        Args:
            schema: `comm`, `ctxt`, or the catalogue address of a data schema.
            value: The first value.
            name: Name of the object, for people.
            public: Let every hyperty observe and read the object.

        Raises:
            SchemaError: The value does not obey the schema.
            ObjectError: As of `Hyperty.report`.
        """
        caller = await self._own_caller()
        report = partial(caller.report, schema, value, name=name, public=public)
        async with self.thread.enter(_in_trio(report)) as reported:
            yield Reported(reported, self.thread)


@asynccontextmanager
async def _in_trio(
    make: Callable[[*Ts], AbstractAsyncContextManager[T]], *args: *Ts
) -> AsyncIterator[T]:
    """Make a context and enter it, both in Trio."""
    async with make(*args) as value:
        yield value


@asynccontextmanager
async def _open_in_thread(
    context: AbstractAsyncContextManager[S], facade: Callable[[S, TrioThread], T]
) -> AsyncIterator[T]:
    """Keep a context of Trio open, in a thread of its own."""
    async with TrioThread.open() as thread, thread.enter(context) as value:
        yield facade(value, thread)


def open_node(
    domain: str | NodeConfig, *, network: Network | None = None, trace: Trace = None
) -> AbstractAsyncContextManager[Node]:
    """Run the message node of a domain while the context is open.

    Args:
        domain: As for `actors.open_node`; the other arguments, too.
        network: Network on which the node listens and dials.
        trace: Directory or tracer for the trace.

    If cancelled, the node still closes its sessions, and stops.

    Raises:
        Exception: As `actors.open_node`.
    """
    return _open_in_thread(embedded_node.open_node(domain, network=network, trace=trace), Node)


def open_runtime(
    domain: str | RuntimeConfig,
    name: str = "",
    *,
    node: str = "",
    network: Network | None = None,
    trace: Trace = None,
    store: PathInput | None = None,
    credentials: Credentials = NO_CREDENTIALS,
) -> AbstractAsyncContextManager[Runtime]:
    """Run a hyperty runtime while the context is open.

    Args:
        domain: As for `actors.open_runtime`; the other arguments, too.
        name: Name of the runtime in the domain.
        node: URL of the message node.
        network: Network on which the runtime dials and listens.
        trace: Directory or tracer for the trace.
        store: SQLite file for data objects.
        credentials: Source of the tokens for logins.

    If cancelled, the runtime still leaves in order.

    Raises:
        Exception: As `actors.open_runtime`.
    """
    if isinstance(domain, RuntimeConfig):
        return _open_in_thread(
            embedding.open_runtime(domain, network=network, trace=trace), Runtime
        )
    opening = embedding.open_runtime(
        domain,
        name,
        node=node,
        network=network,
        trace=trace,
        store=store,
        credentials=credentials,
    )
    return _open_in_thread(opening, Runtime)
