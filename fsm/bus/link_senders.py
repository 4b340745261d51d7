"""Which addresses the peer of each link may send from, and what waits for a proof (I-B10, S1).

A peer may send from its own runtime and what is below it, and from an address whose domain
registry names that runtime as its owner. What was received proves nothing. A message whose
sender is not known yet waits; its proof, or the deadline, decides on it. Messages of one
sender keep their order; senders do not wait for each other.
"""

import math
from collections import OrderedDict
from collections.abc import Iterable
from enum import Enum
from typing import Final, Generic, TypeVar, final

import attrs

from fsm.effects import RowChanged
from fsm.limits.error_window import SoftErrors
from specs.addresses.address import RUNTIME_SCHEME, is_backend, is_below, runtime_of, scheme_of
from specs.limits.p2p import FORGERIES, HELD_IN_ALL, HELD_MESSAGES, PROOF_TIMEOUT
from specs.trace import Op

__all__ = ["Decided", "Holding", "LinkSenders", "Standing"]

_TABLE: Final = "components"
_WRITER: Final = "p2p-stub"

T = TypeVar("T")


@final
class Standing(Enum):
    """What is known of an address that a peer sends from."""

    PROVEN = "proven"
    UNKNOWN = "unknown"
    FOREIGN = "foreign"
    """It cannot be the peer's, whatever any registry says."""


@final
class Holding(Enum):
    """What became of a message that is to wait."""

    ASK = "ask"
    """It waits, and the owner of its sender is to be asked for."""

    WAIT = "wait"
    """It waits behind others of its sender."""

    FULL = "full"
    """Too much waits already."""


@final
@attrs.frozen(slots=True)
class Decided(Generic[T]):
    """A message that has waited.

    Attributes:
        link: The link it came by.
        is_proven: Whether the peer may send from its address.
    """

    link: str
    item: T
    is_proven: bool


@final
@attrs.define(slots=True, eq=False)
class _Queue(Generic[T]):
    """The messages of one sender on one link, all waiting for one proof."""

    until: float
    items: list[T] = attrs.field(factory=list)


@final
@attrs.define(slots=True, eq=False)
class _Peer(Generic[T]):
    """The other end of one link.

    Attributes:
        proven: Entities whose owner is `remote`, by a registry.
        is_gone: Whether the link is over; what waits is decided all the same, for its
            sender was told that it arrived.
    """

    remote: str
    proven: set[str] = attrs.field(factory=set)
    held: OrderedDict[str, _Queue[T]] = attrs.field(factory=OrderedDict)
    waiting: int = 0
    forgeries: SoftErrors = attrs.field(factory=lambda: SoftErrors(FORGERIES - 1))
    is_gone: bool = False


