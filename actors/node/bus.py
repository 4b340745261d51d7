"""The bus of a message node: every message of every link passes here (MN-01, MN-03).

`Ingress` checks what links bring: normal form, session, source, loop, policy, in this order. A
refused request is answered over the link it came from; any other refused message is counted.
`Dispatch` carries out what routing says (`dispatch.py`). Sessions, and how messages reach them, are
in `session/exchange.py`. All of it is the one task of `NodeBus`.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, assert_never, final

import attrs
import trio
from typing_extensions import override

from actors.kit.log import get_logger
from actors.kit.supervision.actor import Actor
from actors.kit.supervision.mailbox import Reply
from actors.node.components import LocalService
from actors.node.dispatch import Dispatch
from actors.node.errors import AddressTakenError
from actors.node.links.acceptor import Claim as SessionClaim
from actors.node.links.acceptor import Item
from actors.node.links.port import Port
from actors.node.messages import (
    Alive,
    Arrived,
    Attached,
    BusMessage,
    Connected,
    Detached,
    Drain,
    Emitted,
    ForeignReady,
    FromForeign,
    Gone,
    GroupEvent,
    LogEvent,
    Misbehaved,
    Operation,
    PathsForgotten,
    SessionView,
    Snapshot,
    TooLarge,
)
from actors.node.policy_hook import Asker
from actors.node.session.control import Control
from actors.node.session.exchange import Exchange
from actors.node.session.gate import Gate
from actors.node.session.other_nodes import EnginePart
from actors.node.session.session import Session
from fsm.bus.node_routing import Admitted, Refusal
from fsm.effects import Refused
from fsm.machines.session import State
from fsm.session.assertion import is_login_of
from fsm.session.node_session_io import CloseAsked, Tick
from fsm.sync.consents import HEEDED
from specs.addresses.address import domain_of, last_segment, session_manager
from specs.bodies.session import LOGIN_TOKEN, SESSION_TOKEN
from specs.errors import BadMessageError
from specs.identity import said_by
from specs.jsonvalue import JsonObject
from specs.message import Message, identified, refuse
from specs.reply_code import DropReason, Ground, LinkEnd
from specs.routing import Check
from specs.trace import Op
from transports.codec import BadLine
from transports.errors import CloseReason

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


@final
class Ingress:
    """Takes in what links bring; part of the bus's task.

    Args:
        gate: Where policy is asked, once per message.
    """

    def __init__(
        self, exchange: Exchange, control: Control, gate: Gate, dispatch: Dispatch
    ) -> None:
        self._exchange = exchange
        self._control = control
        self._gate = gate
        self._dispatch = dispatch
        self._trace = exchange.trace
        self._counters = exchange.trace.counters
        self._remembered = exchange.tables.remembered
        self._node = exchange.tables.addresses

    def arrived(self, number: int, items: Sequence[Item]) -> None:
        """Take in what one frame of a link held.

        Args:
            number: Number of the link.
            items: The items, in order.
        """
        now = trio.current_time()
        session = self._exchange.heard(number, now)
        if session is not None and session.core.is_over(now):
            self._too_late(session, items)
            return
        for item in items:
            port = self._exchange.ports.get(number)
            if port is None:
                self._trace.counters.drop(DropReason.SESSION_GONE)
            elif isinstance(item, BadLine):
                self._malformed(item, port)
            elif isinstance(item, SessionClaim):
                self._claimed(item.opening, port)
            else:
                self._message(item, port)
            self._gate.settle()

    def _too_late(self, session: Session, items: Sequence[Item]) -> None:
        """Do nothing of what comes when the credentials are over, and leave (MN-05).

        Answers that the link does not take any more wait for the runtime to log in again.
        """
        for item in items:
            if isinstance(item, Message) and session.port is not None:
                self._gate.refuse(item, session.port, _OVER)
            else:
                self._trace.counters.drop(DropReason.SESSION_GONE)
        self._exchange.feed(session, Tick())
        self._gate.settle()

    def _malformed(self, line: BadLine, port: Port) -> None:
        self._trace.counters.drop(DropReason.MALFORMED)
        if line.answer is not None:
            self._trace.refused_by(line.answer, port.runtime or port.name, Ground.FORM)
            self._exchange.send_to_link(port, line.answer)

    def _claimed(self, request: Message, port: Port) -> None:
        """Give a link the session it has come for, or show it out."""
        self._controlled(self._control.claim, request, port)
        if self._exchange.session_of(port.number) is None:
            port.finish(CloseReason.REFUSED)

    def _message(self, message: Message, port: Port) -> None:
        if message.to == self._node.session:
            self._controlled(self._control.receive, message, port)
            return
        session = self._exchange.session_of(port.number)
        body = message.body
        has_tokens = not _TOKENS.isdisjoint(body)
        if has_tokens:
            message = self._without_tokens(message)
        if session is not None:
            message = _identified(message, session.asker)
        self._trace.passed(Op.RCV, message, port.name)
        if session is None or session.core.state is not State.OPEN:
            self._gate.refuse(message, port, self._no_session(message))
            return
        if has_tokens and (refusal := self._wrong_token(body, session)) is not None:
            self._gate.refuse(message, port, refusal)
            self._exchange.failed(port)
            return
        refusal = self._routed_out(message, session.core.runtime, session.asker)
        if refusal is not None:
            self._gate.refuse(message, port, refusal)
            runtime = session.core.runtime
            may_stay = self._exchange.tables.rights.may_speak(runtime)
            if not may_stay or self._is_to_go(refusal, runtime):
                self._exchange.feed(session, CloseAsked(port.number))
                port.finish(CloseReason.REFUSED)

    def _without_tokens(self, message: Message) -> Message:
        """Return a message without tokens, which are for the node alone (C-64)."""
        names = _TOKENS if self._exchange.has_login else _SESSION_TOKENS
        body = {key: value for key, value in message.body.items() if key not in names}
        return attrs.evolve(message, body=body)

    def _wrong_token(self, body: JsonObject, session: Session) -> Refusal | None:
        """Return what objects to the tokens that a message carries (MN-05)."""
        token, login = body.get(SESSION_TOKEN), body.get(LOGIN_TOKEN)
        if token is not None and not (isinstance(token, str) and session.core.knows(token)):
            return _WRONG_TOKEN
        is_judged = login is not None and self._exchange.has_login
        if is_judged and not is_login_of(session.asker.identity, login):
            return _WRONG_LOGIN
        return None

    def _no_session(self, message: Message) -> Refusal:
        """Return what is lacking: a session, or, where one is asked of another node, that node."""
        meant = domain_of(message.to)
        if message.to != session_manager(meant):
            return _NO_SESSION
        own = domain_of(self._node.session)
        return Refusal(Check.SESSION, f"this is the node of {own}, and not that of {meant}")

    def foreign(self, came: FromForeign) -> None:
        """Take in what a stub of another domain has brought, as if over a link."""
        asker = Asker(came.peer)
        message = _identified(came.message, asker)
        self._trace.passed(Op.RCV, message, came.stub)
        refusal = self._routed_out(message, came.peer, asker)
        if refusal is not None:
            self._gate.turn_back(message, came.peer, refusal)
            self._is_to_go(refusal, came.peer)
        self._gate.settle()

    def _is_to_go(self, refusal: Refusal, by: str) -> bool:
        """Return whether that was the one offence too many of another domain's node (S14)."""
        return refusal.is_offence and self._exchange.foreign.offended(by)

    def _controlled(
        self, control: Callable[[Message, Port], None], message: Message, port: Port
    ) -> None:
        try:
            control(message, port)
        except BadMessageError as exc:
            if message.is_request:
                by = port.runtime or port.name
                self._trace.refused(message, by, exc.code, exc.reason, Ground.FORM)
                self._exchange.send_to_link(port, refuse(message, exc.code, exc.reason))
            else:
                self._trace.drop(message, DropReason.MALFORMED)

    def _routed_out(self, message: Message, by: str, asker: Asker) -> Refusal | None:
        """Check and route a message of `by`; return what objects to it."""
        admission = self._remembered.admit(message, by)
        if isinstance(admission, Refusal):
            return admission
        passed = self._gate.passed(message, asker)
        if isinstance(passed, Refusal):
            return passed
        message = passed
        refusal = self._unbound(admission, by)
        if refusal is None:
            self._counters.admitted += 1
            self._trace.admitted(message, by)
            self._exchange.statuses.said(message, by)
            if message.type in HEEDED:
                self._exchange.tables.heed(message, by, trio.current_time())
            durable = self._exchange.durable
            if durable is None or not durable.ends(message, by):
                self._dispatch.route(message, by)
        return refusal

    def _unbound(self, admission: Admitted, by: str) -> Refusal | None:
        """Bind addresses of other domains to the session that uses them (MN-13)."""
        for address in admission.bind:
            tables = self._exchange.tables
            outcome = tables.own(tables.allocation.bind(by, address))
            if isinstance(outcome, Refused):
                return Refusal(Check.SOURCE, outcome.why)
        return None


