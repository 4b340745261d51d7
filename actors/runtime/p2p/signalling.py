"""One end of a P2P link in its stub: messages of the set-up, own and peer's Connection object.

`EndHost` is the port of the core of an end, of a requester as of a handler. It writes and reads
the messages (M-06, 07, 32..47); it reports one Connection object and observes the other one
(P2P-07..12). What the core asks for is queued, and done in order by `perform`.
"""

import math
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVarTuple

import attrs
import trio
from typing_extensions import override

from actors.keys.base64url import read_base64url
from actors.kit.errors import ActorStoppedError
from actors.kit.trace import Tracer
from actors.runtime.link_guard import Scope
from actors.runtime.p2p.handshake import ProvenLink
from actors.runtime.p2p.link import P2PLink
from actors.runtime.p2p.link_work import LinkWork
from actors.runtime.stubs.stub import PortHost
from fsm.effects import deferred
from fsm.engine import Step
from fsm.machines.p2p_connection import State
from fsm.machines.sync.observer_copy import State as CopyState
from fsm.p2p.dialling import UNSIGNED, Believed, ChannelAnswer
from fsm.p2p.link_end import LinkEnd, LinkPort, LinkTerms, Opening, Role, negotiation_of
from fsm.sync.copy import CopyPort, ObserverCore
from fsm.sync.value.value import check_path
from specs.addresses.address import domain_of, is_below, status_of
from specs.bodies import object as bodies
from specs.bodies.link import LinkStatus
from specs.bodies.word import DescriptionType
from specs.errors import BadMessageError
from specs.identity import SenderIdentity
from specs.jsonvalue import Json, JsonObject
from specs.message import Message, MessageType, reason_in
from specs.reply_code import LAST_SUCCESS, PASSING, Code
from specs.trace import Fact, Kind, Op
from transports.bodies import read_body, read_object, write_body
from transports.errors import CloseReason
from transports.link import Link

if TYPE_CHECKING:
    from actors.runtime.p2p.stub import P2PStub

Ts = TypeVarTuple("Ts")

_NAME: Final = "P2PConnection"
_ARRAY: Final = "array"
_MID: Final = "0"
"""Identifier of the only media section in a WebRTC session description."""
_CHANGES: Final = "changes"


def resent_object(message: Message, runtime: str) -> str | None:
    """Return the Connection object that the sync manager sends again; None: it sends none."""
    is_shown = message.from_ == f"{runtime}/sm" and message.type is MessageType.UPDATE
    url = message.body.get("resource") if is_shown else None
    return url if isinstance(url, str) else None


