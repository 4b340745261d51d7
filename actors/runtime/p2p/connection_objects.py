"""The two Connection objects of a link, as its stub reports and observes them (P2P-07..12)."""

import math
from typing import Final, final

import trio

from actors.kit.trace import Tracer
from actors.runtime.p2p.link_end import LinkEnd, Understand
from actors.runtime.p2p.signalling import (
    Signalling,
    invitation_answered,
    object_created,
    read_connection,
    read_snapshot,
    row_told,
)
from fsm.engine import Step
from fsm.p2p import link_io as do
from fsm.p2p.link_io import (
    ObjectCreated,
    ObserveRefused,
    PeerObjectDeleted,
    PeerObjectSeen,
    SideInput,
)
from fsm.sync.copy import (
    Applied,
    Changed,
    CopyTimeOver,
    GivenUp,
    ObserveBegun,
    ObserverCore,
    ObserverEffect,
    ObserverGone,
    ObserverInput,
    ReadFailed,
    ReadNeeded,
    SnapshotRead,
    WithdrawnByReporter,
)
from fsm.sync.value.value import check_path
from specs.addresses.address import is_below
from specs.bodies.sync import Change
from specs.errors import BadMessageError
from specs.message import Message, MessageType
from specs.reply_code import Code
from specs.trace import Fact, Kind, Op
from transports.bodies import read_body

__all__ = ["LinkObjects"]

_CHANGES: Final = "changes"
_FOR_NOW: Final = frozenset(
    {
        Code.TIMEOUT,
        Code.TOO_LARGE,
        Code.INTERNAL,
        Code.BAD_BACKEND,
        Code.UNAVAILABLE,
        Code.BACKEND_TIMEOUT,
    }
)
"""Refusals of a read that say nothing about the next one."""


