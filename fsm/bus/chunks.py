"""Transfers of large bodies in chunks, at the passive end, which stores them (P2P-21, P2P-22).

The requester is the active end in both directions. It sends the body of a request in further
requests, one for each chunk. The receiver assembles the chunks, and the original request then gets
the whole body. The body of an answer is held by its sender, and the requester reads it chunk by
chunk. Chunks must arrive in order and once: any other chunk ends its transfer, and the requester is
refused once.

The received bytes show whether a transfer is complete, so it has no other states. One
`TransferBudget` counts the memory of all transfers of a runtime.
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
    """Return the number of chunks of a body."""
    return -(-size // limits.CHUNK_BYTES)


def chunk_size(size: int, index: int) -> int:
    """Return the number of bytes of one chunk; all but the last are equal.

    Args:
        size: Bytes of the body.
        index: Index of the chunk.
    """
    return min(limits.CHUNK_BYTES, size - index * limits.CHUNK_BYTES)


def chunk_of(body: bytes | bytearray, transfer: int, index: int) -> Chunk:
    """Return one chunk of a body.

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
    """Return the entry of a message that replaces the message's body.

    Args:
        body: The body.
        transfer: Number of the transfer.
    """
    return ChunkedBody(transfer, len(body), sha256(body).hexdigest())


def data_in(chunk: Chunk) -> bytes:
    """Return the bytes of a chunk.

    Raises:
        BadMessageError: They are not base64, or not as many as belong to its place.
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
        entry: The entry that replaces the body.

    Raises:
        BadMessageError: 400: it was altered.
    """
    body = b"".join(chunks)
    if not _has_digest(body, entry):
        raise BadMessageError(_ALTERED)
    return body


_ALTERED: Final = "the body was altered on its way: its digest differs"


def _has_digest(body: bytes | bytearray, entry: ChunkedBody) -> bool:
    return sha256(body).hexdigest() == entry.sha256


def too_large(limit: int) -> BadMessageError:
    """Return the refusal of a body of more than `limit` bytes."""
    why = f"the body is larger than {limit} bytes, the limit of this runtime"
    return BadMessageError(why, Code.TOO_LARGE)


def latest(begun: float, chunks: int, silence: float = limits.TRANSFER_SILENCE) -> float:
    """Return the deadline for the next chunk of a transfer.

    Args:
        begun: Time at which the transfer began.
        chunks: Number of chunks so far.
        silence: Seconds for which its peer may be silent.
    """
    return begun + min(limits.TRANSFER_TIMEOUT, silence + chunks * limits.CHUNK_SECONDS)


# ---- memory


_FULL: Final = Code.UNAVAILABLE
_LATER: Final = "other large bodies come first; try again later"