def _identified(message: Message, asker: Asker) -> Message:
    """Return a message with the identity of its sender, whatever it was read with.

    What the node of another domain says is believed for that domain.

    Args:
        message: The message.
        asker: Session of the sender.
    """
    sender = asker.sender
    if sender is None and asker.runtime is not None:
        sender = said_by(domain_of(asker.runtime), message.identity)
    return identified(message, sender)


_log = get_logger("actors.node")


@final
class NodeBus(Actor[BusMessage]):
    """Routes between sessions and the parts of the node; owns all that it is made of.

    Args:
        exchange: Sessions and links.
        control: Session control.
        services: Local services of the node, by address.
        gate: Asks the policy, once per message.
        resume: Brings the stored sessions back.
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
        self._control = control
        self._trace = exchange.trace
        self._node = exchange.tables.addresses
        self._dispatch = Dispatch(exchange, control, services)
        self._ingress = Ingress(exchange, control, gate, self._dispatch)
        self._served = (self._node.session, *services)
        self._drained: Reply[None] | None = None

    @override
    async def start(self) -> None:
        for address in self._served:
            self._exchange.components.serve(address, last_segment(address))
        await self._resume()

    @override
    async def handle(self, message: BusMessage) -> None:
        match message:
            case Arrived(number, items):
                self._ingress.arrived(number, items)
            case Emitted(emitted, to_runtime):
                self._dispatch.emitted(emitted, to_runtime)
            case Connected(port):
                self._connected(port)
            case Gone():
                self._gone(message)
            case TooLarge(number):
                self._too_large(number)
            case FromForeign():
                self._ingress.foreign(message)
            case Misbehaved(number):
                self._misbehaved(number)
            case _:
                self._operate(message)

    def _operate(self, message: Operation) -> None:
        match message:
            case Attached():
                self._attached(message)
            case Detached(address, component):
                self._exchange.components.detach(address, component)
            case ForeignReady() | PathsForgotten():
                self._exchange.foreign.heed(message)
            case GroupEvent() | LogEvent():
                self._heed(message)
            case Snapshot() | Alive():
                self._report(message)
            case Drain(done):
                self._leave(done)
            case _:
                assert_never(message)

    def _heed(self, news: GroupEvent | LogEvent) -> None:
        others, durable = self._exchange.others, self._exchange.durable
        match news:
            case GroupEvent():
                if others is not None:
                    others.heed(news)
            case LogEvent():
                if durable is not None:
                    durable.heed(news)

    def _leave(self, done: Reply[None]) -> None:
        self._drained = done
        others = self._exchange.others
        is_possible = others is not None and others.leave()
        self._exchange.turn.hand_over()
        self._exchange.departure.begin(trio.current_time(), is_possible=is_possible)

    def _report(self, asked: Snapshot | Alive) -> None:
        match asked:
            case Snapshot(reply):
                sessions = self._exchange.sessions.items()
                reply.send(tuple(_view(self._exchange, *one) for one in sessions))
            case Alive(reply):
                reply.send(None)

    @override
    async def drained(self) -> None:
        exchange = self._exchange
        if exchange.others is not None:
            exchange.others.read_out()
        exchange.departure.settle(trio.current_time())
        exchange.notices.settle()
        exchange.state.settle()
        exchange.foreign.settle()
        for part in self._engine_parts:
            part.settle()
        exchange.turn.write()
        exchange.check_budget()
        if self._drained is not None and self._is_settled:
            self._drained.send(None)
            self._drained = None

    @property
    def _engine_parts(self) -> Sequence[EnginePart]:
        exchange = self._exchange
        return [part for part in (exchange.others, exchange.durable) if part is not None]

    @property
    def _is_settled(self) -> bool:
        """True if parts, files and other nodes have all that they must know."""
        exchange, others = self._exchange, self._exchange.others
        is_known = others is None or others.is_settled
        is_known = is_known and exchange.departure.is_over
        return is_known and exchange.notices.is_settled and exchange.state.is_settled

    @override
    def deadline(self) -> float:
        exchange = self._exchange
        due = min(exchange.deadline(), exchange.departure.deadline(), self._control.deadline())
        return min((due, *(part.deadline() for part in self._engine_parts)))

    @override
    async def timed_out(self) -> None:
        if not self._exchange.turn.is_settled:
            # What has arrived while links were written to is read first, and handled.
            await trio.lowlevel.checkpoint()
        self._exchange.tick()
        self._control.tick()
        for part in self._engine_parts:
            part.tick()

    @override
    async def stop(self) -> None:
        self._exchange.turn.hand_over()
        self._exchange.rest()
        if self._exchange.others is not None:
            self._exchange.others.close()
        self._exchange.components.close()

    def _attached(self, request: Attached) -> None:
        verdict: AddressTakenError | None = None
        try:
            self._exchange.components.attach(request.address, request.component)
            # What a part was asked before it was started again, it does not answer.
            self._exchange.requests_at_parts = self._exchange.fresh_request_shares()
        except AddressTakenError as exc:
            _log.error("address taken", address=exc.address, part=exc.part, holder=exc.holder)
            verdict = exc
        if request.verdict is not None:
            request.verdict.send(verdict)

    # ---- links

    def _connected(self, port: Port) -> None:
        self._exchange.ports[port.number] = port
        port.outbox.count_in(self._exchange.budget)
        port.turn = self._exchange.turn
        self._trace.link(Op.OPEN, port.name, self._node.node)
        others = self._exchange.others
        if self._exchange.departure.has_begun or (others is not None and not others.is_member):
            del self._exchange.ports[port.number]
            port.finish(CloseReason.GOING_AWAY)

    def _gone(self, gone: Gone) -> None:
        self._trace.link(Op.CLOSE, gone.name, self._node.node)
        self._control.gone(gone.number)
        self._exchange.lost(gone.number, gone.why)

    def _misbehaved(self, number: int) -> None:
        """Leave a link after the refusals it was sent; its session may come back (L4)."""
        port = self._exchange.ports.get(number)
        if port is not None:
            port.finish(CloseReason.REFUSED, LinkEnd.MALFORMED)

    def _too_large(self, number: int) -> None:
        """Refuse a frame over the limit and close that link's session (CON-05)."""
        port = self._exchange.ports.get(number)
        session = self._exchange.session_of(number)
        self._trace.counters.drop(DropReason.MALFORMED)
        if port is None:
            return
        _log.warning("frame too large", runtime=port.runtime, link=port.name)
        port.close_reason = CloseReason.TOO_LARGE
        self._control.refuse_size(port)
        if session is not None:
            self._exchange.feed(session, CloseAsked(number))
        port.finish(CloseReason.TOO_LARGE)


def _view(exchange: Exchange, runtime: str, session: Session) -> SessionView:
    return SessionView(
        runtime,
        str(session.core.state),
        None if session.port is None else session.port.name,
        exchange.tables.allocation.owned_by(runtime),
        exchange.tables.subscriptions.resources_of(runtime),
    )
