"""Signalling of a P2P link: the messages of its set-up, and its two Connection objects.

One stub writes and reads the messages (M-06, 07, 32..47). It reports one Connection object and
observes the other one (P2P-07..12).
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Final, TypeAlias, final

import attrs
import trio

from actors.kit.trace import Tracer
from actors.runtime.link_guard import Bond
from actors.runtime.p2p.link import LinkEnd, Understand
from actors.runtime.stubs.stub import StubContext
from fsm.engine import Step
from fsm.machines.p2p_connection import State
from fsm.machines.sync.observer_copy import State as CopyState
from fsm.p2p import link_io as do
from fsm.p2p.link_io import (
    InvitationAnswered,
    ObjectCreated,
    ObjectRefused,
    ObserveRefused,
    PeerObjectDeleted,
    PeerObjectSeen,
    RowReported,
    SideInput,
)
from fsm.p2p.negotiation import negotiation_of
from fsm.p2p.peer_identity import Believed
from fsm.sync.copy import ObserverCore
from fsm.sync.value.value import check_path
from specs.addresses.address import domain_of, is_below, runtime_of, status_of
from specs.bodies.link import LinkStatus
from specs.bodies.sync import (
    Change,
    ChangeObject,
    ConnectionData,
    ConnectionDescription,
    CreateObject,
    IceCandidate,
    InviteObservers,
    LinkRow,
    LinkSecurity,
    NewObject,
    ObjectName,
    Observe,
    Snapshot,
)
from specs.bodies.word import DescriptionType
from specs.errors import BadMessageError
from specs.jsonvalue import Json, JsonObject
from specs.message import Message, MessageType
from specs.reply_code import LAST_SUCCESS, PASSING
from specs.trace import Fact, Kind, Op
from transports.bodies import read_body, write_body

__all__ = [
    "LinkObjects",
    "Signalling",
    "invitation_answered",
    "object_created",
    "read_connection",
    "read_snapshot",
    "row_read",
]

_NAME: Final = "P2PConnection"
_ARRAY: Final = "array"
_MID: Final = "0"
"""Name of the only media section of a session description."""


@final
class Signalling:
    """Writes a stub's messages; all are from the stub's own address.

    Attributes:
        url: That address.
    """

    def __init__(self, context: StubContext) -> None:
        self.url = context.url
        self._context = context
        self._runtime = context.config.runtime
        self._manager = f"{self._runtime}/sm"
        domain = domain_of(self._runtime)
        self._schema = f"hyperty-catalogue://catalogue.{domain}/.well-known/dataschema/Connection"

    def _message(self, kind: MessageType, to: str, body: JsonObject) -> Message:
        url = self._context.url
        return Message(self._context.ids.next(url), kind, url, to, body)

    def status(self, remote: str, link: str, state: State, why: str) -> Message:
        """Write the status event of a link's step (C-13).

        Args:
            remote: Address of the remote runtime.
            link: Name of the link.
            state: State of the link.
            why: The reason.
        """
        kind = MessageType.CREATE if state is State.CREATED else MessageType.UPDATE
        body = LinkStatus(state.value, remote, why or None, link)
        return self._message(kind, status_of(self._context.url), write_body(body))

    def ask_row(self, remote: str) -> Message:
        """Ask the registry for its row of the remote runtime (P2P-18)."""
        return self._message(
            MessageType.READ, f"{self._runtime}/registry", write_body(ObjectName(remote))
        )

    def over(self, link: str) -> Message:
        """Notify the registry that a link has ended for good (I-P19)."""
        return self._message(
            MessageType.DELETE, f"{self._runtime}/registry", write_body(ObjectName(link))
        )

    def create_object(self, description: str) -> Message:
        """Create the own Connection object (M-32); `description`: offer or answer."""
        value = NewObject(
            self._context.url,
            self._value("", description),
            self._runtime,
            name=_NAME,
            resources=("data",),
        )
        body = CreateObject(value, self._schema, p2p=False)
        return self._message(MessageType.CREATE, self._manager, write_body(body))

    def invite(self, url: str, peer: str) -> Message:
        """Invite the peer to observe the own object (M-33).

        Args:
            url: Address of the own object.
            peer: Address of the peer.
        """
        entry: JsonObject = {"runtime": self._runtime, "reporter": self._context.url}
        body = InviteObservers(url, self._schema, (peer,), entry)
        return self._message(MessageType.CREATE, self._manager, write_body(body))

    def observe(self, url: str) -> Message:
        """Observe the peer's object (M-36)."""
        body = write_body(Observe(url, self._schema))
        return self._message(MessageType.SUBSCRIBE, self._manager, body)

    def shown_anew(self, message: Message) -> str | None:
        """Return the object that the sync manager shows again by a message; None: it does not."""
        is_shown = message.from_ == self._manager and message.type is MessageType.UPDATE
        url = message.body.get("resource") if is_shown else None
        return url if isinstance(url, str) else None

    def read(self, url: str) -> Message:
        """Read the peer's object after a gap (M-41)."""
        return self._message(MessageType.READ, url, {})

    def offer(self, url: str, data: ConnectionData, security: LinkSecurity) -> list[Message]:
        """Write session description and candidates into the own object, then the signature of it.

        Args:
            url: Address of the own object.
            data: What it shall hold.
            security: The signature, and what belongs to it.
        """
        described, changes = data.connection_description, list[ChangeObject]()
        if described is not None and described.sdp is not None:
            changes.append(ChangeObject(url, "connectionDescription", write_body(described)))
        if data.candidates:
            listed: list[Json] = [write_body(candidate) for candidate in data.candidates]
            changes.append(ChangeObject(url, "candidates", listed, _ARRAY, "add"))
        changes.append(ChangeObject(url, "security", write_body(security)))
        return [self._change(one) for one in changes]

    def trickle(self, url: str, candidate: IceCandidate) -> Message:
        """Add a candidate of ICE to the own object (M-40).

        Args:
            url: Address of the own object.
            candidate: The candidate.
        """
        added: list[Json] = [write_body(candidate)]
        return self._change(ChangeObject(url, "iceCandidates", added, _ARRAY, "add"))

    def _change(self, body: ChangeObject) -> Message:
        return self._message(MessageType.UPDATE, self._manager, write_body(body))

    def plead(self, url: str, status: str) -> Message:
        """Write the own object's status.

        Args:
            url: Address of the own object.
            status: The status.
        """
        return self._change(ChangeObject(url, "status", status))

    def offer_anew(self, url: str, status: str, description: str) -> Message:
        """Take candidates and signature out of the own object, under a new status (M-40).

        It is one change: no peer ever sees an old candidate under the new status.

        Args:
            url: Address of the own object.
            status: The status.
            description: Offer or answer.
        """
        return self._change(ChangeObject(url, value=self._value(status, description)))

    def _value(self, status: str, description: str) -> JsonObject:
        return write_body(
            ConnectionData(self._context.url, status, ConnectionDescription(description))
        )

    def stop_observing(self, url: str) -> Message:
        """Leave the peer's object (M-42)."""
        return self._message(MessageType.UNSUBSCRIBE, self._manager, write_body(ObjectName(url)))

    def delete(self, url: str) -> Message:
        """Delete the own object (M-46)."""
        return self._message(MessageType.DELETE, self._manager, write_body(ObjectName(url)))