class TransferBudget:
    """Memory for transfers that the peers of one runtime have begun.

    A peer is a runtime, identified by its messages. Peers without an identity have one share
    together.

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

        Peers that found no room have their turn in the order of their requests, so a peer that
        begins transfers without end does not keep others from theirs.

        Args:
            peer: Name of the peer.

        Raises:
            BadMessageError: 503: as many are coming as may.
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
        """Stop counting a transfer: all its chunks have arrived, or it has ended.

        Args:
            peer: Name of the peer.
        """
        self._arriving[peer] -= 1
        if not self._arriving[peer]:
            del self._arriving[peer]

    def take(self, peer: str, size: int) -> None:
        """Count the memory of the body of a transfer.

        Args:
            peer: Name of the peer.
            size: Bytes of the body.

        Raises:
            BadMessageError: 413: the body is over the limit; 503: there is no room for it now.
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
        """Stop counting the memory of the body of a transfer.

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
    """The state of one body in memory.

    Attributes:
        begun: Time at which it began.
        body: The bytes that have come.
        until: Time at which it is given up.
        missing: Indices of the chunks that were not read yet.
        is_arriving: Whether further chunks must arrive.
    """

    peer: str
    size: int
    begun: float
    body: bytearray = attrs.field(repr=False)
    until: float = math.inf
    missing: set[int] = attrs.field(factory=set)
    is_arriving: bool = False


class _Transfers:
    """The transfers of one hyperty in one direction."""

    _patience: float

    def __init__(self, budget: TransferBudget) -> None:
        self._budget = budget
        self._open: dict[_Key, _Transfer] = {}

    def __len__(self) -> int:
        """Return the number of bodies in memory."""
        return len(self._open)

    def _begin(self, key: _Key, transfer: _Transfer, now: float) -> None:
        self._budget.take(transfer.peer, transfer.size)
        self._restart_silence(transfer, now, 0)
        self._open[key] = transfer

    def _restart_silence(self, transfer: _Transfer, now: float, chunks: int) -> None:
        """Restart the timer of the peer's silence after some chunks of the transfer."""
        slow = latest(transfer.begun, chunks, self._patience)
        transfer.until = min(slow, now + self._patience)

    def end(self, requester: str, transfer: int) -> None:
        """End a transfer, and forget its body. Idempotent.

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
        """Return when `tick` is due."""
        return min((each.until for each in self._open.values()), default=math.inf)

    def tick(self, now: float) -> None:
        """End the transfers whose peers are silent, or which take too long."""
        for requester, transfer in [key for key, each in self._open.items() if each.until <= now]:
            self.end(requester, transfer)

    def clear(self) -> None:
        """End all transfers."""
        for requester, transfer in list(self._open):
            self.end(requester, transfer)


@attrs.frozen
class WholeBody:
    """An assembled body, kept until its message was handled.

    Attributes:
        peer: The peer whose share of the budget it takes.
        body: Its bytes.
    """

    peer: str
    body: bytearray = attrs.field(repr=False)


class AssembliesCore(_Transfers):
    """Bodies of requests that arrive at one hyperty."""

    _patience = limits.TRANSFER_SILENCE

    def begin(self, message: Message, begun: TransferBegun, now: float) -> None:
        """Begin a transfer; one with the same number fails.

        Args:
            message: The request that begins the transfer.
            begun: The transfer.

        Raises:
            BadMessageError: 409: it has begun before; 413: the body is over the limit; 503: there
                is no room for it now.
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
        """Take the next chunk of a transfer.

        Args:
            message: The request that brings it.
            chunk: The chunk.

        Raises:
            BadMessageError: The transfer fails. 400: the chunk is not what it says; 409: it is not
                the next one of a transfer.
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
        """Return the transfer whose next chunk this is."""
        transfer = self._open.get(key)
        is_next = transfer is not None and chunk.index * limits.CHUNK_BYTES == len(transfer.body)
        if transfer is None or not is_next or chunk.size != transfer.size:
            why = f"chunk {chunk.index} is not the next one of transfer {chunk.transfer}"
            raise BadMessageError(why, Code.CONFLICT)
        return transfer

    def whole(self, message: Message, said: ChunkedBody) -> WholeBody:
        """Return the body of a message and end its transfer; call `release` afterwards.

        Args:
            said: The entry that replaces its body.

        Raises:
            BadMessageError: 409: chunks are missing; 400: it was altered.
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
        """Free the memory of a body whose message was handled."""
        self._budget.give_back(whole.peer, len(whole.body))


class HeldBodiesCore(_Transfers):
    """Bodies of answers of one hyperty, held until their requesters have read them."""

    _patience = limits.HELD_SILENCE

    def hold(self, request: Message, body: bytes, now: float) -> ChunkedBody:
        """Hold the body of an answer until it was read; return the entry that replaces the body.

        Args:
            request: The request that is answered.
            body: The body of the answer.

        Raises:
            BadMessageError: 413: it is over the limit; 503: there is no room for it now.
        """
        missing = set(range(chunk_count(len(body))))
        # A requester that repeats an id wants the newer answer.
        self.end(request.from_, request.id)
        transfer = _Transfer(peer_of(request), len(body), now, bytearray(body), missing=missing)
        self._begin((request.from_, request.id), transfer, now)
        return chunk_entry(body, request.id)

    def read(self, message: Message, wanted: ChunkWanted, now: float) -> Chunk:
        """Return a chunk; the last unread chunk ends the transfer.

        Args:
            message: The request that asks for it.
            wanted: The chunk that it asks for.

        Raises:
            BadMessageError: 410: no such body is held, any more; 400: it has no such chunk.
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
