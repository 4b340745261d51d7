"""Transfers of large bodies of a hyperty: the active end, and the passive end (P2P-21).

Each chunk travels in a request of its own, whose answer acknowledges the chunk. So buses
route, judge and refuse chunks like all requests. At most `CHUNK_WINDOW` chunks of a transfer are
unacknowledged.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import Final, TypeAlias, TypeVar

import attrs
import trio

from actors.runtime.objects.participant import Participant
from actors.runtime.sync.output import code_in_use
from fsm.bus import chunks as chunking
from specs.bodies import chunk as bodies
from specs.errors import BadMessageError, ProtoflyError
from specs.identity import IDENTITY
from specs.jsonvalue import JsonObject
from specs.limits.protocol import GOODBYE_TIMEOUT
from specs.limits.transfer import (
    BESIDE_TEXT,
    CHUNK_WINDOW,
    TRANSFER_PATIENCE,
    TRANSFER_RETRY,
)
from specs.message import Message, reason_in, refuse, reply_to
from specs.reply_code import LAST_SUCCESS, Code
from transports.bodies import read_object, write_body
from transports.codec import read_large

_RETRY_AFTER: Final = "retryAfter"

_BESIDE: Final = ("p2p", "resource", "auth")
"""Entries of a body that routers and policies read; each chunk has copies (POL-13)."""

B = TypeVar("B", bound=attrs.AttrsInstance)


def _read_entry(body: JsonObject, key: str, kind: type[B]) -> B:
    """Read an entry of a body.

    Raises:
        BadMessageError: The entry is missing or malformed.
    """
    content = body.get(key)
    if not isinstance(content, dict):
        raise BadMessageError(f"{key} must be an object")
    return read_object(content, kind, key)


def _entries_beside(message: Message) -> JsonObject:
    """Return the entries of a body that each of its chunks has, too.

    Raises:
        BadMessageError: 413: an entry is too large for this.
    """
    beside: JsonObject = {}
    for key in _BESIDE:
        value = message.body.get(key)
        if value is None:
            continue
        if not isinstance(value, str | bool) or len(str(value)) > BESIDE_TEXT:
            why = f"{key} of a body in chunks is a text of at most {BESIDE_TEXT} characters"
            raise BadMessageError(why, Code.TOO_LARGE)
        beside[key] = value
    return beside


_Body: TypeAlias = bodies.TransferBegun | bodies.Chunk | bodies.ChunkWanted | bodies.TransferEnded


def _write_step(step: bodies.ChunkStep, content: _Body) -> JsonObject:
    return {bodies.CHUNK: {bodies.STEP: step.value, **write_body(content)}}


def _step_message(
    participant: Participant, message: Message, step: bodies.ChunkStep, content: _Body
) -> Message:
    """Return a request about a transfer, with addresses and type of its message."""
    body = {**_entries_beside(message), **_write_step(step, content)}
    return Message(
        participant.ids.next(participant.url), message.type, participant.url, message.to, body
    )


# ---- the active end


@asynccontextmanager
async def send_ahead(
    participant: Participant, message: Message, body: bytes
) -> AsyncIterator[JsonObject]:
    """Send a body to a hyperty in chunks, on entering; the block then sends its message.

    Args:
        participant: The sending hyperty.
        message: The message.
        body: The JSON of its body.

    Yields:
        The body that replaces the original body of the message.

    If cancelled, also in the context, the receiver is told to forget the body (P2P-22).

    Raises:
        BadMessageError: On entering: the receiver, or a router on the way, refuses.
        ActorStoppedError: The runtime has closed.
    """
    upload = _Upload(participant, message, body)
    async with participant.runtime.transfers.sending.of(message.to), upload.until_over():
        await upload.send()
    async with upload.until_over():
        yield {
            **_entries_beside(message),
            bodies.CHUNKS: write_body(chunking.chunk_entry(body, upload.transfer)),
        }


class _Upload:
    """One body on its way to a receiver.

    Attributes:
        transfer: Number of the transfer; 0: it has not begun, or has ended.
    """

    def __init__(self, participant: Participant, message: Message, body: bytes) -> None:
        self.transfer = 0
        self._participant = participant
        self._message = message
        self._body = body

    async def send(self) -> None:
        """Begin the transfer, once the receiver has room for it, and send all chunks."""
        deadline = trio.current_time() + TRANSFER_PATIENCE
        # A message id serves as the number of the transfer, as ids are unique.
        self.transfer = self._participant.ids.next(self._participant.url)
        beginning = bodies.TransferBegun(self.transfer, len(self._body))
        answer = await self._begin(beginning)
        # A receiver without memory at present answers with `retryAfter`.
        while (
            answer.code == Code.UNAVAILABLE
            and _RETRY_AFTER in answer.body
            and trio.current_time() < deadline
        ):
            await trio.sleep(TRANSFER_RETRY)
            answer = await self._begin(beginning)
        if answer.code > LAST_SUCCESS:
            self.transfer = 0
        _check(answer)
        windows = partial(self._participant.window, self._message.to)
        await _in_window(range(chunking.chunk_count(len(self._body))), windows, self._give)

    async def _begin(self, begun: bodies.TransferBegun) -> Message:
        async with self._participant.window(self._message.to):
            return await self._ask(bodies.ChunkStep.BEGIN, begun)

    async def _give(self, index: int) -> None:
        chunk = chunking.chunk_of(self._body, self.transfer, index)
        _check(await self._ask(bodies.ChunkStep.GIVE, chunk))

    async def _ask(
        self, step: bodies.ChunkStep, content: bodies.TransferBegun | bodies.Chunk
    ) -> Message:
        return await self._participant.port.request(
            _step_message(self._participant, self._message, step, content)
        )

    @asynccontextmanager
    async def until_over(self) -> AsyncIterator[None]:
        """Ask the receiver to forget the body if the context is left by an error."""
        is_over = False
        try:
            yield
            is_over = True
        finally:
            if not is_over and self.transfer:
                with trio.move_on_after(GOODBYE_TIMEOUT, shield=True):
                    await _end(self._participant, self._message, self.transfer)


async def fetch_answer(participant: Participant, request: Message, answer: Message) -> Message:
    """Read the body of an answer in chunks; return the answer with the body, or a refusal.

    Args:
        participant: The hyperty that has sent the request.
        request: The request.
        answer: The answer, with the entry `chunks` instead of its body.

    If cancelled, the answering end is told to forget the body (P2P-22).

    Raises:
        ActorStoppedError: The runtime has closed.
    """
    try:
        entry = _read_entry(answer.body, bodies.CHUNKS, bodies.ChunkedBody)
        body = await _fetch_body(participant, request, entry)
        return _with_body(answer, read_large(body))
    except BadMessageError as exc:
        return refuse(request, exc.code, f"the answer has not come whole: {exc.reason}")


async def _fetch_body(
    participant: Participant, request: Message, entry: bodies.ChunkedBody
) -> bytes:
    count, is_over = chunking.chunk_count(entry.size), False
    chunks = [b""] * (count if entry.size <= participant.runtime.transfers.limit else 0)
    spent, received = 0.0, 0

    @asynccontextmanager
    async def windows() -> AsyncIterator[None]:
        async with (
            participant.runtime.transfers.reading.of(request.to),
            participant.window(request.to),
        ):
            yield

    async def read(index: int) -> None:
        nonlocal spent, received
        request_body, asked_at = bodies.ChunkWanted(entry.transfer, index), trio.current_time()
        answer = await participant.port.request(
            _step_message(participant, request, bodies.ChunkStep.READ, request_body)
        )
        _check(answer)
        spent, received = spent + trio.current_time() - asked_at, received + 1
        if spent > chunking.latest(0.0, received):
            raise BadMessageError("it comes too slowly", Code.TIMEOUT)
        chunk = _read_entry(answer.body, bodies.CHUNK, bodies.Chunk)
        if (chunk.transfer, chunk.index, chunk.size) != (entry.transfer, index, entry.size):
            raise BadMessageError(f"another chunk came than {index}")
        chunks[index] = chunking.data_in(chunk)

    try:
        if not chunks:
            raise chunking.too_large(participant.runtime.transfers.limit)
        await _in_window(range(count), windows, read)
        is_over = True
    finally:
        if not is_over:
            with trio.move_on_after(GOODBYE_TIMEOUT, shield=True):
                await _end(participant, request, entry.transfer)
    return chunking.join_chunks(chunks, entry)


async def _in_window(
    indices: Iterable[int],
    windows: Callable[[], AbstractAsyncContextManager[None]],
    work: Callable[[int], Awaitable[None]],
) -> None:
    """Run work for each chunk, `CHUNK_WINDOW` at a time and in order; stop at the first error.

    Args:
        indices: Numbers of the chunks.
        windows: Returns a context that waits until one more request may be open.
        work: Requests or sends one chunk.
    """
    remaining, errors = iter(indices), list[ProtoflyError]()

    async def run() -> None:
        try:
            index: int | None = 0
            while index is not None:
                async with windows():
                    # No other task runs until the bus has the request: chunks keep their order.
                    index = next(remaining, None)
                    if index is not None:
                        await work(index)
        except ProtoflyError as exc:
            errors.append(exc)
            nursery.cancel_scope.cancel()

    async with trio.open_nursery() as nursery:
        for _ in range(CHUNK_WINDOW):
            nursery.start_soon(run)
    if errors:
        raise errors[0]


def _check(answer: Message) -> None:
    """Raise BadMessageError for a refusal, and for a receiver that does not support chunks."""
    if answer.code > LAST_SUCCESS:
        raise BadMessageError(reason_in(answer), code_in_use(answer.code))
    if bodies.CHUNK not in answer.body:
        raise BadMessageError("the receiver takes no bodies in chunks", Code.TOO_LARGE)


async def _end(participant: Participant, message: Message, transfer: int) -> None:
    """Ask the other end to forget a body, without awaiting the answer."""
    await participant.port.post(
        _step_message(participant, message, bodies.ChunkStep.END, bodies.TransferEnded(transfer))
    )


def _with_body(message: Message, body: JsonObject) -> Message:
    """Return a message with its assembled body, and the entries that routers have added.

    Entries that routers and policies read are not taken from the chunks.
    """
    added = {key: value for key, value in message.body.items() if key != bodies.CHUNKS}
    for key in (IDENTITY, "via", *_BESIDE):
        body.pop(key, None)
    return attrs.evolve(message, body={**body, **added})


# ---- the passive end


class KeptBodies:
    """The arriving bodies, and the bodies of unread answers, of one life of a hyperty."""

    def __init__(self, participant: Participant) -> None:
        self._arriving = chunking.AssembliesCore(participant.runtime.transfers.arriving)
        self._held = chunking.HeldBodiesCore(participant.runtime.transfers.held)

    def answer(self, request: Message) -> Message:
        """Handle a request about a chunk; return its answer.

        Args:
            request: A request whose body has the entry `chunk`.
        """
        try:
            return reply_to(request, Code.OK, self._do_step(request))
        except BadMessageError as exc:
            later = TRANSFER_RETRY if exc.code is Code.UNAVAILABLE else None
            return refuse(request, exc.code, exc.reason, later)

    def _do_step(self, request: Message) -> JsonObject:
        content, now = request.body[bodies.CHUNK], trio.current_time()
        step = content.get(bodies.STEP) if isinstance(content, dict) else None
        match step:
            case bodies.ChunkStep.BEGIN:
                beginning = _read_entry(request.body, bodies.CHUNK, bodies.TransferBegun)
                self._arriving.begin(request, beginning, now)
                return _write_step(bodies.ChunkStep.BEGIN, beginning)
            case bodies.ChunkStep.GIVE:
                chunk = _read_entry(request.body, bodies.CHUNK, bodies.Chunk)
                self._arriving.take(request, chunk, now)
                return _write_step(
                    bodies.ChunkStep.GIVE, bodies.ChunkWanted(chunk.transfer, chunk.index)
                )
            case bodies.ChunkStep.READ:
                wanted = _read_entry(request.body, bodies.CHUNK, bodies.ChunkWanted)
                return _write_step(bodies.ChunkStep.READ, self._held.read(request, wanted, now))
            case bodies.ChunkStep.END:
                ending = _read_entry(request.body, bodies.CHUNK, bodies.TransferEnded)
                self._arriving.end(request.from_, ending.transfer)
                self._held.end(request.from_, ending.transfer)
                return _write_step(bodies.ChunkStep.END, ending)
            case _:
                raise BadMessageError("a chunk without one of its steps")

    def whole(self, message: Message) -> tuple[Message, chunking.WholeBody]:
        """Return a message with its arrived body, and the memory to `release` afterwards.

        Args:
            message: A message whose body has the entry `chunks`.

        Raises:
            BadMessageError: The body is incomplete, was altered, or is no JSON object.
        """
        whole = self._arriving.whole(
            message, _read_entry(message.body, bodies.CHUNKS, bodies.ChunkedBody)
        )
        try:
            return _with_body(message, read_large(whole.body)), whole
        except BadMessageError:
            self.release(whole)
            raise

    def release(self, whole: chunking.WholeBody) -> None:
        """Free the memory of a body whose message was handled."""
        self._arriving.release(whole)

    def hold(self, request: Message, answer: Message, body: bytes) -> Message:
        """Hold the body of an answer until it is read; return the answer with a short body.

        Args:
            request: The request that is answered.
            answer: The answer.
            body: The JSON of its body.

        Raises:
            BadMessageError: 413: the body is too large; 503: there is no room for the body now.
        """
        entry = self._held.hold(request, body, trio.current_time())
        return attrs.evolve(answer, body={"code": answer.code, bodies.CHUNKS: write_body(entry)})

    def deadline(self) -> float:
        """Return when `tick` is due."""
        return min(self._arriving.deadline(), self._held.deadline())

    def tick(self) -> None:
        """Forget the bodies whose peers are silent, or take too long."""
        now = trio.current_time()
        self._arriving.tick(now)
        self._held.tick(now)

    def clear(self) -> None:
        """Forget all bodies; the memory of handled messages is released after their handlers."""
        self._arriving.clear()
        self._held.clear()
