"""Check of sender addresses on direct links: from which addresses may the peer runtime send?

A peer may send from its own runtime's address, from addresses below it, and from each address that
its domain's registry assigns to that runtime (I-B10, S1). A received message itself proves nothing.
A message from an unknown address waits until the registry has named the owner of the address, or
until a deadline. Messages of one sender keep their order; senders do not wait for each other.
"""

import math
from collections import OrderedDict
from enum import Enum
from typing import Final, Generic, TypeVar

import attrs

from fsm.effects import RowChanged
from fsm.limits.rates import ErrorWindow
from specs.addresses.address import RUNTIME_SCHEME, is_backend, is_below, runtime_of, scheme_of
from specs.limits import p2p
from specs.trace import Op

_TABLE: Final = "components"
_WRITER: Final = "p2p-stub"

T = TypeVar("T")


class SenderProof(Enum):
    """The result of checking whether a peer may send from an address."""

    PROVEN = "proven"
    """The address belongs to the peer."""

    UNKNOWN = "unknown"
    """The registry must be asked for the owner of the address."""

    FOREIGN = "foreign"
    """The address cannot belong to the peer; the registry need not be asked."""


class Holding(Enum):
    """The result of queueing a message whose sender must be checked (`LinkSenders.hold`)."""

    ASK = "ask"
    """The message waits, and the caller must ask the registry for the owner of its sender."""

    WAIT = "wait"
    """The message waits behind others of its sender; the registry has been asked already."""

    FULL = "full"
    """The message is refused, since too many are waiting."""


@attrs.define(slots=True, eq=False)
class _Queue(Generic[T]):
    """The messages of one sender on one link that wait until the sender's owner is known."""

    until: float
    items: list[T] = attrs.field(factory=list)
    size: int = 0


@attrs.define(slots=True, eq=False)
class _Peer(Generic[T]):
    """The runtime that a link connects to, and its messages that wait for a check.

    Attributes:
        remote: Address of that runtime.
        proven: Addresses that `remote` owns according to a registry.
        forgeries: Count of messages from addresses that `remote` does not own.
        is_gone: Whether the link is closed; waiting messages are still checked and delivered,
            because the link has acknowledged them to their sender.
    """

    remote: str
    proven: set[str] = attrs.field(factory=set)
    held: OrderedDict[str, _Queue[T]] = attrs.field(factory=OrderedDict)
    waiting: int = 0
    size: int = 0
    forgeries: ErrorWindow = attrs.field(factory=lambda: ErrorWindow(p2p.FORGERIES - 1))
    is_gone: bool = False


