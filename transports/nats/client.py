"""A client that keeps one connection to a cluster of NATS servers, and reconnects."""

import itertools
import secrets
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from enum import Enum
from typing import Final, TypeAlias

import attrs
import trio

from specs.limits import engine
from specs.limits.protocol import MAX_FRAME_BYTES
from transports.errors import LinkError
from transports.nats import wire as wires
from transports.nats.connection import NatsConnection, Terms, cut, dial_server
from transports.socket_link import RawLink

Take: TypeAlias = Callable[[wires.Delivery | None], None]
"""Type of functions that process a message of a subscription; None: the connection was lost."""


class Missing(Enum):
    """Reasons why a request has no answer: certainly not sent, or outcome unknown."""

    UNSENT = "it was not sent"
    UNKNOWN = "no answer came"


_ANSWERS: Final = 1
"""Number of the subscription by which the client receives the answers to its requests."""


@attrs.frozen(slots=True)
class Request:
    """A message to a NATS subject that expects an answer.

    Attributes:
        subject: Subject of the message.
        payload: Payload of the message.
        head: Headers; empty: none.
    """

    subject: bytes
    payload: bytes = b""
    head: bytes = b""


class _Batch:
    """Group of requests that were sent together, with the answers received so far."""

    __slots__ = ("answers", "is_over", "missing")

    def __init__(self, count: int) -> None:
        self.answers: Final[list[wires.Delivery | None]] = [None] * count
        self.missing = count
        self.is_over: Final = trio.Event()

    def take(self, index: int, answer: wires.Delivery) -> None:
        """Store the answer to one request."""
        if index < len(self.answers) and self.answers[index] is None:
            self.answers[index] = answer
            self.missing -= 1
            if not self.missing:
                self.is_over.set()


