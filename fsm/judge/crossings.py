"""A few messages that went between processes, as each of both recorded them.

Each process keeps those with the least hashes, of each link and direction, so that both ends of
a link keep the same ones. That needs no number of a message on its link, which only stubs
record. `fsm.judge.skew` compares clocks by them, `fsm.judge.missing` finds runs without a trace.
"""

from bisect import insort
from collections.abc import Mapping
from enum import IntEnum, unique
from hashlib import blake2b
from typing import Final, final
from zlib import crc32

import attrs

from fsm.judge.claims.records import is_p2p_end, split
from fsm.judge.trace_line import TraceLine
from specs.addresses.address import runtime_of
from specs.trace import Op

__all__ = ["CROSSED", "KEPT", "LINKS", "Crossing", "Crossings", "Part"]

KEPT: Final = 16
"""Crossings that are kept of each link and direction."""

LINKS: Final = 4096
"""Links and directions of which crossings are kept, at most."""

CROSSED: Final = frozenset({Op.XMIT.value, Op.RCV.value})
"""What is recorded where a message crosses between processes."""


@unique
class Part(IntEnum):
    """At which end of which hop a crossing was recorded.

    A message keeps its `via` from the stub that stamped it to the next one that does. On that
    way the stub sends it first, and a node, which stamps nothing, may receive and send it once.
    """

    STUB_SENT = 0
    NODE_SENT = 1
    NODE_GOT = 2
    STUB_GOT = 3


@final
@attrs.frozen(slots=True)
class Crossing:
    """A message that left a process, or came to it.

    Attributes:
        key: Hash of its instance and of the stubs that it had crossed.
        rank: Hash of its instance, by which it was chosen.
        wall_ns: Time by the clock of the process: the first, if it crossed several times.
        ln: Number of the record.
        link: Its link, as the process calls it.
        sender: Of a message that came, which runtime or node had sent it; empty: not known.
    """

    key: str
    part: Part
    rank: int
    wall_ns: int
    ln: int
    link: str
    sender: str = ""

    @property
    def is_sent(self) -> bool:
        """Whether it left the process."""
        return self.part < Part.NODE_GOT


@final
class Crossings:
    """Keeps a few crossings of one process while its records are read."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str | None, str | None], _Least] = {}

    def take(self, record: TraceLine) -> None:
        """Take a record of a message that was sent or came."""
        mid = record.mid
        if mid is None:
            return
        at = record.link or record.stub, record.op
        least = self._kept.get(at)
        if least is None:
            if len(self._kept) == LINKS:
                return
            least = self._kept[at] = _Least()
        rank = crc32(mid.encode(errors="replace"))
        if rank <= least.limit:
            least.add(rank, record, mid)

    def end(self, nodes: Mapping[str, str]) -> tuple[Crossing, ...]:
        """Return what is kept.

        Args:
            nodes: The message node that each stub of the process leads to.
        """
        return tuple(
            _crossing(record, key, rank, nodes)
            for least in self._kept.values()
            for rank, of_rank in least.found.items()
            for key, record in of_rank.items()
        )


@final
class _Least:
    """The crossings of one link and direction with the least ranks."""

    __slots__ = ("_ranks", "found", "limit")

    def __init__(self) -> None:
        self.limit = 1 << 32
        self.found: dict[int, dict[str, TraceLine]] = {}
        self._ranks: list[int] = []

    def add(self, rank: int, record: TraceLine, mid: str) -> None:
        of_rank = self.found.get(rank)
        if of_rank is None:
            of_rank = self.found[rank] = {}
            insort(self._ranks, rank)
        of_rank.setdefault(f"{mid} {_via_between(record)}", record)
        if len(self._ranks) > KEPT:
            del self.found[self._ranks.pop()]
        if len(self._ranks) == KEPT:
            self.limit = self._ranks[-1]


def _via_between(record: TraceLine) -> str:
    """Return what a message had crossed between the two ends: a stub that gets one stamps it."""
    via, stub = record.via or "", record.stub
    if record.op != Op.RCV or stub is None or not via.endswith(stub):
        return via
    return via.removesuffix(stub).removesuffix("|")


def _crossing(record: TraceLine, key: str, rank: int, nodes: Mapping[str, str]) -> Crossing:
    hashed = blake2b(key.encode(errors="replace"), digest_size=8).hexdigest()
    stub, link = record.stub, record.link or record.stub or ""
    if record.op == Op.XMIT:
        part = Part.NODE_SENT if stub is None else Part.STUB_SENT
        return Crossing(hashed, part, rank, record.wall_ns, record.ln, link)
    if stub is None or is_p2p_end(stub):
        sender = runtime_of(split(_via_between(record))[-1]) or ""
    else:
        sender = nodes.get(stub, "")
    part = Part.NODE_GOT if stub is None else Part.STUB_GOT
    return Crossing(hashed, part, rank, record.wall_ns, record.ln, link, sender)
