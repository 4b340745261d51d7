"""What one node of a domain sends to another, and keeps in the logs of runtimes, as bytes."""

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
        head: What that node must know of it, as a line.
        entry: None: the line is all.
        is_alone: Whether nobody but those at that node gets it.
    """

    head: bytes
    entry: OutboundMessage | None = None
    is_alone: bool = True

    @property
    def size(self) -> int:
        """Bytes that it takes."""
        return len(self.head) + (0 if self.entry is None else len(self.entry.line)) + 2


# ---- to the actors that talk with the engine


Carry: TypeAlias = tuple[str, Sequence[Outgoing]]
"""A node, and the messages to publish to it, in order."""


@attrs.frozen(slots=True, eq=False)
class LookUp:
    """A row that is read, as without it an address has no receiver at this node."""

    address: str
    key: str


# What one node of a domain sends to another: lines in pairs, a head and a message in normal form.


class _Form(StrEnum):
    MESSAGE = "m"
    CONSENT_ENDED = "w"
    HANDED_OVER = "h"
    KEPT = "k"


@attrs.frozen(slots=True)
class Head:
    """Whence a message comes, and to whom it goes.

    Attributes:
        node: The node that sent it.
        boot: Its boot epoch then.
        to: The runtime that is to get it; None: all subscribers of its target at the node.
        by: Runtime whose session brought it; None: a node made it.
        home: The home of that runtime then, as of `Homes.home_of`; 0: a node made it.
        hops: How many nodes have passed it on.
        is_alone: Whether nobody but the runtime, or the subscribers at this one node, gets it.
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
        """Characters of its addresses."""
        return len(self.node) + len(self.to or "") + len(self.by or "")


@attrs.frozen(slots=True)
class HandedOver:
    """All that waited for a runtime was sent before; there is no message."""

    runtime: str


def write_head(head: Head | ConsentEnded | HandedOver) -> bytes:
    """Return a head as a line."""
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
    """Read a head; None: it is none of this version."""
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
    """Return as few payloads as the limit allows, with all pairs of lines in order."""
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
    """Return the pairs of lines of a payload; a head alone has an empty line.

    What is behind the last pair that may be there is one more head, of several lines.
    """
    lines = payload.split(b"\n", 2 * CARRIED_PAIRS)
    return zip_longest(lines[::2], lines[1::2], fillvalue=b"")


def write_entry(whose: str, at: float, line: bytes) -> bytes:
    """Return the form of an entry of a log in the engine.

    Args:
        whose: What the session of the receiver belongs to.
        at: When it was accepted, as seconds since the epoch.
        line: The message.
    """
    return b"\n".join((orjson.dumps([_Form.KEPT, whose, at]), line))


def read_entry(payload: bytes) -> tuple[str, float, bytes] | None:
    """Return what was written by `write_entry`; None: it was not, or by another version."""
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