class LinkSenders(Generic[T]):
    """Checks the sender addresses on all links of one runtime, and keeps messages meanwhile.

    Memory is limited: at most `HELD_IN_ALL` messages of `HELD_BYTES_IN_ALL` bytes wait. In addition
    it stores the sender addresses that were proven by the registry.
    """

    def __init__(self) -> None:
        self._peers: Final[dict[str, _Peer[T]]] = {}
        self._held = 0
        self._bytes = 0

    def __contains__(self, link: object) -> bool:
        return link in self._peers

    def remote(self, link: str) -> str | None:
        """Return the runtime that a link connects to, or None if the link is unknown."""
        peer = self._peers.get(link)
        return None if peer is None else peer.remote

    # ---- links

    def add_link(self, link: str, remote: str) -> list[RowChanged]:
        """Add a link, and the runtime whose messages it may carry. Idempotent.

        Args:
            link: Name of the link.
            remote: Address of the runtime that the link connects to.
        """
        if link in self._peers:
            return []
        self._peers[link] = _Peer(remote)
        return [_row(Op.ADD, remote, link)]

    def remove_link(self, link: str) -> list[RowChanged]:
        """Accept no further messages over a link. Idempotent."""
        peer = self._peers.get(link)
        if peer is None:
            return []
        peer.is_gone = True
        return self.sweep()

    def sweep(self) -> list[RowChanged]:
        """Forget the closed links for which no message waits; return the table changes."""
        ended = [link for link, peer in self._peers.items() if peer.is_gone and not peer.held]
        rows: list[RowChanged] = []
        for link in ended:
            peer = self._peers.pop(link)
            rows += [_row(Op.DEL, each, link) for each in (*sorted(peer.proven), peer.remote)]
        return rows

    # ---- senders

    def sender_proof(self, link: str, from_: str) -> SenderProof:
        """Return whether the peer of a link may send from an address, as far as known.

        The addresses of the caller's own runtime are FOREIGN, too; the caller recognises them.

        Args:
            link: Name of the link.
            from_: Address of the sender.
        """
        peer = self._peers.get(link)
        if peer is None:
            return SenderProof.FOREIGN
        if from_ in peer.proven or runtime_of(from_) in peer.proven:
            return SenderProof.PROVEN
        if is_below(from_, peer.remote):
            return SenderProof.PROVEN
        if peer.is_gone or is_backend(from_) or scheme_of(from_) == RUNTIME_SCHEME:
            return SenderProof.FOREIGN
        return SenderProof.UNKNOWN

    def hold(self, link: str, from_: str, item: T, now: float, size: int = 0) -> Holding:
        """Queue a message whose sender is UNKNOWN until the sender's owner is known.

        Args:
            link: Name of the link, which is open.
            from_: Address of the sender.
            item: The message, in the form in which the caller gets it back.
            size: Number of bytes of memory that the message takes.
        """
        peer, entity = self._peers[link], runtime_of(from_)
        is_full = peer.waiting >= p2p.HELD_MESSAGES or peer.size + size > p2p.HELD_BYTES
        if is_full or self._held >= p2p.HELD_IN_ALL or self._bytes + size > p2p.HELD_BYTES_IN_ALL:
            return Holding.FULL
        queue = peer.held.get(entity)
        is_first = queue is None
        if queue is None:
            queue = peer.held[entity] = _Queue(now + p2p.PROOF_TIMEOUT)
        queue.items.append(item)
        queue.size += size
        peer.waiting += 1
        peer.size += size
        self._held += 1
        self._bytes += size
        return Holding.ASK if is_first else Holding.WAIT

    def set_owner(
        self, entity: str, owner: str | None
    ) -> tuple[list[RowChanged], list[tuple[T, bool]]]:
        """Note the runtime that owns a hyperty or object according to its domain's registry.

        Only the links on which the hyperty or object sends are affected.

        Args:
            entity: Address of the hyperty or object.
            owner: Address of the runtime; None: no runtime owns the hyperty or object.

        Returns:
            The table changes for the trace, and the messages that no longer wait. Each message has
            a flag: whether its peer may send it.
        """
        rows: list[RowChanged] = []
        decided: list[tuple[T, bool]] = []
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
            decided += [(item, is_theirs) for item in self.drop(link, entity)]
        return rows, decided

    def forget_owner(self, entity: str) -> list[RowChanged]:
        """Forget the owner of an address, so that its next message waits for a new look-up."""
        rows: list[RowChanged] = []
        for link, peer in self._peers.items():
            if entity in peer.proven:
                peer.proven.discard(entity)
                rows.append(_row(Op.DEL, entity, link))
        return rows

    def drop(self, link: str, entity: str) -> list[T]:
        """Remove and return the waiting messages of a sender, since their check has ended.

        Args:
            link: Name of the link that brought them.
            entity: Address of the sender.
        """
        peer = self._peers[link]
        queue = peer.held.pop(entity)
        peer.waiting -= len(queue.items)
        peer.size -= queue.size
        self._bytes -= queue.size
        self._held -= len(queue.items)
        return queue.items

    # ---- forgeries, and time

    def count_forgery(self, link: str, now: float) -> bool:
        """Count a message from an address that is not the peer's; return whether to close the link.

        The link is to be closed if too many such messages have come lately.
        """
        peer = self._peers.get(link)
        return peer is not None and not peer.is_gone and not peer.forgeries.add(1, now)

    def deadline(self) -> float:
        """Return the time of the next call of `take_overdue`."""
        if not self._held:
            return math.inf
        first = [next(iter(peer.held.values())) for peer in self._peers.values() if peer.held]
        return min(queue.until for queue in first)

    def take_overdue(self, now: float) -> list[T]:
        """Remove and return messages whose sender's owner was not known in time: refuse them."""
        overdue = [
            (link, entity)
            for link, peer in self._peers.items()
            for entity, queue in peer.held.items()
            if queue.until <= now
        ]
        return [item for link, entity in overdue for item in self.drop(link, entity)]


def _row(op: Op, address: str, link: str) -> RowChanged:
    return RowChanged(op, _TABLE, address, link, _WRITER)
