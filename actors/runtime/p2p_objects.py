"""The two Connection objects of a link, as its stub reports and observes them (P2P-07..12)."""

from typing import Final, final

from actors.kit.trace import Tracer
from actors.runtime.p2p_end import LinkEnd, Understand
from actors.runtime.p2p_signalling import (
    Signalling,
    invitation_answered,
    object_created,
    read_connection,
    read_snapshot,
    row_told,
)
from fsm.cores import p2p_effect as do
from fsm.cores.object_copy import (
    Applied,
    Changed,
    ObserverGone,
    ReadNeeded,
    SnapshotRead,
    WithdrawnByReporter,
)
from fsm.cores.p2p_input import (
    ObjectCreated,
    ObserveRefused,
    PeerObjectDeleted,
    PeerObjectSeen,
    SideInput,
)
from specs.body_sync import Change
from specs.errors import BadMessageError
from specs.message import Message, MessageType
from specs.trace import Fact, Kind, Op
from transports.bodies import read_body

__all__ = ["LinkObjects"]

_CHANGES: Final = "changes"


@final
class LinkObjects:
    """Writes the requests of all ends of one stub, and understands what comes of them."""

    def __init__(self, signalling: Signalling, description: str, tracer: Tracer) -> None:
        self._signalling = signalling
        self._description = description
        self._tracer = tracer
        self._watched: dict[str, LinkEnd] = {}

    def watcher(self, message: Message) -> LinkEnd | None:
        """Return the end that observes the object whose change this is."""
        return None if message.is_response else self._watched.get(message.to)

    def requests(self, end: LinkEnd, effect: do.SideEffect) -> list[tuple[Message, Understand]]:
        """Write what an effect asks of the sync manager or the registry."""
        match effect:
            case do.AskRow():
                return [(self._signalling.ask_row(end.remote), row_told)]
            case do.CreateObject():
                asked = self._signalling.create_object(self._description)
                return [(asked, lambda answer: _created(end, answer))]
            case do.Observe(url):
                end.peer_object = url
                self._watched[f"{url}/{_CHANGES}"] = end
                return [(self._signalling.observe(url), self.snapshot_reader(end))]
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
            case _:
                return []

    def _withdraw(self, end: LinkEnd) -> list[tuple[Message, Understand]]:
        asked: list[tuple[Message, Understand]] = []
        own, end.own_object = end.own_object, None
        peer, end.peer_object = end.peer_object, None
        if peer is not None:
            self._watched.pop(f"{peer}/{_CHANGES}", None)
            asked.append((self._signalling.stop_observing(peer), _nothing))
        if own is not None:
            asked.append((self._signalling.delete(own), _nothing))
        return asked

    # --- what is observed -------------------------------------------------------------------

    def snapshot_reader(self, end: LinkEnd) -> Understand:
        """Return what understands an answer that carries the whole object."""
        return lambda answer: self._snapshot(end, answer)

    def _snapshot(self, end: LinkEnd, answer: Message) -> SideInput | None:
        snapshot = read_snapshot(answer)
        if isinstance(snapshot, ObserveRefused):
            return snapshot
        applied = [
            effect
            for effect in end.copy.feed(SnapshotRead(snapshot))
            if isinstance(effect, Applied)
        ]
        return self._applied(end, answer, applied[-1]) if applied else None

    def changed(self, end: LinkEnd, event: Message) -> tuple[SideInput | None, Message | None]:
        """Take a change of the peer's object: what it means, and what to read if one is missing."""
        if event.type is MessageType.DELETE:
            end.copy.feed(WithdrawnByReporter())
            self._watched.pop(event.to, None)
            end.peer_object = None
            return PeerObjectDeleted(), None
        try:
            change = read_body(event, Change)
        except BadMessageError:
            return None, None
        for effect in end.copy.feed(Changed(change)):
            match effect:
                case Applied():
                    return self._applied(end, event, effect), None
                case ReadNeeded() if end.peer_object is not None:
                    return None, self._signalling.read(end.peer_object)
                case ReadNeeded() | ObserverGone():
                    return None, None
        return None, None

    def _applied(self, end: LinkEnd, source: Message, applied: Applied) -> SideInput:
        fact = Fact(
            k=Kind.OBJ,
            op=Op.APPLY,
            key=end.peer_object,
            version=applied.version,
            by=end.name,
        )
        self._tracer.record(end.name, fact)
        data = read_connection(source, applied.data)
        return data if isinstance(data, ObserveRefused) else PeerObjectSeen(data)


def _created(end: LinkEnd, answer: Message) -> SideInput:
    told = object_created(answer)
    if isinstance(told, ObjectCreated):
        end.own_object = told.url
    return told


def _nothing(answer: Message) -> None:
    del answer
