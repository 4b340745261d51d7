"""Encoding of the messages between the nodes of a domain, and of messages in durable logs."""

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from functools import lru_cache
from itertools import zip_longest
from typing import Final, TypeAlias

import attrs
import orjson

from actors.node.tables import ConsentEnded
from fsm.session.node_session_io import OutboundMessage
from specs.limits.node import CARRIED_BYTES, CARRIED_PAIRS, HEAD_KEPT, HEADS_KEPT


@attrs.frozen(slots=True)
class Outgoing:
    """Message to another node of the domain, or information without a message.

    Attributes:
        head: Encoded header: source and receivers, or information without a message.
        entry: The message; None: there is only the header.
        is_alone: Whether only receivers at that node get the message.
    """

    head: bytes
    entry: OutboundMessage | None = None
    is_alone: bool = True

    @property
    def size(self) -> int:
        """Size of the header and the message, in bytes."""
        return len(self.head) + (0 if self.entry is None else len(self.entry.line)) + 2


# ---- for the engine client


Carry: TypeAlias = tuple[str, Sequence[Outgoing]]
"""Id of a node, and the messages to publish to that node, in order."""


@attrs.frozen(slots=True, eq=False)
class LookUp:
    """Request to read a row from the engine, because an address has no known receiver here."""

    address: str
    key: str


# Nodes send each other pairs of lines: a header, and a message in normal form.


class _Form(StrEnum):
    MESSAGE = "m"
    CONSENT_ENDED = "w"
    HANDED_OVER = "h"
    KEPT = "k"


@attrs.frozen(slots=True)
class Head:
    """Header of a message between nodes: its source and its receivers.

    Attributes:
        node: The sending node.
        boot: Boot number of the sending node, which differs after each start.
        to: The receiving runtime; None: all subscribers of the message's target at the node.
        by: Runtime whose session sent the message; None: a node made it.
        home: Revision of that runtime's session row, see `Homes.home_of`; 0: a node made it.
        hops: How many nodes have sent the message so far.
        is_alone: Whether no other node gets the message.
    """

    node: str
    boot: int
    to: str | None
    by: str | None
    home: int = 0
    hops: int = 1
    is_alone: bool = False

    @property
    def size(self) -> int:
        """Total number of characters of the addresses, to limit what is cached."""
        return len(self.node) + len(self.to or "") + len(self.by or "")


@attrs.frozen(slots=True)
class HandedOver:
    """Notice to another node: all messages that waited here for a runtime have been sent."""

    runtime: str


def write_head(head: Head | ConsentEnded | HandedOver) -> bytes:
    """Encode the header of a message between nodes as one line."""
    is_short = isinstance(head, Head) and head.size <= HEAD_KEPT
    return _written_once(head) if is_short else _encode_head(head)


def _encode_head(head: Head | ConsentEnded | HandedOver) -> bytes:
    match head:
        case Head(node, boot, to, by, home, hops, is_alone):
            return orjson.dumps([_Form.MESSAGE, node, boot, to, by, home, hops, is_alone])
        case ConsentEnded(entity, runtime, observer, is_expired):
            return orjson.dumps([_Form.CONSENT_ENDED, entity, runtime, observer, is_expired])
        case HandedOver(runtime):
            return orjson.dumps([_Form.HANDED_OVER, runtime])


_written_once: Final = lru_cache(HEADS_KEPT)(_encode_head)


def read_head(line: bytes) -> Head | ConsentEnded | HandedOver | None:
    """Decode a header; None: another version of the program has written it."""
    return _read_once(line) if len(line) <= HEAD_KEPT else _read(line)


def _read(line: bytes) -> Head | ConsentEnded | HandedOver | None:
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    match value:
        case [
            _Form.MESSAGE,
            str(node),
            int(boot),
            str() | None as to,
            str() | None as by,
            int(home),
            int(hops),
            bool(is_alone),
        ]:
            return Head(node, boot, to, by, home, hops, is_alone)
        case [_Form.CONSENT_ENDED, str(entity), str(runtime), str(observer), bool(is_expired)]:
            return ConsentEnded(entity, runtime, observer, is_expired)
        case [_Form.HANDED_OVER, str(runtime)]:
            return HandedOver(runtime)
        case _:
            return None


_read_once: Final = lru_cache(HEADS_KEPT)(_read)


def payloads(lines: Iterable[tuple[bytes, bytes]]) -> Iterator[bytes]:
    """Join pairs of header and message into payloads of limited size, in order."""
    batch: list[bytes] = []
    size = 0
    for head, line in lines:
        more = len(head) + len(line) + 2
        if batch and size + more > CARRIED_BYTES:
            yield b"\n".join(batch)
            batch, size = [], 0
        batch += (head, line)
        size += more
    if batch:
        yield b"\n".join(batch)


def pairs(payload: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Split a payload into pairs of header and message; the message may be empty.

    The number of pairs is limited; the rest becomes one more header, which is invalid.
    """
    lines = payload.split(b"\n", 2 * CARRIED_PAIRS)
    return zip_longest(lines[::2], lines[1::2], fillvalue=b"")


def write_entry(whose: str, at: float, line: bytes) -> bytes:
    """Encode a message for a durable log, with its owner and time.

    Args:
        whose: Owner of the receiver's session.
        at: Time at which the message was accepted, in seconds since the epoch.
        line: The message.
    """
    return b"\n".join((orjson.dumps([_Form.KEPT, whose, at]), line))


def read_entry(payload: bytes) -> tuple[str, float, bytes] | None:
    """Decode a message of a durable log: owner, time, message; None: unknown form."""
    head, _, line = payload.partition(b"\n")
    try:
        value = orjson.loads(head)
    except orjson.JSONDecodeError:
        return None
    match value:
        case [_Form.KEPT, str(whose), int() | float() as at]:
            return whose, float(at), line
        case _:
            return None
