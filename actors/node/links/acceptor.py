"""The wire forms of a node: one acceptor class per path (DESIGN section 8).

Behind its acceptor every link looks the same: messages in normal form, sessions opened by session
control. Each link has its own acceptor, which may keep what it learns. The module also has the
acceptor of links over HTTP requests (CON-06).
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from operator import attrgetter
from typing import ClassVar, Final, TypeAlias

import attrs
import trio
from typing_extensions import override

from actors.kit.counters import Form
from fsm.session.node_session_io import Liveness, OutboundMessage, PeerForm
from specs.dialects.dialect import (
    PLAIN,
    Dialect,
    dialect_of,
    envelope_of,
    is_emitted_plain,
    normal_envelope_of,
)
from specs.identity import IDENTITY, NOBODY, Stamp
from specs.jsonvalue import JsonObject
from specs.limits.protocol import MAX_SPELLINGS
from specs.message import Message
from transports.codec import BadLine, decode_frame, encode, frames, read_plain, unstamped_line
from transports.link import Listener

# A listener that closes before anything else of the node.


class OpenListener:
    """Actor that runs a listener, so that the listener can close before the rest of the node."""

    def __init__(self, opened: AbstractAsyncContextManager[Listener]) -> None:
        self._opened = opened
        self._is_closing = trio.Event()
        self._is_closed = trio.Event()

    async def serve(
        self, *, task_status: "trio.TaskStatus[Listener]" = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Listen until `close` is called.

        If cancelled, the listener is closed; links that were accepted stay open.
        """
        try:
            async with self._opened as listener:
                task_status.started(listener)
                await self._is_closing.wait()
        finally:
            self._is_closed.set()

    async def close(self) -> None:
        """Accept no more links; the accepted ones stay open. Idempotent.

        If cancelled, the listener closes all the same.
        """
        self._is_closing.set()
        await self._is_closed.wait()


@attrs.frozen
class Claim:
    """Request of a peer for a session of a runtime, made without a token.

    Attributes:
        opening: The request that opens the session, as session control would send it.
    """

    opening: Message


Item: TypeAlias = Message | BadLine | Claim

_LINE: Final = attrgetter("line")


def spelt(entry: OutboundMessage, dialect: Dialect) -> bytes:
    """Encode a message in the dialect of a peer of upstream, once for all of that dialect.

    Such a peer gets the identity that the sender states under `identity`, not the one of this node.

    Args:
        entry: The message.
        dialect: Spelling of the peer.
    """
    message = entry.message
    known = entry.spelt
    if known is None or message.to in dialect.names or message.from_ in dialect.names:
        return _spelt(entry, dialect)
    line = known.get(dialect)
    if line is None:
        line = known[dialect] = _spelt(entry, dialect)
    return line


def _spelt(entry: OutboundMessage, dialect: Dialect) -> bytes:
    message = entry.message
    if IDENTITY not in message.body and is_emitted_plain(message, dialect):
        return unstamped_line(entry.line, message.identity)
    return encode(message, dialect)


class Acceptor(ABC):
    """Base class of wire formats: converts frames of a link to messages, and back.

    Attributes:
        liveness: How the node notices that the peer is gone.
        writes_alike: Whether all acceptors of the class make the same frames of a message.
        dialect: Spelling of the peer, as far as known; outlives the link with the session (N3).
        has_shown: Whether the peer has shown its spelling on this link.
        stamp: Identity of the sender of the messages read, as far as the bus has set it; the bus
            decides.
    """

    wire: ClassVar[Form]
    liveness: ClassVar[Liveness]
    form: ClassVar[PeerForm] = PeerForm.UPSTREAM
    writes_alike: ClassVar[bool] = False
    dialect: Dialect = PLAIN
    has_shown: bool = False
    stamp: Stamp = NOBODY
    _learnt: Collection[tuple[str, str, str, bool]] = ()
    _learnt_by: Dialect | None = None

    def recall(self, dialect: Dialect) -> None:
        """Use the spelling of the peer's last link, unless the peer has shown its present one.

        The first messages of a peer may be read before its session is granted.
        """
        if not self.has_shown:
            self.dialect = dialect

    def learn(self, raw: JsonObject) -> None:
        """Learn the peer's spelling of messages from one message."""
        envelope = envelope_of(raw)
        if self._learnt_by is self.dialect and envelope in self._learnt:
            return
        self.has_shown = True
        previous, self.dialect = self.dialect, dialect_of(raw, self.dialect)
        is_same = self.dialect is previous is self._learnt_by and len(self._learnt) < MAX_SPELLINGS
        if envelope is not None:
            self._learnt = {*self._learnt, envelope} if is_same else {envelope}
            self._learnt_by = self.dialect

    def familiar(self, frame: bytes) -> Message | None:
        """Read a message in normal form whose spelling is known; return None for any other frame.

        Args:
            frame: The frame.
        """
        message = read_plain(frame, self.stamp)
        if message is None or self._learnt_by is not self.dialect:
            return None
        return message if normal_envelope_of(message) in self._learnt else None

    def greeting(self) -> Sequence[Item]:
        """Return the items that the opening of the connection itself stands for."""
        return ()

    @abstractmethod
    def read(self, frame: bytes) -> Sequence[Item]:
        """Read a frame; never raise: a line that is no message becomes a `BadLine`."""

    @abstractmethod
    def write(self, entries: Sequence[OutboundMessage]) -> Iterable[bytes]:
        """Write messages as frames, in order."""


class LinkAcceptor(Acceptor):
    """`/link`, subprotocol `protofly.v1`: normal form; a frame contains lines."""

    wire = Form.LINK
    liveness = Liveness.PINGED
    form = PeerForm.OWN
    writes_alike = True

    @override
    def read(self, frame: bytes) -> Sequence[Item]:
        return decode_frame(frame, self.stamp)

    @override
    def write(self, entries: Sequence[OutboundMessage]) -> Iterable[bytes]:
        return frames(map(_LINE, entries))


REST: Final = "/rest"
"""Path of links over HTTP requests; no WebSocket is served there."""


class RestAcceptor(Acceptor):
    """Normal form over HTTP: a post contains lines, and each message to the runtime has a number.

    Every request is a sign of life, so clients are not pinged by messages.
    """

    wire = Form.REST
    liveness = Liveness.BY_LINK
    form = PeerForm.OWN

    @override
    def read(self, frame: bytes) -> Sequence[Item]:
        return decode_frame(frame, self.stamp)

    @override
    def write(self, entries: Sequence[OutboundMessage]) -> Iterable[bytes]:
        return [entry.line for entry in entries]