class NatsClient:
    """Client of a cluster of NATS servers: publishes, subscribes and sends requests.

    After a lost connection, the client reconnects and renews its subscriptions. All data written
    until the writing task runs is sent in one system call, and so is data written while the socket
    is full, within a limit. Urgent requests overtake waiting data.

    Args:
        terms: Servers and credentials.
        moved: Called after a connection was made or lost.

    Attributes:
        inbox: Prefix of subjects to which only this client subscribes.
        problem: Half a sentence on why there is no connection, or on the last refusal of the
            server over the present one.
        unsure: Published messages of lost connections that may not have reached the server.
        refused: Number of refusals by servers; they do not say of which operation.
    """

    def __init__(self, terms: Terms, moved: Callable[[], None]) -> None:
        self.inbox: Final = b"_INBOX." + secrets.token_hex(11).encode()
        self.problem = "no connection yet"
        self.unsure = 0
        self.refused = 0
        self._terms: Final = terms
        self._moved: Final = moved
        self._connection: NatsConnection | None = None
        self._answers: Final = self.inbox + b".a."
        self._batches: Final = dict[int, _Batch]()
        self._numbers: Final = itertools.count(_ANSWERS + 1)
        self._subscriptions: Final = dict[int, tuple[bytes, Take]]()
        self._queue: Final = deque[bytes]()
        self.unsent = 0
        self._writer: Final = trio.lowlevel.ParkingLot()
        self._senders: Final = trio.lowlevel.ParkingLot()
        self._pings: Final = deque[tuple[trio.Event, int]]()
        self._published = 0
        self._confirmed = 0

    @property
    def server_id(self) -> str | None:
        """Id of the process of the connected server; None: no connection."""
        return None if self._connection is None else self._connection.server_id

    # --- the connection -------------------------------------------------------------------------

    async def run(self) -> None:
        """Connect, and reconnect, until cancelled."""
        pause = engine.NATS_RETRY
        for server in itertools.cycle(self._terms.servers):
            try:
                connection = await dial_server(self._terms, server)
            except wires.NatsError as exc:
                self._take_loss(str(exc))
            else:
                pause = engine.NATS_RETRY
                await self._serve(connection)
            await trio.sleep(pause)
            if server is self._terms.servers[-1]:
                pause = min(2 * pause, engine.NATS_RETRY_MOST)

    async def _serve(self, connection: NatsConnection) -> None:
        self._connection = connection
        self.problem = ""
        self._write_first([wires.subscription(_ANSWERS, self._answers + b"*")])
        for number, (subject, _) in self._subscriptions.items():
            self._write([wires.subscription(number, subject)])
        self._moved()
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._write_queued, connection, nursery.cancel_scope)
                nursery.start_soon(self._watch_over, connection, nursery.cancel_scope)
                await self._read(connection)
                nursery.cancel_scope.cancel()
        finally:
            self._connection = None
            with trio.CancelScope(shield=True):
                await trio.aclose_forcefully(connection.link)
            self._take_loss(self.problem or "the connection was lost")

    async def _read(self, connection: NatsConnection) -> None:
        """Process the data from the server until the connection ends."""
        link, wire = connection.link, connection.wire
        try:
            self._take_all(wire.receive(b""))
            while True:
                self._take_all(wire.receive(await link.receive()))
        except wires.NatsError as exc:
            self.problem = str(exc)
        except LinkError:
            pass

    async def _write_queued(self, connection: NatsConnection, scope: trio.CancelScope) -> None:
        link = connection.link
        try:
            while True:
                while not self._write_now(link):
                    await link.send_many(())
                await self._writer.park()
        except LinkError:
            scope.cancel()

    def _write_now(self, link: RawLink) -> bool:
        """Write as much as the system takes now; return False if the link must be waited for.

        A full link gets at most one frame, so that urgent data can overtake the rest.
        """
        is_written = link.is_clear
        while self._queue and is_written:
            data = self._take_next()
            is_written = link.write_now(cut(data))
            self.unsent -= len(data)
        self._senders.unpark_all()
        return is_written

    def _take_next(self) -> bytes:
        """Remove and return the next data: one publication, or as many as fit in a frame."""
        taken: list[bytes] = []
        size = 0
        while self._queue and (not taken or size + len(self._queue[0]) <= MAX_FRAME_BYTES):
            size += len(self._queue[0])
            taken.append(self._queue.popleft())
        return b"".join(taken)

    async def _watch_over(self, connection: NatsConnection, scope: trio.CancelScope) -> None:
        """Send pings, and end the connection if the server does not answer in time."""
        while trio.current_time() < connection.link.heard_at + engine.ENGINE_TIMEOUT:
            self._ping()
            await trio.sleep(engine.NATS_PING)
        scope.cancel()

    def _take_loss(self, reason: str) -> None:
        """Notify all waiting tasks and subscriptions that the connection is lost."""
        self.problem = reason
        self.unsure += self._published - self._confirmed
        self._published = self._confirmed = 0
        self._queue.clear()
        self.unsent = 0
        self._senders.unpark_all()
        for ponged, _ in self._pings:
            ponged.set()
        self._pings.clear()
        for batch in self._batches.values():
            batch.is_over.set()
        for _, take in tuple(self._subscriptions.values()):
            take(None)
        self._moved()

    # --- in -------------------------------------------------------------------------------------

    def _take_all(self, received: Iterator[wires.Received]) -> None:
        for each in received:
            match each:
                case wires.Delivery(subscription=number):
                    if number == _ANSWERS:
                        self._take_answer(each)
                    elif number in self._subscriptions:
                        self._subscriptions[number][1](each)
                case wires.Line(b"PING"):
                    self._write([wires.PONG])
                case wires.Line(b"PONG"):
                    self._take_pong()
                case wires.Line(b"-ERR", text):
                    self.problem = f"the server says: {text.lower()}"
                    self.refused += 1
                    self._moved()
                case _:  # servers of its cluster come or go
                    pass

    def _take_pong(self) -> None:
        if self._pings:
            ponged, self._confirmed = self._pings.popleft()
            ponged.set()

    def _take_answer(self, answer: wires.Delivery) -> None:
        number, _, index = answer.subject.removeprefix(self._answers).partition(b"-")
        with suppress(ValueError):
            batch = self._batches.get(int(number))
            if batch is not None:
                batch.take(int(index), answer)

    # --- out ------------------------------------------------------------------------------------

    def _write(self, pieces: Iterable[bytes]) -> None:
        """Add protocol lines to the end of the queue of data to send."""
        if self._connection is not None:
            for piece in pieces:
                self._queue.append(piece)
                self.unsent += len(piece)
            self._writer.unpark()

    def _write_first(self, pieces: Iterable[bytes]) -> None:
        """Put protocol lines before all waiting data, and send as much as possible at once."""
        if self._connection is not None:
            first = [*pieces]
            self._queue.extendleft(reversed(first))
            self.unsent += sum(map(len, first))
            self._write_now(self._connection.link)
            self._writer.unpark()

    def _ping(self) -> trio.Event:
        """Send a ping, and return the event that its answer sets."""
        ponged = trio.Event()
        self._pings.append((ponged, self._published))
        self._write([wires.PING])
        return ponged

    async def _has_space(self) -> bool:
        """Wait, with a timeout, for space in the queue of data to send; return whether it has."""
        if self.unsent > engine.NATS_UNSENT:
            with trio.move_on_after(engine.ENGINE_TIMEOUT):
                while True:
                    await self._senders.park()
                    if self.unsent <= engine.NATS_UNSENT:
                        break
        return self.unsent <= engine.NATS_UNSENT and self._connection is not None

    async def flush(self) -> None:
        """Wait until the server has processed all sent messages; do not wait without a connection.

        If cancelled, the server may not have processed them.
        """
        if self._connection is not None:
            ponged = self._ping()
            with trio.move_on_after(engine.ENGINE_TIMEOUT):
                await ponged.wait()

    def subscribe(self, subject: bytes, take: Take) -> int:
        """Subscribe to a subject until `unsubscribe`, also after reconnects; return the number."""
        number = next(self._numbers)
        self._subscriptions[number] = subject, take
        self._write([wires.subscription(number, subject)])
        return number

    def unsubscribe(self, number: int) -> None:
        """End a subscription."""
        del self._subscriptions[number]
        self._write([wires.unsubscription(number)])

    async def publish(self, subject: bytes, payloads: Sequence[bytes]) -> None:
        """Publish messages.

        If cancelled, none was published.

        Raises:
            NatsError: There is no connection, or the server accepts nothing.
        """
        await trio.lowlevel.checkpoint()
        if not await self._has_space():
            raise wires.NatsError(self.problem or "it takes nothing")
        self._published += len(payloads)
        self._write(wires.publication(subject, payload) for payload in payloads)

    def tell(self, subject: bytes, payload: bytes = b"", reply: bytes = b"") -> None:
        """Publish a small message without waiting; without a connection it is lost.

        Args:
            subject: Subject of the message.
            payload: Payload of the message.
            reply: Subject for answers; empty: no answer.
        """
        self._write([wires.publication(subject, payload, reply)])

    async def ask_all(self, requests: Sequence[Request]) -> Sequence[wires.Delivery | Missing]:
        """Send all requests at once, within limits, and return the answers in order.

        If cancelled, each request may have arrived or not.
        """
        await trio.lowlevel.checkpoint()
        answers: list[wires.Delivery | Missing] = []
        connection = self._connection
        while len(answers) < len(requests):
            part = _part(requests, len(answers))
            is_sent = await self._has_space() and self._connection is connection
            if is_sent:
                answers += await self._ask(part, self._write)
            else:
                answers += [Missing.UNSENT] * len(part)
        return answers

    async def ask_first(self, requests: Sequence[Request]) -> Sequence[wires.Delivery | Missing]:
        """Send a few small requests before all waiting data.

        If cancelled, each request may have arrived or not.
        """
        await trio.lowlevel.checkpoint()
        if self._connection is None:
            return [Missing.UNSENT] * len(requests)
        return await self._ask(requests, self._write_first)

    async def ask(self, request: Request) -> wires.Delivery:
        """Send one request, and return its answer.

        If cancelled, the request may have arrived or not.

        Raises:
            NatsError: There is no answer.
        """
        (answer,) = await self.ask_all((request,))
        if isinstance(answer, Missing):
            raise wires.NatsError(self.problem or "no answer came in time")
        return answer

    async def _ask(
        self, requests: Sequence[Request], write: Callable[[Iterable[bytes]], None]
    ) -> list[wires.Delivery | Missing]:
        number, batch = next(self._numbers), _Batch(len(requests))
        self._batches[number] = batch
        reply = b"%b%d-" % (self._answers, number)
        try:
            write(
                wires.publication(
                    request.subject, request.payload, b"%b%d" % (reply, index), request.head
                )
                for index, request in enumerate(requests)
            )
            with trio.move_on_after(engine.ENGINE_TIMEOUT):
                await batch.is_over.wait()
        finally:
            del self._batches[number]
        return [Missing.UNKNOWN if answer is None else answer for answer in batch.answers]


def _part(requests: Sequence[Request], start: int) -> Sequence[Request]:
    """Return the next requests that fit into the limits of unanswered requests."""
    size, end = 0, start
    for request in requests[start : start + engine.NATS_PIPELINE]:
        size += len(request.payload)
        if end > start and size > engine.NATS_PIPELINE_BYTES:
            break
        end += 1
    return requests[start:end]