@final
class LinkSenders(Generic[T]):
    """The links of one runtime.

    Memory: `HELD_IN_ALL` messages; the addresses that `OwnersCore` remembers.
    """

    def __init__(self) -> None:
        self._peers: Final[dict[str, _Peer[T]]] = {}
        self._held = 0

    def __contains__(self, link: object) -> bool:
        return link in self._peers

    def remote(self, link: str) -> str | None:
        """Return the runtime at the other end of a link; None: the link is not known."""
        peer = self._peers.get(link)
        return None if peer is None else peer.remote

    # ---- links

    def opened(self, link: str, remote: str) -> list[RowChanged]:
        """Let a link lead to a runtime; repeated is fine."""
        if link in self._peers:
            return []
        self._peers[link] = _Peer(remote)
        return [_row(Op.ADD, remote, link)]

    def closed(self, link: str) -> list[RowChanged]:
        """Let nothing more be sent over a link; repeated is fine."""
        peer = self._peers.get(link)
        if peer is None:
            return []
        peer.is_gone = True
        return self.swept()

    def swept(self) -> list[RowChanged]:
        """Forget the links that are over and for which nothing waits."""
        over = [link for link, peer in self._peers.items() if peer.is_gone and not peer.held]
        rows: list[RowChanged] = []
        for link in over:
            peer = self._peers.pop(link)
            rows += [_row(Op.DEL, one, link) for one in (*sorted(peer.proven), peer.remote)]
        return rows

    # ---- senders

    def standing(self, link: str, from_: str) -> Standing:
        """Say what is known of an address that a peer sends from.

        The caller knows which addresses are of its own runtime: these are FOREIGN, too.
        """
        peer = self._peers.get(link)
        if peer is None:
            return Standing.FOREIGN
        if from_ in peer.proven or runtime_of(from_) in peer.proven:
            return Standing.PROVEN
        if is_below(from_, peer.remote):
            return Standing.PROVEN
        if peer.is_gone or is_backend(from_) or scheme_of(from_) == RUNTIME_SCHEME:
            return Standing.FOREIGN
        return Standing.UNKNOWN

    def hold(self, link: str, from_: str, item: T, now: float) -> Holding:
        """Keep a message whose sender is UNKNOWN until that is decided."""
        peer, entity = self._peers[link], runtime_of(from_)
        if peer.waiting >= HELD_MESSAGES or self._held >= HELD_IN_ALL:
            return Holding.FULL
        queue = peer.held.get(entity)
        is_first = queue is None
        if queue is None:
            queue = peer.held[entity] = _Queue(now + PROOF_TIMEOUT)
        queue.items.append(item)
        peer.waiting += 1
        self._held += 1
        return Holding.ASK if is_first else Holding.WAIT

    def owned(self, entity: str, owner: str | None) -> tuple[list[RowChanged], list[Decided[T]]]:
        """Take which runtime owns an entity, by its domain's registry; None: none does.

        Only the links on which the entity sends learn of it.
        """
        rows: list[RowChanged] = []
        decided: list[Decided[T]] = []
        for link, peer in self._peers.items():
            is_theirs = peer.remote == owner
            if entity in peer.proven and not is_theirs:
                peer.proven.discard(entity)
                rows.append(_row(Op.DEL, entity, link))
            queue = peer.held.get(entity)
            if queue is None:
                continue
            if is_theirs and entity not in peer.proven:
                peer.proven.add(entity)
                rows.append(_row(Op.ADD, entity, link))
            decided += self._taken_out(link, entity, is_proven=is_theirs)
        return rows, decided

    def doubted(self, entity: str) -> list[RowChanged]:
        """Forget who owns an entity: the next message from it waits for a new proof."""
        rows: list[RowChanged] = []
        for link, peer in self._peers.items():
            if entity in peer.proven:
                peer.proven.discard(entity)
                rows.append(_row(Op.DEL, entity, link))
        return rows

    def dropped(self, link: str, entity: str) -> Iterable[T]:
        """Take out what waits for a sender about whom nobody can be asked."""
        return [one.item for one in self._taken_out(link, entity, is_proven=False)]

    def _taken_out(self, link: str, entity: str, *, is_proven: bool) -> list[Decided[T]]:
        peer = self._peers[link]
        queue = peer.held.pop(entity)
        peer.waiting -= len(queue.items)
        self._held -= len(queue.items)
        return [Decided(link, item, is_proven) for item in queue.items]

    # ---- forgeries, and time

    def forged(self, link: str, now: float) -> bool:
        """Note a message whose sender is not the peer's; tell whether its link is to be closed."""
        peer = self._peers.get(link)
        return peer is not None and not peer.is_gone and not peer.forgeries.add(1, now)

    def deadline(self) -> float:
        """Return when `late` is due."""
        if not self._held:
            return math.inf
        first = [next(iter(peer.held.values())) for peer in self._peers.values() if peer.held]
        return min(queue.until for queue in first)

    def late(self, now: float) -> list[Decided[T]]:
        """Take out what has waited too long: it is refused."""
        over = [
            (link, entity)
            for link, peer in self._peers.items()
            for entity, queue in peer.held.items()
            if queue.until <= now
        ]
        return [
            one for link, entity in over for one in self._taken_out(link, entity, is_proven=False)
        ]


def _row(op: Op, address: str, link: str) -> RowChanged:
    return RowChanged(op, _TABLE, address, link, _WRITER)