class EndHost(PortHost, LinkPort):
    """Runs the core of one end of one link: its messages, timers and tasks.

    Attributes:
        core: The core of the end, which decides.
        name: Address of the end: PQ or PC.
        remote: The other runtime.
        tls: The certificates of both ends, shared with the tasks that dial and accept.
        identity: Identity of the peer; before a proof, only its address.
        proven: Links that are proven and not yet used or closed, by name.
        link: The link in use.
        invitation: The unanswered invitation of the peer; None: there is none.
        command: The unanswered command of the registry; None: there is none.
        own_object: The Connection object this end reports.
        peer_object: The Connection object of the peer, which this end observes.
        seen: The newest value of the peer's object; None: there is none.
    """

    def __init__(self, stub: "P2PStub", terms: LinkTerms, role: Role, offer: str = "") -> None:
        self.stub = stub
        self.core = LinkEnd(terms, role, stub.policy, self, offer)
        self.name = terms.name
        self.remote = terms.remote
        self.tls = stub.context.guard().tls()
        self.is_requester = role is Role.REQUESTER
        self.identity = SenderIdentity(terms.remote)
        self.proven = dict[str, Link]()
        self.link: P2PLink | None = None
        self.invitation: Message | None = None
        self.command: Message | None = None
        self.own_object: str | None = None
        self.peer_object: str | None = None
        self.seen: bodies.ConnectionData | None = None
        self.due = deque()
        self._context = stub.context
        self._guard = stub.context.guard()
        self._own_sdp: str | None = None
        self._copy: ObserverCore | None = None
        self._believed: tuple[object, Believed] | None = None
        self._is_fetching = False
        self._work = LinkWork(self)

    async def start(self) -> None:
        """Start to set up a link."""
        self.stub.spawn(self._work.run)
        self.core.start(trio.current_time())
        await self.perform()

    def deadline(self) -> float:
        """Return when `time_over` is due; infinity: never."""
        of_copy = math.inf if self._copy is None else self._copy.deadline()
        return min(self.core.deadline(), of_copy)

    def time_over(self) -> None:
        """Call the core at a timeout: repeat a read, or end the set-up."""
        now = trio.current_time()
        if self._copy is not None and self._copy.deadline() <= now:
            self._copy.time_over(now)
            if self._copy.state is CopyState.DELETED:
                self.core.observe_refused("no snapshot came in time")
        self.core.time_over(now)

    def crash(self) -> None:
        """End all state machines of this end after a crash; trace that, and do nothing else."""
        self._leave_copy()
        self.core.disconnect("the stub is gone")
        for act in self.due:
            if act.func == self._trace_step:
                act()
        self.due.clear()

    # --- tasks of this end --------------------------------------------------------------------

    async def report(self, event: Callable[[], None]) -> None:
        """Pass an event to the core in the task of the stub, unless this end has ended."""
        await self.stub.me.tell(partial(self._take_event, event))

    async def _take_event(self, event: Callable[[], None]) -> None:
        if not self.core.has_ended:
            event()
            await self.perform()

    async def report_link(self, link: ProvenLink, opening: Opening, negotiation: int) -> None:
        """Pass a link with a proven peer to the core; close the link if this end has ended.

        Args:
            link: The link; the core decides whether it is used.
            opening: The end that dialled.
            negotiation: Number of the negotiation of the candidate.
        """
        name, pipe = link
        if self.core.has_ended:
            await trio.aclose_forcefully(pipe)
            return

        def tell() -> None:
            self.core.link_opened(name, opening, negotiation, now=trio.current_time())

        self.proven[name] = pipe
        try:
            await self.report(tell)
        except BaseException:
            self.proven.pop(name, None)
            await trio.aclose_forcefully(pipe)
            raise

    async def close_unused(self) -> None:
        """Close links with verified peers that were opened at the same time and are not needed."""
        pipes, self.proven = self.proven, {}
        for pipe in pipes.values():
            await trio.aclose_forcefully(pipe)

    # --- messages: all are from the stub's own address ----------------------------------------

    def _message(self, kind: MessageType, to: str, body: attrs.AttrsInstance) -> Message:
        url = self._context.url
        return Message(self._context.ids.next(url), kind, url, to, write_body(body))

    @property
    def _schema(self) -> str:
        domain = domain_of(self.core.terms.own)
        return f"hyperty-catalogue://catalogue.{domain}/.well-known/dataschema/Connection"

    def _to_manager(self, kind: MessageType, body: attrs.AttrsInstance) -> Message:
        return self._message(kind, f"{self.core.terms.own}/sm", body)

    async def _write(self, *changes: bodies.ChangeObject) -> None:
        """Publish a change of the own Connection object (M-40)."""
        for change in changes:
            await self._context.bus.post(self._to_manager(MessageType.UPDATE, change))

    def _description(self, sdp: str | None = None) -> bodies.ConnectionDescription:
        kind = DescriptionType.OFFER if self.is_requester else DescriptionType.ANSWER
        return bodies.ConnectionDescription(kind.value, sdp)

    def _value(self, status: str) -> JsonObject:
        description = self._description()
        return write_body(bodies.ConnectionData(self._context.url, status, description))

    @override
    def step(self, step: Step) -> None:
        self.due.append(partial(self._trace_step, step))

    def _trace_step(self, step: Step) -> None:
        self._context.tracer.step(self._context.url, step)

    @override
    @deferred
    async def announce(self, state: State, why: str = "") -> None:
        kind = MessageType.CREATE if state is State.CREATED else MessageType.UPDATE
        body = LinkStatus(state.value, self.remote, why or None, self.name)
        await self._context.bus.post(self._message(kind, status_of(self._context.url), body))

    @override
    @deferred
    def answer_command(self, code: Code, why: str = "") -> None:
        command, self.command = self.command, None
        if command is not None:
            self.stub.spawn(self.stub.answer_when_clean, command, code, why)

    @override
    @deferred
    async def ask_row(self) -> None:
        registry = f"{self.core.terms.own}/registry"
        request = self._message(MessageType.READ, registry, bodies.ObjectName(self.remote))
        await self.stub.ask(self, request, self._row_read)

    def _row_read(self, answer: Message) -> None:
        """Handle the answer to `ask_row`, the link's entry; an unreadable one counts as none."""
        try:
            row = read_object(_value_of(answer), bodies.LinkRow, "value")
        except BadMessageError:
            self.core.row_reported(has_own_request=False)
            return
        is_active = row.status != State.FAILED.value
        self.core.row_reported(has_own_request=row.role == "requester" and is_active)

    @override
    @deferred
    async def create_object(self) -> None:
        url, runtime = self._context.url, self.core.terms.own
        value = bodies.NewObject(url, self._value(""), runtime, name=_NAME, resources=("data",))
        body = bodies.CreateObject(value, self._schema, p2p=False)
        await self.stub.ask(self, self._to_manager(MessageType.CREATE, body), self._take_created)

    def _take_created(self, answer: Message) -> None:
        url = answer.body.get("resource")
        if answer.code > LAST_SUCCESS or not isinstance(url, str):
            self.core.object_refused(_why(answer))
        else:
            self.own_object = url
            self.core.object_created(trio.current_time())

    @override
    @deferred
    async def invite(self) -> None:
        if self.own_object is not None:
            runtime, url = self.core.terms.own, self._context.url
            entry: JsonObject = {"runtime": runtime, "reporter": url}
            peer = self.core.terms.peer
            body = bodies.InviteObservers(self.own_object, self._schema, (peer,), entry)
            await self.stub.ask(
                self, self._to_manager(MessageType.CREATE, body), self._take_invited
            )

    def _take_invited(self, answer: Message) -> None:
        self.core.invitation_answered(
            answer.code, _why(answer) if answer.code > LAST_SUCCESS else ""
        )

    @override
    @deferred
    async def answer_invitation(self, url: str, code: Code, why: str = "") -> None:
        invitation, self.invitation = self.invitation, None
        if invitation is not None:
            await self.stub.answer(invitation, code, why)

    # --- the own object -----------------------------------------------------------------------

    @override
    @deferred
    async def offer(self, candidates: tuple[bodies.Candidate, ...], sdp: str | None = None) -> None:
        url = self.own_object
        if url is None:
            return
        session = self._description(sdp)
        data = bodies.ConnectionData(self._context.url, "", session, candidates)
        signed = self._guard.sign(data, self._own_scope())
        self._own_sdp = sdp
        changes = list[bodies.ChangeObject]()
        if sdp is not None:
            changes.append(bodies.ChangeObject(url, "connectionDescription", write_body(session)))
        if candidates:
            added: list[Json] = [write_body(candidate) for candidate in candidates]
            changes.append(bodies.ChangeObject(url, "candidates", added, _ARRAY, "add"))
        await self._write(*changes, bodies.ChangeObject(url, "security", write_body(signed)))

    @override
    @deferred
    async def trickle(self, candidate: str, host: str | None = None) -> None:
        url = self.own_object
        if url is not None and self._own_sdp is not None:
            bare = bodies.IceCandidate(candidate, "-", _MID, 0, host)
            signed = self._guard.signed_ice(
                bare, self._own_sdp, self._scope(self.core.negotiation, is_own=True)
            )
            added: list[Json] = [write_body(signed)]
            await self._write(bodies.ChangeObject(url, "iceCandidates", added, _ARRAY, "add"))

    @override
    @deferred
    async def request_dial(self, status: str) -> None:
        if self.own_object is not None:
            await self._write(bodies.ChangeObject(self.own_object, "status", status))

    @override
    @deferred
    async def renew(self, negotiation: int, status: str) -> None:
        self._work.cancel()
        self._work = LinkWork(self)
        self.stub.spawn(self._work.run)
        if self.own_object is not None:
            # One change, so that no peer sees an old candidate with the new status.
            await self._write(bodies.ChangeObject(self.own_object, value=self._value(status)))

    def _own_scope(self) -> Scope:
        return self._scope(self.core.negotiation, is_own=True)

    def _scope(self, negotiation: int, *, is_own: bool) -> Scope:
        """Return the scope of the signatures of the own Connection object, or of the peer's."""
        own = self.core.terms.own, self.own_object or ""
        peer = self.remote, self.peer_object or ""
        (signer, url), (reader, other) = (own, peer) if is_own else (peer, own)
        answers = "" if is_own is self.is_requester else other
        return Scope(
            signer=signer, reader=reader, object=url, answers=answers, negotiation=negotiation
        )

    @override
    @deferred
    async def withdraw(self) -> None:
        own, self.own_object = self.own_object, None
        peer = self.peer_object
        if peer is not None:
            self._leave_copy()
            self._forget(peer)
            request = self._to_manager(MessageType.UNSUBSCRIBE, bodies.ObjectName(peer))
            await self.stub.ask_withdrawal(self, request)
        if own is not None:
            request = self._to_manager(MessageType.DELETE, bodies.ObjectName(own))
            await self.stub.ask_withdrawal(self, request)

    @override
    @deferred
    async def end(self) -> None:
        self._work.cancel()
        await self.close_unused()
        await self.stub.end_removed(self.name)

    # --- the peer's object --------------------------------------------------------------------

    @override
    @deferred
    async def observe(self, url: str) -> None:
        stub = self._context.url
        port = _CopyPort(self, self._context.tracer, stub)
        self.peer_object = url
        # The link shows whether the peer is present, so a quiet copy needs no read.
        self._copy = ObserverCore(url, stub, port, quiet=math.inf)
        self.stub.watched[f"{url}/{_CHANGES}"] = self
        self._copy.begin(trio.current_time())
        request = self._to_manager(MessageType.SUBSCRIBE, bodies.Observe(url, self._schema))
        await self.stub.ask(self, request, self._take_observed)

    @deferred
    async def read(self, number: int) -> None:
        """Read the peer's Connection object again after a missing change (M-41)."""
        own, url = self._context.url, self.peer_object
        if url is not None:
            request = Message(self._context.ids.next(own), MessageType.READ, own, url, {})
            await self.stub.ask(self, request, partial(self._was_read, number))

    def _take_observed(self, answer: Message) -> None:
        """Handle the answer to the subscription to the peer's Connection object."""
        snapshot = _read_snapshot(answer)
        if isinstance(snapshot, str):
            self._see(ObserverCore.give_up, snapshot)
            self.core.observe_refused(snapshot)
        else:
            self._see(ObserverCore.become, snapshot)

    def _was_read(self, number: int, answer: Message) -> None:
        """Handle the answer to a read; repeat the read after a temporary failure (SYN-17)."""
        snapshot = _read_snapshot(answer)
        if isinstance(snapshot, str) and answer.code in PASSING:
            self._see(ObserverCore.read_failed, number, snapshot)
        else:
            self._take_observed(answer)

    def take_change(self, event: Message) -> None:
        """Handle a change of the peer's Connection object, if its reporter sent it (I-D1)."""
        url = self.peer_object
        if resent_object(event, self.core.terms.own) is not None:
            self._take_observed(event)
        elif url is None or not is_below(event.from_, url):
            return
        elif event.type is MessageType.DELETE:
            self._see(ObserverCore.delete)
            self._forget(url)
            self.core.peer_object_deleted()
        else:
            try:
                change = read_body(event, bodies.Change)
                check_path(change.attribute)
            except BadMessageError:
                return
            self._see(ObserverCore.change, change)

    def _see(self, act: Callable[[ObserverCore, *Ts, float], None], *args: *Ts) -> None:
        """Call a method of the peer object's copy, and pass a new value to the core."""
        copy = self._copy
        if copy is None or self.peer_object is None:
            return
        before = copy.version
        act(copy, *args, trio.current_time())
        if copy.version > before:
            try:
                self.seen = read_object(copy.data, bodies.ConnectionData, "value")
            except BadMessageError as exc:
                self.core.observe_refused(exc.reason)
                return
            self._see_verified(self.seen)

    def _see_verified(self, data: bodies.ConnectionData) -> None:
        """Verify an offer or answer and pass it to the core; unsigned until its keys are fetched.

        A verified offer is not verified again when only the status changes. A rejected one may be
        accepted later, by other keys.
        """
        guard, report = self._guard, partial(self.core.peer_object_seen, now=trio.current_time())
        scope = self._scope(negotiation_of(data.status), is_own=False)
        description = data.connection_description
        offered = (data.owner, description, data.candidates, data.security, scope)
        if self._believed is not None:
            verified, standing = self._believed
            if verified == offered and trio.current_time() < standing.until:
                report(data, standing, guard.believed_ice(data, scope))
                return
        if guard.lacks_keys(data):
            if not self._is_fetching:
                self._is_fetching = True
                self.stub.spawn(self._fetch_keys, data)
            report(data, UNSIGNED)
            return
        proof = guard.standing(data, scope)
        if isinstance(proof, Believed):
            self._believed = offered, proof
            report(data, proof, guard.believed_ice(data, scope))
        else:
            report(data, proof)

    async def _fetch_keys(self, data: bodies.ConnectionData) -> None:
        await self._guard.fetch_keys(data)
        with suppress(ActorStoppedError):
            await self.report(self.see_again)

    def see_again(self) -> None:
        """Verify the newest value again, after keys were fetched, and pass it to the core."""
        self._is_fetching = False
        if self.seen is not None and self.peer_object is not None:
            self._see_verified(self.seen)

    def _leave_copy(self) -> None:
        if self._copy is not None and self.peer_object is not None:
            self._copy.give_up("the observer leaves", trio.current_time())

    def _forget(self, url: str) -> None:
        self.stub.watched.pop(f"{url}/{_CHANGES}", None)
        self.peer_object = None

    # --- links --------------------------------------------------------------------------------

    @override
    @deferred
    def pin(self, peer: Believed) -> None:
        if peer.certificate:
            self.tls.pin(read_base64url(peer.certificate))
        self.identity = peer.identity

    @override
    @deferred
    def listen(self, offer: str | None = None) -> None:
        self._work.listen(offer)

    @override
    @deferred
    def hear_ice(self, candidate: str) -> None:
        self._work.hear_ice(candidate)

    @override
    @deferred
    def dial(self, candidate: bodies.Candidate | ChannelAnswer, attempt: int) -> None:
        self._work.dial(candidate, attempt)

    @override
    @deferred
    def use_link(self, link: str) -> None:
        self._trace_link(Op.OPEN, link)
        proven = link, self.proven.pop(link)
        self.link = P2PLink(proven, self._context, self.name, self.identity)
        self.stub.spawn(self._run, self.link)

    async def _run(self, link: P2PLink) -> None:
        loss, why = await link.run()

        def tell() -> None:
            self.core.link_lost(link.name, loss, why, now=trio.current_time())

        # A stub that is being undeployed has reported the reason already.
        with suppress(ActorStoppedError):
            await self.report(tell)

    @override
    @deferred
    async def close_link(self, link: str) -> None:
        if link in self.proven:
            await self.proven.pop(link).aclose(CloseReason.GOING_AWAY)
            return
        if self.link is not None:
            await self.link.say_goodbye()
        await self._release()

    @override
    @deferred
    async def release_link(self, link: str) -> None:
        await self._release()

    async def _release(self) -> None:
        link, self.link = self.link, None
        if link is not None:
            link.break_off()
            self._trace_link(Op.CLOSE, link.name)
            # Also without messages: the bus must know that none is outstanding by this link.
            await self._context.bus.hand_back(link.take_unacknowledged(), self.name)

    def _trace_link(self, op: Op, link: str) -> None:
        own, remote = self.core.terms.own, self.remote
        fact = Fact(k=Kind.LINK, op=op, link=link, a=own, b=remote, kind="p2p", stub=self.name)
        self._context.tracer.record(self._context.url, fact)


