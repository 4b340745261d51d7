"""The encoding of messages between the nodes of a domain, and in the logs of runtimes."""

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
    """A message for another node.

    Attributes:
        head: Facts for that node about the message, as a line.
        entry: The message; None: there is only the head.
        is_alone: Whether only receivers at that node get the message.
    """

    head: bytes
    entry: OutboundMessage | None = None
    is_alone: bool = True

    @property
    def size(self) -> int:
        """Bytes of the message and its head."""
        return len(self.head) + (0 if self.entry is None else len(self.entry.line)) + 2


# ---- for the engine client


Carry: TypeAlias = tuple[str, Sequence[Outgoing]]
"""A node, and the messages to publish to it, in order."""


@attrs.frozen(slots=True, eq=False)
class LookUp:
    """A row to read, without which an address has no receiver at this node."""

    address: str
    key: str


# Nodes send each other pairs of lines: a head, and a message in normal form.


class _Form(StrEnum):
    MESSAGE = "m"
    CONSENT_ENDED = "w"
    HANDED_OVER = "h"
    KEPT = "k"


@attrs.frozen(slots=True)
class Head:
    """The source and the receivers of a message between nodes.

    Attributes:
        node: The sending node.
        boot: Boot epoch of the sending node.
        to: The receiving runtime; None: all subscribers of the message's target at the node.
        by: Runtime whose session sent the message; None: a node made it.
        home: The home of that runtime then, see `Homes.home_of`; 0: a node made the message.
        hops: How many nodes have forwarded the message.
        is_alone: Whether only receivers at this one node get the message.
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
        """Characters of the addresses."""
        return len(self.node) + len(self.to or "") + len(self.by or "")


@attrs.frozen(slots=True)
class HandedOver:
    """The announcement that all messages that waited for a runtime were sent before."""

    runtime: str


def write_head(head: Head | ConsentEnded | HandedOver) -> bytes:
    """Encode the header of a message between nodes as a line."""
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
    """Decode a head; None: it is not of this version."""
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
    """Yield payloads of limited size with all pairs of lines, in order."""
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
    """Yield the pairs of lines of a payload; a head alone has an empty line.

    The number of pairs is limited; the rest becomes one more head, of several lines.
    """
    lines = payload.split(b"\n", 2 * CARRIED_PAIRS)
    return zip_longest(lines[::2], lines[1::2], fillvalue=b"")


def write_entry(whose: str, at: float, line: bytes) -> bytes:
    """Encode an entry of a log.

    Args:
        whose: Owner of the session of the receiver.
        at: When the message was accepted, as seconds since the epoch.
        line: The message.
    """
    return b"\n".join((orjson.dumps([_Form.KEPT, whose, at]), line))


def read_entry(payload: bytes) -> tuple[str, float, bytes] | None:
    """Decode an entry of a log; None: it is not of this version."""
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
