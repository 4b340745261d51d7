"""What comes over links, and what it must pass before it goes anywhere (MN-03).

Normal form, session, source, loop, policy, in this order. Whatever is refused is
answered over the link it came from, if it is a request, and counted if it is not.
"""

from collections.abc import Callable, Sequence
from typing import Final, final

import trio

from actors.node.bus.dispatch import Dispatch
from actors.node.links.acceptor import Claim, Item
from actors.node.links.port import Port
from actors.node.messages import FromAbroad
from actors.node.policy_hook import Asker
from actors.node.session.control import Control
from actors.node.session.exchange import Exchange, Session
from actors.node.session.gate import Gate
from fsm.bus.node_routing import Admitted, Refusal
from fsm.effects import Refused
from fsm.registry.allocation import Bind
from fsm.session.node_session_io import CloseAsked, Tick
from fsm.sync.subscriptions.consents import HEEDED
from specs.addresses.address import domain_of, session_manager
from specs.errors import BadMessageError
from specs.message import Message, refuse
from specs.reply_code import DropReason
from specs.routing import Check
from transports.codec import BadLine
from transports.errors import CloseReason

__all__ = ["Ingress"]

_OVER: Final = Refusal(Check.SESSION, "the credentials of the session are over; log in again")
_NO_SESSION: Final = Refusal(Check.SESSION, "open a session first")


@final
class Ingress:
    """Takes in what links bring; part of the bus's task.

    Args:
        exchange: Sessions and links.
        control: Session control.
        gate: Where policy is asked, once per message.
        dispatch: Where admitted messages go.
    """

    def __init__(
        self, exchange: Exchange, control: Control, gate: Gate, dispatch: Dispatch
    ) -> None:
        self._exchange = exchange
        self._control = control
        self._gate = gate
        self._dispatch = dispatch
        self._witness = exchange.witness
        self._counters = exchange.witness.counters
        self._routing = exchange.tables.routing
        self._node = exchange.tables.addresses

    def arrived(self, number: int, items: Sequence[Item]) -> None:
        """Take in what one frame of a link held."""
        now = trio.current_time()
        session = self._exchange.heard(number, now)
        if session is not None and session.core.is_over(now):
            self._too_late(session, items)
            return
        for item in items:
            port = self._exchange.ports.get(number)
            if port is None:
                self._witness.counters.drop(DropReason.SESSION_GONE)
            elif isinstance(item, BadLine):
                self._malformed(item, port)
            elif isinstance(item, Claim):
                self._claimed(item.wish, port)
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
                self._witness.counters.drop(DropReason.SESSION_GONE)
        self._exchange.feed(session, Tick())
        self._gate.settle()

    def _malformed(self, line: BadLine, port: Port) -> None:
        self._witness.counters.drop(DropReason.MALFORMED)
        if line.answer is not None:
            self._exchange.tell_link(port, line.answer)

    def _claimed(self, request: Message, port: Port) -> None:
        """Give a link the session it has come for, or show it out."""
        self._controlled(self._control.claim, request, port)
        if self._exchange.session_of(port.number) is None:
            port.finish(CloseReason.REFUSED)

    def _message(self, message: Message, port: Port) -> None:
        if message.to == self._node.session:
            self._controlled(self._control.receive, message, port)
            return
        self._witness.rcv(message, port.name)
        session = self._exchange.session_of(port.number)
        if session is None:
            self._gate.refuse(message, port, self._no_session(message))
            return
        refusal = self._routed_out(message, session.core.runtime, session.asker)
        if refusal is not None:
            self._gate.refuse(message, port, refusal)
            if self._is_to_go(refusal, session.core.runtime):
                self._exchange.feed(session, CloseAsked(port.number))
                port.finish(CloseReason.REFUSED)

    def _no_session(self, message: Message) -> Refusal:
        """Say what is lacking: a session, or, where one is asked of another node, that node."""
        meant = domain_of(message.to)
        if message.to != session_manager(meant):
            return _NO_SESSION
        own = domain_of(self._node.session)
        return Refusal(Check.SESSION, f"this is the node of {own}, and not that of {meant}")

    def abroad(self, came: FromAbroad) -> None:
        """Take in what a stub of another domain has brought, as if over a link."""
        self._witness.rcv(came.message, came.stub)
        refusal = self._routed_out(came.message, came.peer, Asker(came.peer))
        if refusal is not None:
            self._gate.turn_back(came.message, came.peer, refusal)
            self._is_to_go(refusal, came.peer)
        self._gate.settle()

    def _is_to_go(self, refusal: Refusal, by: str) -> bool:
        """Say whether that was the one offence too many of another domain's node (S14)."""
        return refusal.is_offence and self._exchange.border.offended(by)

    def _controlled(
        self, control: Callable[[Message, Port], None], message: Message, port: Port
    ) -> None:
        try:
            control(message, port)
        except BadMessageError as exc:
            if message.is_request:
                self._exchange.tell_link(port, refuse(message, exc.code, exc.reason))
            else:
                self._witness.drop(message, DropReason.MALFORMED)

    def _routed_out(self, message: Message, by: str, asker: Asker) -> Refusal | None:
        """Check and route a message of `by`; return what objects to it."""
        admission = self._routing.admit(message, by)
        if isinstance(admission, Refusal):
            return admission
        passed = self._gate.passed(message, asker)
        if isinstance(passed, Refusal):
            return passed
        message = passed
        refusal = self._unbound(admission, by)
        if refusal is None:
            self._counters.admitted += 1
            self._witness.admit(message, by)
            if message.type in HEEDED:
                self._exchange.tables.heed(message, by, trio.current_time())
            self._dispatch.route(message, by)
        return refusal

    def _unbound(self, admission: Admitted, by: str) -> Refusal | None:
        """Bind addresses of other domains to the session that uses them (MN-13)."""
        for address in admission.bind:
            outcome = self._exchange.tables.own(Bind(by, address))
            if isinstance(outcome, Refused):
                return Refusal(Check.SOURCE, outcome.why)
        return None
