"""The bus of a message node, through which every message of every link passes (MN-01, MN-03).

The bus checks each message of a link: normal form, session, source, routing loop, policy, in this
order. It answers a refused request over the link of the sender, and counts any other refused
message. It sends an admitted message to sessions, to parts of the node or to other nodes.
`session/exchange.py` has the sessions and delivers messages to them. Links, parts and the task of
the bus call the bus; no call waits, so no call interrupts another.
"""

import math
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Final, TypeVarTuple, cast

import attrs
import trio
from typing_extensions import override

from actors.kit.back_ends.requests import Asked
from actors.kit.log import get_logger
from actors.kit.supervision.actor import Actor, Reply
from actors.node import messages
from actors.node.components import LocalService
from actors.node.links.acceptor import Claim as SessionClaim
from actors.node.links.acceptor import Item
from actors.node.links.connection import Connection
from actors.node.policy_hook import Asker
from actors.node.session.control import Control, Gate
from actors.node.session.exchange import Exchange
from actors.node.session.session import Session
from fsm.bus.node_routing import Admitted, Nobody, Refusal, ToRuntimes
from fsm.effects import Refused
from fsm.machines.session import State
from fsm.registry.records import users_of
from fsm.session.assertion import is_login_of
from fsm.session.node_session import RESTARTED
from fsm.session.node_session_io import OutboundMessage, PeerForm
from fsm.sync.subscriptions import HEEDED
from specs.addresses.address import canonical, domain_of, last_segment, session_manager
from specs.bodies.session import LOGIN_TOKEN, SESSION_TOKEN
from specs.errors import BadMessageError, BadUrlError
from specs.identity import said_by
from specs.jsonvalue import JsonObject
from specs.message import Message, MessageType, identified, refuse
from specs.reply_code import Code, DropReason, Ground, LinkEnd
from specs.routing import Check
from specs.trace import Op
from transports.codec import BadLine, encode
from transports.errors import CloseReason

if TYPE_CHECKING:
    from actors.node.group.group import Group

Ts = TypeVarTuple("Ts")

_OVER: Final = Refusal(Check.SESSION, "the credentials of the session are over; log in again")
_WRONG_TOKEN: Final = Refusal(
    Check.SESSION, "the message carries a token that is not that of its session"
)
_WRONG_LOGIN: Final = Refusal(
    Check.SESSION, "the message carries a login token that did not open its session"
)
_SESSION_TOKENS: Final = frozenset({SESSION_TOKEN})
_TOKENS: Final = frozenset({SESSION_TOKEN, LOGIN_TOKEN})
_NO_SESSION: Final = Refusal(Check.SESSION, "open a session first")


_log = get_logger("actors.node")