def _why(answer: Message) -> str:
    description = answer.body.get("description")
    return description if isinstance(description, str) else f"refused with {answer.code}"


def object_created(answer: Message) -> SideInput:
    """Understand the answer to `create_object`."""
    url = answer.body.get("resource")
    if answer.code > LAST_SUCCESS or not isinstance(url, str):
        return ObjectRefused(_why(answer))
    return ObjectCreated(url)


def invitation_answered(answer: Message) -> SideInput:
    """Understand the answer to `invite`."""
    return InvitationAnswered(answer.code, _why(answer) if answer.code > LAST_SUCCESS else "")


def row_read(answer: Message) -> SideInput:
    """Understand the answer to `ask_row`: no row, or none that is readable, is none."""
    try:
        row = read_body(attrs.evolve(answer, body=_value(answer)), LinkRow)
    except BadMessageError:
        return RowReported(has_own_request=False)
    return RowReported(row.role == "requester" and row.status != State.FAILED.value)


def read_snapshot(answer: Message) -> Snapshot | ObserveRefused:
    """Understand the answer to `observe` or `read`."""
    if answer.code > LAST_SUCCESS:
        return ObserveRefused(_why(answer))
    try:
        return read_body(attrs.evolve(answer, body=_value(answer)), Snapshot)
    except BadMessageError as exc:
        return ObserveRefused(exc.reason)