@final
class LinkObjects:
    """Writes the requests of all ends of one stub, and understands what comes of them."""

    def __init__(self, signalling: Signalling, description: str, tracer: Tracer) -> None:
        self._signalling = signalling
        self._description = description
        self._tracer = tracer
        self._watched: dict[str, LinkEnd] = {}
        self._waiting: dict[LinkEnd, float] = {}
        self._reads: list[tuple[LinkEnd, Message, Understand]] = []
        self._withdrawing = 0
        self._is_clean = trio.Event()

    def watcher(self, message: Message) -> LinkEnd | None:
        """Return the end that observes the object whose change this is, or which it shows."""
        if message.is_response:
            return None
        anew = self._signalling.shown_anew(message)
        return self._watched.get(message.to if anew is None else f"{anew}/{_CHANGES}")

    def requests(self, end: LinkEnd, effect: do.SideEffect) -> list[tuple[Message, Understand]]:
        """Write what an effect asks of the sync manager or the registry."""
        match effect:
            case do.AskRow():
                return [(self._signalling.ask_row(end.remote), row_told)]
            case do.CreateObject():
                asked = self._signalling.create_object(self._description)
                return [(asked, lambda answer: _created(end, answer))]
            case do.Observe(url):
                return [(self._observe(end, url), lambda answer: self._observed(end, answer))]
            case do.Withdraw():
                return self._withdraw(end)
            case _:
                return self._on_own_object(end, effect)

    def _on_own_object(
        self, end: LinkEnd, effect: do.SideEffect
    ) -> list[tuple[Message, Understand]]:
        url = end.own_object
        if url is None:
            return []
        match effect:
            case do.Invite():
                return [(self._signalling.invite(url, end.peer), invitation_answered)]
            case do.Offer(candidates):
                return [(self._signalling.offer(url, candidates), _nothing)]
            case do.Plead(status):
                return [(self._signalling.plead(url, status), _nothing)]
            case do.Renew(_, status):
                return [(told, _nothing) for told in self._signalling.offer_anew(url, status)]
            case _:
                return []

    def _withdraw(self, end: LinkEnd) -> list[tuple[Message, Understand]]:
        asked: list[tuple[Message, Understand]] = []
        own, end.own_object = end.own_object, None
        peer = end.peer_object
        if peer is not None:
            self.give_up(end)
            self._forget(end, peer)
            asked.append((self._signalling.stop_observing(peer), self._withdrawn))
        if own is not None:
            asked.append((self._signalling.delete(own), self._withdrawn))
        self._withdrawing += len(asked)
        return asked

    def _withdrawn(self, _answer: Message) -> None:
        self._withdrawing -= 1
        if not self._withdrawing:
            self._is_clean.set()
            self._is_clean = trio.Event()

    async def withdrawn(self) -> None:
        """Wait until everything that was withdrawn is gone at the sync manager, too."""
        while self._withdrawing:
            await self._is_clean.wait()

    def give_up(self, end: LinkEnd) -> None:
        """End the copy of an end that leaves."""
        self._feed(end, GivenUp("the observer leaves"))

    # --- what is observed -------------------------------------------------------------------

    def _observe(self, end: LinkEnd, url: str) -> Message:
        end.peer_object = url
        # Its link tells whether the peer is there: a quiet copy needs not ask.
        end.copy = ObserverCore(url, self._signalling.url, quiet=math.inf)
        self._watched[f"{url}/{_CHANGES}"] = end
        self._feed(end, ObserveBegun())
        return self._signalling.observe(url)

    def _observed(self, end: LinkEnd, answer: Message) -> SideInput | None:
        """Understand the answer to the subscription."""
        snapshot = read_snapshot(answer)
        if isinstance(snapshot, ObserveRefused):
            self._feed(end, GivenUp(snapshot.why))
            return snapshot
        return self._seen(end, answer, SnapshotRead(snapshot))

    def _was_read(self, end: LinkEnd, read: int, answer: Message) -> SideInput | None:
        """Understand the answer to a read: what fails for now is tried again (SYN-17)."""
        snapshot = read_snapshot(answer)
        if isinstance(snapshot, ObserveRefused) and answer.code in _FOR_NOW:
            self._feed(end, ReadFailed(read, snapshot.why))
            return None
        return self._observed(end, answer)

    def changed(self, end: LinkEnd, event: Message) -> SideInput | None:
        """Take a change of the peer's object; only its reporter's is one (I-D1)."""
        url = end.peer_object
        if self._signalling.shown_anew(event) is not None:
            return self._observed(end, event)
        if url is None or not is_below(event.from_, url):
            return None
        if event.type is MessageType.DELETE:
            self._feed(end, WithdrawnByReporter())
            self._forget(end, url)
            return PeerObjectDeleted()
        try:
            change = read_body(event, Change)
            check_path(change.attribute)
        except BadMessageError:
            return None
        return self._seen(end, event, Changed(change))

    def _forget(self, end: LinkEnd, url: str) -> None:
        self._watched.pop(f"{url}/{_CHANGES}", None)
        end.peer_object = None

    # --- reads and time ---------------------------------------------------------------------

    def take_reads(self) -> list[tuple[LinkEnd, Message, Understand]]:
        """Return the reads that became due, each once (M-41)."""
        reads, self._reads = self._reads, []
        return reads

    def deadline(self) -> float:
        """Return when `overdue` is to be asked; infinity: no copy waits."""
        return min(self._waiting.values(), default=math.inf)

    def overdue(self) -> list[tuple[LinkEnd, SideInput | None]]:
        """Let the time of copies be over: what it means for their ends."""
        now = trio.current_time()
        due = [end for end, when in self._waiting.items() if when <= now]
        return [(end, self._time_over(end)) for end in due]

    def _time_over(self, end: LinkEnd) -> SideInput | None:
        for effect in self._feed(end, CopyTimeOver()):
            if isinstance(effect, ObserverGone):
                return ObserveRefused(effect.why)
        return None

    # --- the copy ---------------------------------------------------------------------------

    def _seen(self, end: LinkEnd, source: Message, happened: ObserverInput) -> SideInput | None:
        """Feed what may bring a new value, and say what the newest one means."""
        effects = self._feed(end, happened)
        applied = [effect for effect in effects if isinstance(effect, Applied)]
        if not applied:
            return None
        data = read_connection(source, applied[-1].data)
        return data if isinstance(data, ObserveRefused) else PeerObjectSeen(data)

    def _feed(self, end: LinkEnd, happened: ObserverInput) -> list[ObserverEffect]:
        copy, url = end.copy, end.peer_object
        if copy is None or url is None:
            return []
        effects = copy.feed(happened, trio.current_time())
        for effect in effects:
            match effect:
                case Step():
                    self._tracer.step(self._signalling.url, effect)
                case Applied(version):
                    self._trace_applied(end, version)
                case ReadNeeded(read):
                    self._reads.append((end, self._signalling.read(url), self._reader(end, read)))
                case ObserverGone():
                    pass
        self._wait(end, copy.deadline())
        return effects

    def _reader(self, end: LinkEnd, read: int) -> Understand:
        return lambda answer: self._was_read(end, read, answer)

    def _wait(self, end: LinkEnd, until: float) -> None:
        if until < math.inf:
            self._waiting[end] = until
        else:
            self._waiting.pop(end, None)

    def _trace_applied(self, end: LinkEnd, version: int) -> None:
        fact = Fact(
            k=Kind.OBJ, op=Op.APPLY, key=end.peer_object, version=version, by=self._signalling.url
        )
        self._tracer.record(end.name, fact)


def _created(end: LinkEnd, answer: Message) -> SideInput:
    told = object_created(answer)
    if isinstance(told, ObjectCreated):
        end.own_object = told.url
    return told


def _nothing(answer: Message) -> None:
    del answer