@attrs.frozen
class _CopyPort(CopyPort):
    """The port by which the copy of a peer's Connection object reports and asks."""

    _end: EndHost
    _tracer: Tracer
    _stub: str

    @override
    def step(self, step: Step) -> None:
        self._tracer.step(self._stub, step)

    @override
    def show(self, version: int, data: JsonObject, change: bodies.Change | None) -> None:
        url, name = self._end.peer_object, self._end.name
        fact = Fact(k=Kind.OBJ, op=Op.APPLY, key=url, version=version, by=self._stub)
        self._tracer.record(name, fact)

    @override
    def read(self, number: int) -> None:
        self._end.read(number)

    @override
    def end(self, why: str) -> None:
        del why  # the caller knows


def _why(answer: Message) -> str:
    return reason_in(answer) or f"refused with {answer.code}"


def _value_of(answer: Message) -> JsonObject:
    value = answer.body.get("value")
    return value if isinstance(value, dict) else {}


def _read_snapshot(answer: Message) -> bodies.Snapshot | str:
    """Return the Connection object in an answer, or why the answer has none."""
    if answer.code > LAST_SUCCESS:
        return _why(answer)
    try:
        return read_object(_value_of(answer), bodies.Snapshot, "value")
    except BadMessageError as exc:
        return exc.reason