class NodeBus(Actor[messages.BusMessage]):
    """Message bus of a node: checks all messages, and routes them between sessions and components.

    Attributes:
        is_over: Whether the bus has ended or crashed.
        is_in_turn: Whether several calls form one turn, so that output is written at its end.

    Args:
        exchange: Sessions and links.
        control: Session control.
        services: Parts of the node that answer without waiting, by address.
        gate: Applies the policy once to each message.
        resume: Restores the stored sessions.
    """

    def __init__(
        self,
        exchange: Exchange,
        control: Control,
        services: dict[str, LocalService],
        gate: Gate,
        resume: Callable[[], Awaitable[None]],
    ) -> None:
        self._resume = resume
        self._exchange = exchange
        self._others = exchange.others
        self._is_alone = exchange.others.is_alone
        self._control = control
        self._services = services
        self._gate = gate
        self._trace = exchange.trace
        self._counters = exchange.trace.counters
        self._routing = exchange.tables.routing
        self._remembered = exchange.tables.remembered
        self._node = exchange.tables.addresses
        self._drained: Reply[None] | None = None
        self._awake_at = math.inf
        self._failure: Exception | None = None
        self.is_over = self.is_in_turn = False
        exchange.route = self.route

    @override
    async def start(self) -> None:
        for address in (self._node.session, *self._services):
            name, _, _ = last_segment(address).partition(".")
            self._exchange.components.serve(address, name)
        await self._resume()

    @override
    async def handle(self, message: messages.BusMessage) -> None:
        if self._failure is not None:
            raise self._failure
        message(self)

    def call(self, act: Callable[[*Ts], object], *args: *Ts) -> bool:
        """Call a method of the bus and write the output; return False if the bus has ended.

        An exception of the method crashes the bus, not the caller.
        """
        if self.is_over:
            return False
        try:
            act(*args)
            if not self.is_in_turn:
                self.end_turn()
        except Exception as exc:  # noqa: BLE001 - the bus crashes, not its caller
            self.fail(exc)
        return True

    def drain(self, done: Reply[None]) -> None:
        """Close every session, and accept no new one.

        Args:
            done: Is answered when every session has ended and the other parts and nodes know.
        """
        self._drained = done
        is_possible = self._others.leave()
        self._exchange.turn.hand_over()
        self._exchange.departure.begin(trio.current_time(), is_possible=is_possible)

    def sessions(self) -> tuple[messages.SessionView, ...]:
        """Return the current sessions."""
        sessions = self._exchange.sessions.items()
        return tuple(_view(self._exchange, *session) for session in sessions)

    @property
    def group(self) -> "Group":
        """The other nodes of the domain; only valid if the domain has several nodes."""
        return cast("Group", self._others)

    # ---- in

    def take_items(self, number: int, items: Sequence[Item]) -> None:
        """Process the items that one frame of a link contained.

        Args:
            number: Number of the link.
            items: The items, in order.
        """
        now = trio.current_time()
        session = self._exchange.note_life(number, now)
        if session is not None and session.core.is_over(now):
            self._refuse_expired(session, items)
            return
        for item in items:
            port = self._exchange.ports.get(number)
            if port is None:
                self._counters.drop(DropReason.SESSION_GONE)
            elif isinstance(item, BadLine):
                self._refuse_malformed(item, port)
            elif isinstance(item, SessionClaim):
                self._claim_session(item.opening, port)
            else:
                self._take_message(item, port)
            self._gate.settle()

    def _refuse_expired(self, session: Session, items: Sequence[Item]) -> None:
        """Refuse the items of a session whose credentials have expired, and end it (MN-05).

        Answers that do not fit in the link any more wait for the next login of the runtime.
        """
        for item in items:
            if isinstance(item, Message) and session.port is not None:
                self._gate.refuse(item, session.port, _OVER)
            else:
                self._counters.drop(DropReason.SESSION_GONE)
        session.tick()
        self._gate.settle()

    def _refuse_malformed(self, line: BadLine, port: Connection) -> None:
        self._counters.drop(DropReason.MALFORMED)
        if line.answer is not None:
            self._trace.record_refused_answer(line.answer, port.runtime or port.name, Ground.FORM)
            self._exchange.send_to_link(port, line.answer)

    def _claim_session(self, request: Message, port: Connection) -> None:
        """Give a link the session that it requests, or close the link."""
        self._take_control(self._control.claim, request, port)
        if self._exchange.session_of(port.number) is None:
            port.finish(CloseReason.REFUSED)

    def _take_message(self, message: Message, port: Connection) -> None:
        if message.to == self._node.session:
            self._take_control(self._control.receive, message, port)
            return
        session = self._exchange.session_of(port.number)
        body = message.body
        has_tokens = not _TOKENS.isdisjoint(body)
        if has_tokens:
            message = self._without_tokens(message)
        if session is not None:
            message = _with_sender(message, session.asker)
        self._trace.record_pass(Op.RCV, message, port.name)
        if session is None or session.core.state is not State.OPEN:
            self._gate.refuse(message, port, self._session_refusal(message))
            return
        if has_tokens and (refusal := self._token_refusal(body, session)) is not None:
            self._gate.refuse(message, port, refusal)
            self._exchange.record_failed_open(port)
            return
        refusal = self._admit_and_route(message, session.core.runtime, session.asker)
        if refusal is not None:
            self._gate.refuse(message, port, refusal)
            runtime = session.core.runtime
            may_stay = self._exchange.tables.rights.may_speak(runtime)
            if not may_stay or self._record_offence(refusal, runtime):
                session.close(port.number)
                port.finish(CloseReason.REFUSED)

    def _without_tokens(self, message: Message) -> Message:
        """Return a message without its tokens, which only the node may see (C-64)."""
        names = _TOKENS if self._exchange.has_login else _SESSION_TOKENS
        body = {key: value for key, value in message.body.items() if key not in names}
        return attrs.evolve(message, body=body)

    def _token_refusal(self, body: JsonObject, session: Session) -> Refusal | None:
        """Return the refusal of the tokens in a message, or None if they are valid (MN-05)."""
        token, login = body.get(SESSION_TOKEN), body.get(LOGIN_TOKEN)
        if token is not None and not (isinstance(token, str) and session.core.knows(token)):
            return _WRONG_TOKEN
        is_judged = login is not None and self._exchange.has_login
        if is_judged and not is_login_of(session.asker.identity, login):
            return _WRONG_LOGIN
        return None

    def _session_refusal(self, message: Message) -> Refusal:
        """Return the refusal of a message without a session; name the right node, if known."""
        target_domain = domain_of(message.to)
        if message.to != session_manager(target_domain):
            return _NO_SESSION
        own = domain_of(self._node.session)
        return Refusal(Check.SESSION, f"this is the node of {own}, and not that of {target_domain}")

    def take_foreign(self, message: Message, peer: str, stub: str) -> None:
        """Process a message that a stub of another domain has delivered, as if over a link.

        Args:
            message: The message; nothing of it was checked.
            peer: Address of the node of that domain.
            stub: Address of the stub.
        """
        asker = Asker(peer)
        message = _with_sender(message, asker)
        self._trace.record_pass(Op.RCV, message, stub)
        refusal = self._admit_and_route(message, peer, asker)
        if refusal is not None:
            self._gate.turn_back(message, peer, refusal)
            self._record_offence(refusal, peer)
        self._gate.settle()

    def _record_offence(self, refusal: Refusal, by: str) -> bool:
        """Count an offence of a foreign node; return whether the node is to leave (S14)."""
        return refusal.is_offence and self._exchange.foreign.record_offence(by)

    def _take_control(
        self, control: Callable[[Message, Connection], None], message: Message, port: Connection
    ) -> None:
        try:
            control(message, port)
        except BadMessageError as exc:
            if message.is_request:
                by = port.runtime or port.name
                self._trace.record_refusal(message, by, exc.code, exc.reason, Ground.FORM)
                self._exchange.send_to_link(port, refuse(message, exc.code, exc.reason))
            else:
                self._trace.drop(message, DropReason.MALFORMED)

    def _admit_and_route(self, message: Message, by: str, asker: Asker) -> Refusal | None:
        """Check and route a message of the session `by`; return its refusal, if any."""
        admission = self._remembered.admit(message, by)
        if isinstance(admission, Refusal):
            return admission
        ruled = self._gate.judge(message, asker)
        if isinstance(ruled, Refusal):
            return ruled
        message = ruled
        refusal = self._bind_addresses(admission, by)
        if refusal is None:
            self._counters.admitted += 1
            self._trace.record_admission(message, by)
            self._exchange.statuses.take_status(message, by)
            if message.type in HEEDED:
                self._exchange.tables.heed(message, by, trio.current_time())
            self.route(message, by)
        return refusal

    def _bind_addresses(self, admission: Admitted, by: str) -> Refusal | None:
        """Bind foreign addresses to the session that uses them (MN-13); return any refusal."""
        for address in admission.bind:
            tables = self._exchange.tables
            outcome = tables.allocation.bind(by, address)
            if isinstance(outcome, Refused):
                return Refusal(Check.SOURCE, outcome.why)
        return None

    # ---- out

    def route(self, message: Message, by: str | None) -> None:
        """Route a message that has passed all checks.

        Args:
            message: The message.
            by: Address of the sending session; None: the node itself made the message.
        """
        if self._others.keep(message, by):
            return
        match self._remembered.route(message, by):
            case ToRuntimes(runtimes) if len(runtimes) > self._exchange.fan_out:
                why = "more sessions subscribe to it than one message may reach"
                self._exchange.undeliverable(message, Code.TOO_LARGE, why, DropReason.OVERFLOW)
            case ToRuntimes(runtimes, is_published, nodes):
                if is_published:
                    self._trace.hop(Op.PUBLISH, message, targets=len(runtimes))
                entry = OutboundMessage(message, encode(message), {} if len(runtimes) > 1 else None)
                if self._is_alone:
                    self._exchange.deliver_to(runtimes, entry)
                else:
                    local_runtimes = self._others.send(entry, by, runtimes, nodes)
                    self._exchange.deliver_to(local_runtimes, entry)
            case str() as address:
                self._deliver_to_part(message, address, by)
            case Nobody(is_known=False) if self._others.look_up(message, by):
                pass
            case Nobody(is_known=False) if (
                self._is_returning and domain_of(message.to) == self._node.domain
            ):
                self._exchange.undeliverable(
                    message, Code.UNAVAILABLE, RESTARTED, DropReason.NO_TARGET
                )
            case Nobody(why):
                self._exchange.undeliverable(message, Code.NOT_FOUND, why, DropReason.NO_TARGET)

    @property
    def _is_returning(self) -> bool:
        return self._exchange.returning.is_on(trio.current_time())

    def emit(self, message: Message, to_runtime: str | None = None) -> None:
        """Route a message that a component of the node has made.

        Args:
            message: The message.
            to_runtime: The session that gets the answer; None: the address decides.
        """
        if to_runtime is not None:
            if to_runtime in self._exchange.requests_at_parts:
                self._exchange.requests_at_parts.take(to_runtime, -1, 0)
            self.answer(to_runtime, message)
        else:
            self.route(message, None)

    def _deliver_to_part(self, message: Message, address: str, by: str | None) -> None:
        """Deliver a request to a component of the node."""
        paths = self._exchange.foreign.paths
        if message.is_response and paths is not None and paths.take_answer(message):
            self._trace.hop(Op.CALLBACK, message)
            return
        if by is None or not message.is_request:
            self._trace.drop(message, DropReason.UNMATCHED)
            return
        self._trace.hop(Op.DELIVER, message, listener=address)
        service = self._services.get(address)
        objection = None if service is None else self._others.objection()
        if objection is not None:
            self.answer(by, refuse(message, objection.code, objection.why))
            return
        if service is None:
            self._ask(message, address, by)
            return
        answer: Message | None
        try:
            answer = service.receive(message, by)
        except BadMessageError as exc:
            answer = refuse(message, exc.code, exc.reason)
        if answer is not None:
            self.answer(by, answer)

    def answer(self, by: str, answer: Message) -> None:
        """Answer a runtime's request over its session, on behalf of a component of the node."""
        is_limit = answer.code in {Code.TOO_LARGE, Code.UNAVAILABLE}
        self._trace.record_refused_answer(answer, by, Ground.LIMIT if is_limit else Ground.SERVICE)
        self._exchange.send(by, answer)

    def _ask(self, message: Message, address: str, by: str) -> None:
        component = self._exchange.components.get(address)
        subject = _subject(message)
        if address == self._node.registry and subject is not None:
            self._claim_object(message, subject, by)
        owner = None if subject is None else self._routing.owner_of(subject)
        is_upstream = self._exchange.tables.form_of(by) is PeerForm.UPSTREAM
        session = self._exchange.sessions.get(by)
        identity = None if session is None else session.identity
        users = users_of(
            None if identity is None else identity.user,
            has_login=self._exchange.has_login and not is_upstream,
        )
        part_request = Asked(message, by, owner, is_upstream, users, self._is_returning)
        limit_refusal = self._exchange.requests_at_parts.refusal(by, 1, 0)
        if limit_refusal is None and component is not None and component.try_tell(part_request):
            self._exchange.requests_at_parts.take(by, 1, 0)
            return
        why = f"{address} cannot take requests now" if limit_refusal is None else limit_refusal.why
        self.answer(by, refuse(message, Code.UNAVAILABLE, why))

    def _claim_object(self, message: Message, subject: str, by: str) -> None:
        """Claim the data object of a registration; a refused claim refuses the registration."""
        value = message.body.get("value")
        reporter = value.get("reporter") if isinstance(value, dict) else None
        tables = self._exchange.tables
        if (
            message.type is MessageType.CREATE
            and isinstance(reporter, str)
            and tables.rights.may_register(subject, reporter, by)
        ):
            tables.allocation.claim(by, (subject,))

    # ---- turns and time

    def fail(self, error: Exception) -> None:
        """Crash the bus, because a call of this object has raised an exception."""
        self._failure = self._failure or error
        self.is_over = True
        self.wake()

    @override
    async def drained(self) -> None:
        if self._failure is not None:
            raise self._failure
        self._settle()

    def end_turn(self) -> None:
        """Write the output of the calls so far; wake the task of the bus for later work."""
        self._settle()
        if self._due() < self._awake_at:
            self.wake()

    def _settle(self) -> None:
        exchange = self._exchange
        if not self._is_alone:
            self._others.catch_up()
        if exchange.departure.has_begun:
            exchange.departure.settle(trio.current_time())
        if exchange.notices:
            exchange.settle_notices()
        if exchange.foreign.paths is not None:
            exchange.foreign.paths.settle()
        if not self._is_alone:
            self._others.settle()
        exchange.turn.write()
        if exchange.budget.is_exceeded:
            exchange.overload.check()
        if self._drained is not None and self._is_settled:
            self._drained.send(None)
            self._drained = None

    @property
    def _is_settled(self) -> bool:
        """True if components and other nodes have received all notices about sessions."""
        is_known = self._others.is_settled and self._exchange.departure.is_over
        return is_known and not self._exchange.notices

    @override
    def deadline(self) -> float:
        self._awake_at = self._due()
        return self._awake_at

    def _due(self) -> float:
        exchange = self._exchange
        due = min(exchange.deadline(), exchange.departure.deadline(), self._control.deadline())
        return due if self._is_alone else min(due, self._others.deadline())

    @override
    async def timed_out(self) -> None:
        if not self._exchange.turn.is_settled:
            # Input that arrived while links were written is read and handled first.
            await trio.lowlevel.checkpoint()
        self._exchange.tick()
        self._control.tick()
        self._others.tick()

    @override
    async def stop(self) -> None:
        self.is_over = True
        self._exchange.turn.hand_over()
        self._exchange.rest()
        self._others.close()
        self._exchange.components.close()

    # ---- parts

    def attach(self, address: str, component: messages.Component) -> None:
        """Register a component of the node at an address (MN-09).

        Args:
            address: The address.
            component: The part.

        Raises:
            AddressTakenError: Another part answers there.
        """
        self._exchange.components.attach(address, component)
        # A restarted part does not answer the requests that it received before.
        self._exchange.requests_at_parts = self._exchange.fresh_request_shares()

    def detach(self, address: str, component: messages.Component) -> None:
        """Stop a part from answering at an address. Idempotent."""
        self._exchange.components.detach(address, component)

    def connect_abroad(self, foreign: messages.ForeignRef) -> None:
        """Set the actor that carries messages to other domains."""
        self._exchange.foreign.open(foreign)

    def renew_paths(self, peer: str) -> None:
        """Subscribe again at another domain's node that may have lost the subscriptions."""
        if (paths := self._exchange.foreign.paths) is not None:
            paths.renew(peer)

    # ---- links

    def add_link(self, port: Connection) -> None:
        """Add a link, which has no session yet."""
        self._exchange.ports[port.number] = port
        port.turn = self._exchange.turn
        self._trace.link(Op.OPEN, port.name, self._node.node)
        if self._exchange.departure.has_begun or not self._others.is_member:
            del self._exchange.ports[port.number]
            port.finish(CloseReason.GOING_AWAY)

    def remove_link(self, number: int, name: str, why: str) -> None:
        """Remove a link that has ended."""
        self._trace.link(Op.CLOSE, name, self._node.node)
        self._control.forget_link(number)
        self._exchange.lose_link(number, why)

    def expel(self, number: int) -> None:
        """Close a link after its refusals are written; its session may return (L4)."""
        port = self._exchange.ports.get(number)
        if port is not None:
            port.finish(CloseReason.REFUSED, LinkEnd.MALFORMED)

    def refuse_frame(self, number: int) -> None:
        """Refuse a frame over the size limit and close the session of its link (CON-05)."""
        port = self._exchange.ports.get(number)
        session = self._exchange.session_of(number)
        self._counters.drop(DropReason.MALFORMED)
        if port is None:
            return
        _log.warning("frame too large", runtime=port.runtime, link=port.name)
        port.close_reason = CloseReason.TOO_LARGE
        self._control.refuse_size(port)
        if session is not None:
            session.close(number)
        port.finish(CloseReason.TOO_LARGE)


def _with_sender(message: Message, asker: Asker) -> Message:
    """Return a message with the verified identity of its sender, replacing any identity in it.

    The node of another domain is trusted about senders of its own domain.

    Args:
        message: The message.
        asker: Session of the sender.
    """
    sender = asker.sender
    if sender is None and asker.runtime is not None:
        sender = said_by(domain_of(asker.runtime), message.identity)
    return identified(message, sender)


def _subject(message: Message) -> str | None:
    """Return the address that a request to a component is about; None if it names none."""
    value = message.body.get("value")
    named = value.get("url") if isinstance(value, dict) else None
    subject = named or message.body.get("resource")
    try:
        return canonical(subject) if isinstance(subject, str) else None
    except BadUrlError:
        return None


def _view(exchange: Exchange, runtime: str, session: Session) -> messages.SessionView:
    return messages.SessionView(
        runtime,
        str(session.core.state),
        None if session.port is None else session.port.name,
        exchange.tables.allocation.owned_by(runtime),
        exchange.tables.subscriptions.resources_of(runtime),
    )