def read_connection(message: Message, data: JsonObject) -> ConnectionData | ObserveRefused:
    """Understand the value of a Connection object that came with `message`.

    Args:
        message: The message.
        data: Value of the object.
    """
    try:
        return read_body(attrs.evolve(message, body=data), ConnectionData)
    except BadMessageError as exc:
        return ObserveRefused(exc.reason)


def _value(answer: Message) -> JsonObject:
    value = answer.body.get("value")
    return value if isinstance(value, dict) else {}


_CHANGES: Final = "changes"


_OfCopy: TypeAlias = Callable[[ObserverCore, float], None]
"""Lets something happen to a copy, at a time."""


@final
@attrs.frozen
class _CopyPort:
    """The port of the copy of a peer's object."""

    stub: str
    side: LinkEnd
    tracer: Tracer
    reads: Callable[[int], None]

    def step(self, step: Step) -> None:
        self.tracer.step(self.stub, step)

    def show(self, version: int, data: JsonObject, change: Change | None) -> None:
        del data, change
        url = self.side.peer_object
        fact = Fact(k=Kind.OBJ, op=Op.APPLY, key=url, version=version, by=self.stub)
        self.tracer.record(self.side.name, fact)

    def read(self, number: int) -> None:
        self.reads(number)

    def end(self, why: str) -> None:
        del why  # who gives up knows


