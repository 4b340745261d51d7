"""Transfers of large message bodies in chunks: the runtime that stores the body (P2P-21, P2P-22).

The requester controls the transfers in both directions. It uploads the body of a large request in
further requests, one for each chunk. The responder assembles the chunks and then handles the
original request with the whole body. The responder stores the body of a large answer, and the
requester downloads it chunk by chunk. Each uploaded chunk must arrive once and in order: any other
chunk ends its transfer, and the responder refuses it.

The number of received bytes shows whether an upload is complete, so a transfer needs no other
state. One `TransferBudget` counts the memory of all transfers of a runtime.
"""

import math
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections import Counter
from collections.abc import Sequence
from hashlib import sha256
from typing import Final, TypeAlias

import attrs

from fsm.limits.shares import Share, peer_of
from specs.bodies.chunk import Chunk, ChunkedBody, ChunkWanted, TransferBegun
from specs.errors import BadMessageError
from specs.limits import transfer as limits
from specs.message import Message
from specs.reply_code import Code

# ---- chunks of a body


def chunk_count(size: int) -> int:
    """Return the number of chunks into which a body of `size` bytes is divided."""
    return -(-size // limits.CHUNK_BYTES)


def chunk_size(size: int, index: int) -> int:
    """Return the number of bytes of a chunk; all chunks except the last have the same size.

    Args:
        size: Bytes of the body.
        index: Index of the chunk.
    """
    return min(limits.CHUNK_BYTES, size - index * limits.CHUNK_BYTES)


def chunk_of(body: bytes | bytearray, transfer: int, index: int) -> Chunk:
    """Return a chunk of a body, encoded in base64 for a message.

    Args:
        body: The body.
        transfer: Number of the transfer.
        index: Index of the chunk.
    """
    start = index * limits.CHUNK_BYTES
    piece = body[start : start + limits.CHUNK_BYTES]
    texts = tuple(
        b64encode(piece[at : at + limits.CHUNK_TEXT]).decode()
        for at in range(0, len(piece), limits.CHUNK_TEXT)
    )
    return Chunk(transfer, index, len(body), texts)


def chunk_entry(body: bytes, transfer: int) -> ChunkedBody:
    """Return the description (size and digest) that a message carries in place of a large body.

    Args:
        body: The body.
        transfer: Number of the transfer.
    """
    return ChunkedBody(transfer, len(body), sha256(body).hexdigest())


def data_in(chunk: Chunk) -> bytes:
    """Return the decoded bytes of a chunk.

    Raises:
        BadMessageError: The data is not base64, or has not the size of the chunk with this index.
    """
    try:
        data = b"".join(b64decode(text, validate=True) for text in chunk.data)
    except (Base64Error, ValueError) as exc:
        raise BadMessageError(f"chunk {chunk.index} is not base64") from exc
    if len(data) != chunk_size(chunk.size, chunk.index):
        raise BadMessageError(f"chunk {chunk.index} has not the bytes of its place")
    return data


def join_chunks(chunks: Sequence[bytes], entry: ChunkedBody) -> bytes:
    """Return the body of an answer from all its chunks.

    Args:
        chunks: The bytes of each chunk, in order.
        entry: The size and digest that the answer carries in place of the body.

    Raises:
        BadMessageError: 400: the body was altered.
    """
    body = b"".join(chunks)
    if not _has_digest(body, entry):
        raise BadMessageError(_ALTERED)
    return body


_ALTERED: Final = "the body was altered on its way: its digest differs"


def _has_digest(body: bytes | bytearray, entry: ChunkedBody) -> bool:
    return sha256(body).hexdigest() == entry.sha256


def too_large(limit: int) -> BadMessageError:
    """Return the error (413) that refuses a body of more than `limit` bytes."""
    why = f"the body is larger than {limit} bytes, the limit of this runtime"
    return BadMessageError(why, Code.TOO_LARGE)


def latest(begun: float, chunks: int, silence: float = limits.TRANSFER_SILENCE) -> float:
    """Return the deadline for the next chunk of a transfer.

    Args:
        begun: Time at which the transfer began.
        chunks: Number of chunks so far.
        silence: Seconds for which the other runtime may be silent.
    """
    return begun + min(limits.TRANSFER_TIMEOUT, silence + chunks * limits.CHUNK_SECONDS)


# ---- memory


_FULL: Final = Code.UNAVAILABLE
_LATER: Final = "other large bodies come first; try again later"


class TransferBudget:
    """Limits on the memory and number of the transfers of one runtime, for each peer and in all.

    A peer is the runtime that sent the requests of a transfer, identified by its messages. All
    peers without an identity share the limits of a single peer.

    Attributes:
        limit: Largest number of bytes of one body.
        used: Number of bytes of all transfers.
    """

    def __init__(self, limit: int) -> None:
        self.limit: Final = limit
        self.used = 0
        self._shares: dict[str, Share] = {}
        self._arriving: Counter[str] = Counter()
        self._turns: dict[str, float] = {}

    def enter(self, peer: str, now: float) -> None:
        """Count a new transfer whose chunks have not arrived yet.

        Peers that were refused form a queue and are admitted in its order, so a peer that keeps
        beginning transfers does not exclude the others.

        Args:
            peer: Name of the peer.

        Raises:
            BadMessageError: 503: too many transfers have chunks that have not arrived yet.
        """
        if self._arriving[peer] >= limits.PEER_ARRIVING:
            raise BadMessageError(_LATER, _FULL)
        self._turns = {turn: until for turn, until in self._turns.items() if until > now}
        ahead = len(self._turns)
        if peer in self._turns:
            ahead = list(self._turns).index(peer)
        if self._arriving.total() + ahead >= limits.ARRIVING:
            if peer in self._turns or len(self._turns) < limits.ARRIVING_TURNS:
                self._turns[peer] = now + limits.ARRIVING_TURN
            raise BadMessageError(_LATER, _FULL)
        self._turns.pop(peer, None)
        self._arriving[peer] += 1

    def leave(self, peer: str) -> None:
        """Note that a transfer has all its chunks or has ended, so that another may begin.

        Args:
            peer: Name of the peer.
        """
        self._arriving[peer] -= 1
        if not self._arriving[peer]:
            del self._arriving[peer]

    def take(self, peer: str, size: int) -> None:
        """Reserve memory for the body of a transfer.

        Args:
            peer: Name of the peer.
            size: Bytes of the body.

        Raises:
            BadMessageError: 413: the body is over the limit; 503: too little memory is free now.
        """
        if size > self.limit:
            raise too_large(self.limit)
        share = self._shares.get(peer) or Share()
        is_full = (
            share.count >= limits.PEER_TRANSFERS
            or share.size + size > limits.PEER_BODIES * self.limit
        )
        if is_full or self.used + size > limits.ALL_BODIES * self.limit:
            holder = "your runtime" if is_full else "all runtimes"
            why = f"the large bodies of {holder} take all room there is for them; try again later"
            raise BadMessageError(why, _FULL)
        share.add(1, size)
        self.used += size
        self._shares[peer] = share

    def give_back(self, peer: str, size: int) -> None:
        """Release the memory that was reserved for the body of a transfer.

        Args:
            peer: Name of the peer.
            size: Bytes of the body.
        """
        share = self._shares[peer]
        share.add(-1, -size)
        self.used -= size
        if not share.count:
            del self._shares[peer]


_Key: TypeAlias = tuple[str, int]
"""Address of the requester, and the number of the transfer."""


@attrs.define(eq=False)
class _Transfer:
    """The state of a transfer, with its body in memory.

    Attributes:
        begun: Time at which the transfer began.
        body: The bytes that were received so far, or the whole body of an answer.
        until: Time at which the transfer fails if no further request for it comes.
        missing: Indices of the chunks of an answer that the requester has not read yet.
        is_arriving: Whether further chunks of a request must arrive.
    """

    peer: str
    size: int
    begun: float
    body: bytearray = attrs.field(repr=False)
    until: float = math.inf
    missing: set[int] = attrs.field(factory=set)
    is_arriving: bool = False


class _Transfers:
    """The transfers of one hyperty in one direction, with their deadlines and memory budget."""

    _patience: float

    def __init__(self, budget: TransferBudget) -> None:
        self._budget = budget
        self._open: dict[_Key, _Transfer] = {}

    def __len__(self) -> int:
        """Return the number of open transfers, whose bodies are in memory."""
        return len(self._open)

    def _begin(self, key: _Key, transfer: _Transfer, now: float) -> None:
        self._budget.take(transfer.peer, transfer.size)
        self._restart_silence(transfer, now, 0)
        self._open[key] = transfer

    def _restart_silence(self, transfer: _Transfer, now: float, chunks: int) -> None:
        """Restart the time-out of a transfer, of which a number of chunks have been transferred."""
        slow = latest(transfer.begun, chunks, self._patience)
        transfer.until = min(slow, now + self._patience)

    def end(self, requester: str, transfer: int) -> None:
        """End a transfer and free the memory of its body. Idempotent.

        Args:
            requester: Address of the requester.
            transfer: Number of the transfer.
        """
        ended = self._open.pop((requester, transfer), None)
        if ended is None:
            return
        self._budget.give_back(ended.peer, ended.size)
        if ended.is_arriving:
            self._budget.leave(ended.peer)

    def deadline(self) -> float:
        """Return the time at which `tick` must be called next."""
        return min((each.until for each in self._open.values()), default=math.inf)

    def tick(self, now: float) -> None:
        """End the transfers whose deadline is over: the peer is silent or too slow."""
        for requester, transfer in [key for key, each in self._open.items() if each.until <= now]:
            self.end(requester, transfer)

    def clear(self) -> None:
        """End all transfers."""
        for requester, transfer in list(self._open):
            self.end(requester, transfer)


@attrs.frozen
class WholeBody:
    """The complete body of a request, which takes memory until the request has been handled.

    Attributes:
        peer: Name of the peer for which `TransferBudget` counts the memory.
        body: The bytes of the body.
    """

    peer: str
    body: bytearray = attrs.field(repr=False)


class AssembliesCore(_Transfers):
    """Assembles the large bodies of the requests that arrive at one hyperty from their chunks."""

    _patience = limits.TRANSFER_SILENCE

    def begin(self, message: Message, begun: TransferBegun, now: float) -> None:
        """Begin to receive the body of a request.

        Args:
            message: The request that begins the transfer.
            begun: Number of the transfer, and size of the body.

        Raises:
            BadMessageError: 409: this requester has begun a transfer with the same number, which
                now ends; 413: the body is over the limit; 503: too little memory is free now.
        """
        key, peer = (message.from_, begun.transfer), peer_of(message)
        if key in self._open:
            self.end(*key)
            raise BadMessageError(f"transfer {begun.transfer} has begun before", Code.CONFLICT)
        if begun.size > self._budget.limit:
            raise too_large(self._budget.limit)
        self._budget.enter(peer, now)
        transfer = _Transfer(peer, begun.size, now, bytearray(), is_arriving=True)
        try:
            self._begin(key, transfer, now)
        except BadMessageError:
            self._budget.leave(peer)
            raise

    def take(self, message: Message, chunk: Chunk, now: float) -> None:
        """Append the next chunk to the body of its transfer.

        Args:
            message: The request that carries the chunk.
            chunk: The chunk.

        Raises:
            BadMessageError: The transfer fails. 400: the data of the chunk is invalid; 409: the
                chunk is not the next chunk of a transfer.
        """
        key = message.from_, chunk.transfer
        try:
            data, transfer = data_in(chunk), self._next(key, chunk)
        except BadMessageError:
            self.end(*key)
            raise
        transfer.body += data
        self._restart_silence(transfer, now, chunk.index + 1)
        if len(transfer.body) == transfer.size:
            # The next message of the requester is the one with this body.
            transfer.until = now + self._patience
            transfer.is_arriving = False
            self._budget.leave(transfer.peer)

    def _next(self, key: _Key, chunk: Chunk) -> _Transfer:
        """Return the transfer to which a chunk belongs; raise 409 if another chunk is expected."""
        transfer = self._open.get(key)
        is_next = transfer is not None and chunk.index * limits.CHUNK_BYTES == len(transfer.body)
        if transfer is None or not is_next or chunk.size != transfer.size:
            why = f"chunk {chunk.index} is not the next one of transfer {chunk.transfer}"
            raise BadMessageError(why, Code.CONFLICT)
        return transfer

    def whole(self, message: Message, said: ChunkedBody) -> WholeBody:
        """Return the body of a request and end its transfer; call `release` after handling it.

        Args:
            message: The request that follows the chunks.
            said: The size and digest that the request carries in place of its body.

        Raises:
            BadMessageError: 409: chunks are missing; 400: the body was altered.
        """
        key = message.from_, said.transfer
        transfer = self._open.get(key)
        if transfer is None or not len(transfer.body) == transfer.size == said.size:
            self.end(*key)
            why = f"chunks of transfer {said.transfer} are missing"
            raise BadMessageError(why, Code.CONFLICT)
        if not _has_digest(transfer.body, said):
            self.end(*key)
            raise BadMessageError(_ALTERED)
        del self._open[key]
        return WholeBody(transfer.peer, transfer.body)

    def release(self, whole: WholeBody) -> None:
        """Free the memory of a body whose request has been handled."""
        self._budget.give_back(whole.peer, len(whole.body))


class HeldBodiesCore(_Transfers):
    """Stores the large bodies of one hyperty's answers until the requesters have read them."""

    _patience = limits.HELD_SILENCE

    def hold(self, request: Message, body: bytes, now: float) -> ChunkedBody:
        """Store the body of an answer until it was read; return the size and digest to send.

        Args:
            request: The request that is answered.
            body: The body of the answer.

        Raises:
            BadMessageError: 413: the body is over the limit; 503: too little memory is free now.
        """
        missing = set(range(chunk_count(len(body))))
        # A requester that repeats an id wants the newer answer.
        self.end(request.from_, request.id)
        transfer = _Transfer(peer_of(request), len(body), now, bytearray(body), missing=missing)
        self._begin((request.from_, request.id), transfer, now)
        return chunk_entry(body, request.id)

    def read(self, message: Message, wanted: ChunkWanted, now: float) -> Chunk:
        """Return a chunk of a stored body; the last unread chunk ends the transfer.

        Args:
            message: The request that asks for the chunk.
            wanted: Number of the transfer, and index of the chunk.

        Raises:
            BadMessageError: 410: the body is not stored (any more); 400: it has no such chunk.
        """
        transfer = self._open.get((message.from_, wanted.transfer))
        if transfer is None:
            why = f"the body of answer {wanted.transfer} is not held any more"
            raise BadMessageError(why, Code.GONE)
        if wanted.index >= chunk_count(transfer.size):
            raise BadMessageError(f"the body has no chunk {wanted.index}")
        transfer.missing.discard(wanted.index)
        self._restart_silence(transfer, now, chunk_count(transfer.size) - len(transfer.missing))
        if not transfer.missing:
            self.end(message.from_, wanted.transfer)
        return chunk_of(transfer.body, wanted.transfer, wanted.index)