@final
class LinkObjects:
    """Writes the requests of all ends of one stub, and understands what comes of them."""

    def __init__(self, signalling: Signalling, description: str, context: StubContext) -> None:
        self._signalling = signalling
        self._description = description
        self._tracer = context.tracer
        self._guard = context.guard()
        self._unverified: list[tuple[LinkEnd, ConnectionData]] = []
        self._fetching: set[str] = set()
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
        """Write what an effect asks of the sync manager or the registry.

        Args:
            end: End of the link.
            effect: The effect.
        """
        match effect:
            case do.AskRow():
                return [(self._signalling.ask_row(end.remote), row_read)]
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
            case _:
                changes = self._changes(end, url, effect)
                return [(change, _nothing) for change in changes]

    def _changes(self, end: LinkEnd, url: str, effect: do.SideEffect) -> list[Message]:
        match effect:
            case do.Offer(candidates, sdp):
                described = ConnectionDescription(self._description, sdp)
                data = ConnectionData(self._signalling.url, "", described, candidates)
                signed = self._guard.signed(data, self._own_bond(end, url))
                end.own_sdp = sdp
                return self._signalling.offer(url, data, signed)
            case do.Trickle(candidate, host):
                return self._trickled(end, url, IceCandidate(candidate, "-", _MID, 0, host))
            case do.Plead(status):
                return [self._signalling.plead(url, status)]
            case do.Renew(_, status):
                return [self._signalling.offer_anew(url, status, self._description)]
            case _:
                return []

    def _trickled(self, end: LinkEnd, url: str, candidate: IceCandidate) -> list[Message]:
        if end.own_sdp is None:
            return []
        signed = self._guard.signed_ice(candidate, end.own_sdp, self._own_bond(end, url))
        return [self._signalling.trickle(url, signed)]

    def _own_bond(self, end: LinkEnd, url: str) -> Bond:
        is_answer = self._description == DescriptionType.ANSWER.value
        return Bond(
            signer=runtime_of(end.name),
            reader=end.remote,
            object=url,
            answers=(end.peer_object or "") if is_answer else "",
            negotiation=end.negotiation,
        )

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
        self._do(end, lambda copy, now: copy.give_up("the observer leaves", now))

    # --- what is observed -------------------------------------------------------------------

    def _observe(self, end: LinkEnd, url: str) -> Message:
        end.peer_object = url
        # Its link shows whether the peer is there: a quiet copy needs not ask.
        stub = self._signalling.url
        port = _CopyPort(stub, end, self._tracer, partial(self._read, end, url))
        end.copy = ObserverCore(url, stub, port, quiet=math.inf)
        self._watched[f"{url}/{_CHANGES}"] = end
        self._do(end, ObserverCore.begin)
        return self._signalling.observe(url)

    def _observed(self, end: LinkEnd, answer: Message) -> SideInput | None:
        """Understand the answer to the subscription."""
        snapshot = read_snapshot(answer)
        if isinstance(snapshot, ObserveRefused):
            self._do(end, lambda copy, now: copy.give_up(snapshot.why, now))
            return snapshot
        return self._seen(end, answer, lambda copy, now: copy.become(snapshot, now))

    def _was_read(self, end: LinkEnd, read: int, answer: Message) -> SideInput | None:
        """Understand the answer to a read: what fails for now is tried again (SYN-17)."""
        snapshot = read_snapshot(answer)
        if isinstance(snapshot, ObserveRefused) and answer.code in PASSING:
            self._do(end, lambda copy, now: copy.read_failed(read, snapshot.why, now))
            return None
        return self._observed(end, answer)

    def changed(self, end: LinkEnd, event: Message) -> SideInput | None:
        """Take a change of the peer's object; only its reporter's is one (I-D1).

        Args:
            end: End of the link.
            event: The message.
        """
        url = end.peer_object
        if self._signalling.shown_anew(event) is not None:
            return self._observed(end, event)
        if url is None or not is_below(event.from_, url):
            return None
        if event.type is MessageType.DELETE:
            self._do(end, ObserverCore.delete)
            self._forget(end, url)
            return PeerObjectDeleted()
        try:
            change = read_body(event, Change)
            check_path(change.attribute)
        except BadMessageError:
            return None
        return self._seen(end, event, lambda copy, now: copy.change(change, now))

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
        self._do(end, ObserverCore.time_over)
        is_over = end.copy is not None and end.copy.state is CopyState.DELETED
        return ObserveRefused("no snapshot came in time") if is_over else None

    # --- the copy ---------------------------------------------------------------------------

    def _seen(self, end: LinkEnd, source: Message, act: _OfCopy) -> SideInput | None:
        """Do what may bring a new value, and say what the newest one means."""
        value = self._do(end, act)
        if value is None:
            return None
        data = read_connection(source, value)
        if isinstance(data, ObserveRefused):
            return data
        end.seen = data
        return self._verified(end, data)

    def _verified(self, end: LinkEnd, data: ConnectionData) -> PeerObjectSeen:
        """Return the input that an offer or answer is: unsigned until its keys are fetched.

        What is believed is not verified again when only the status changes. What is not may be
        believed later, by other keys.
        """
        is_answer = self._description == DescriptionType.OFFER.value
        bond = Bond(
            signer=end.remote,
            reader=runtime_of(end.name),
            object=end.peer_object or "",
            answers=(end.own_object or "") if is_answer else "",
            negotiation=negotiation_of(data.status),
        )
        described = data.connection_description
        offered = (data.owner, described, data.candidates, data.security, bond)
        if end.believed is not None:
            verified, standing = end.believed
            if verified == offered and trio.current_time() < standing.until:
                return PeerObjectSeen(data, standing, self._guard.believed_ice(data, bond))
        if self._guard.lacks_keys(data):
            if end.name not in self._fetching:
                self._fetching.add(end.name)
                self._unverified.append((end, data))
            return PeerObjectSeen(data)
        found = self._guard.standing(data, bond)
        if not isinstance(found, Believed):
            return PeerObjectSeen(data, found)
        end.believed = offered, found
        return PeerObjectSeen(data, found, self._guard.believed_ice(data, bond))

    def take_unverified(self) -> list[tuple[LinkEnd, ConnectionData]]:
        """Return, each once, what needs keys that are not here to be verified."""
        unverified, self._unverified = self._unverified, []
        return unverified

    def seen_again(self, end: LinkEnd) -> SideInput | None:
        """Return the input that the newest value is, now that keys were fetched."""
        self._fetching.discard(end.name)
        if end.seen is None or end.peer_object is None:
            return None
        return self._verified(end, end.seen)

    def _do(self, end: LinkEnd, act: _OfCopy) -> JsonObject | None:
        """Let something happen to the copy of an end; return its value if that is new."""
        copy = end.copy
        if copy is None or end.peer_object is None:
            return None
        before = copy.version
        act(copy, trio.current_time())
        self._wait(end, copy.deadline())
        return copy.data if copy.version > before else None

    def _read(self, end: LinkEnd, url: str, number: int) -> None:
        request = self._signalling.read(url)
        self._reads.append((end, request, lambda answer: self._was_read(end, number, answer)))

    def _wait(self, end: LinkEnd, until: float) -> None:
        if until < math.inf:
            self._waiting[end] = until
        else:
            self._waiting.pop(end, None)


def _created(end: LinkEnd, answer: Message) -> SideInput:
    created = object_created(answer)
    if isinstance(created, ObjectCreated):
        end.own_object = created.url
    return created


def _nothing(answer: Message) -> None:
    del answer
