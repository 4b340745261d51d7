"""The bus of a message node: every message of every link passes here, in this order.

Normal form, session, source, loop, policy, route (MN-03). Whatever is refused is
answered over the link it came from, if it is a request, and counted if it is not.
"""

from collections.abc import Callable, Sequence
from typing import Final, assert_never, final

import attrs
from typing_extensions import override

from actors.kit.actor import Actor, Reply
from actors.node.bus_message import (
    Arrived,
    Asked,
    Attached,
    BusMessage,
    Connected,
    Drain,
    Emitted,
    Gone,
    Snapshot,
    TooLarge,
)
from actors.node.control import Control
from actors.node.desk import Desk
from actors.node.door import Claim, Item
from actors.node.exchange import Exchange
from actors.node.policy import Decision, Policy, Ruling
from actors.node.port import Port
from fsm.cores.allocation import Bind
from fsm.cores.node_routing import Admitted, Nobody, Refusal, ToComponent, ToRuntimes
from fsm.cores.node_session_terms import CloseAsked
from fsm.cores.refused import Refused
from specs.address import canonical
from specs.errors import BadMessageError, BadUrlError
from specs.message import Message, refuse
from specs.reply_code import Code, DropReason
from specs.routing import Check
from specs.trace import Op
from transports.codec import BadLine, encode
from transports.errors import Farewell

__all__ = ["NodeBus", "NodeBusParts"]

_NO_SESSION: Final = Refusal(Check.SESSION, "open a session first")


@final
@attrs.frozen
class NodeBusParts:
    """What the bus is made of; all of it belongs to its task from then on.

    Attributes:
        exchange: Sessions and links.
        control: Session control.
        desks: Parts of the node that answer on the spot, by address.
        policy: Asked once per message.
    """

    exchange: Exchange
    control: Control
    desks: dict[str, Desk]
    policy: Policy


@final
class NodeBus(Actor[BusMessage]):
    """Routes between sessions and the parts of the node."""

    def __init__(self, parts: NodeBusParts) -> None:
        self._exchange = parts.exchange
        self._control = parts.control
        self._desks = parts.desks
        self._policy = parts.policy
        self._witness = parts.exchange.witness
        self._routing = parts.exchange.tables.routing
        self._node = parts.exchange.tables.addresses
        self._drained: Reply[None] | None = None

    @override
    async def handle(self, message: BusMessage) -> None:
        match message:
            case Arrived(number, items):
                self._arrived(number, items)
            case Emitted(emitted, to_runtime):
                self._emitted(emitted, to_runtime)
            case Connected(port):
                self._connected(port)
            case Gone():
                self._gone(message)
            case TooLarge(number):
                self._too_large(number)
            case _:
                self._operate(message)

    def _operate(self, message: Attached | Drain | Snapshot) -> None:
        match message:
            case Attached(address, component):
                self._exchange.components[address] = component
            case Snapshot(reply):
                reply.send(self._exchange.views())
            case Drain(done):
                self._drained = done
                self._exchange.drain()
            case _:
                assert_never(message)

    @override
    async def drained(self) -> None:
        self._exchange.settle()
        if self._drained is not None and self._exchange.is_settled:
            self._drained.send(None)
            self._drained = None

    @override
    def deadline(self) -> float:
        return self._exchange.deadline()

    @override
    async def timed_out(self) -> None:
        self._exchange.tick()

    @override
    async def stop(self) -> None:
        self._exchange.rest()

    # ---- links

    def _connected(self, port: Port) -> None:
        self._exchange.ports[port.number] = port
        self._witness.link(Op.OPEN, port.name, self._node.node)

    def _gone(self, gone: Gone) -> None:
        self._witness.link(Op.CLOSE, gone.name, self._node.node)
        self._exchange.lost(gone.number, gone.why)

    def _too_large(self, number: int) -> None:
        """Refuse a frame over the limit and close that link's session (CON-05)."""
        port = self._exchange.ports.get(number)
        session = self._exchange.session_of(number)
        self._witness.counters.drop(DropReason.MALFORMED)
        if port is None:
            return
        port.farewell = Farewell.TOO_LARGE
        self._control.refuse_size(port)
        if session is not None:
            self._exchange.feed(session, CloseAsked(number))
        port.finish(Farewell.TOO_LARGE)

    # ---- messages from links

    def _arrived(self, number: int, items: Sequence[Item]) -> None:
        self._exchange.heard(number)
        for item in items:
            port = self._exchange.ports.get(number)
            if port is None:
                self._witness.counters.drop(DropReason.SESSION_GONE)
            elif isinstance(item, BadLine):
                self._malformed(item, port)
            elif isinstance(item, Claim):
                self._claimed(item.wish, port)
            else:
                self._ingress(item, port)

    def _malformed(self, line: BadLine, port: Port) -> None:
        self._witness.counters.drop(DropReason.MALFORMED)
        if line.answer is not None:
            self._exchange.tell_link(port, line.answer)

    def _claimed(self, wish: Message, port: Port) -> None:
        """Give a link the session it has come for, or show it out."""
        refusal = self._ruled_out(wish, None)
        if refusal is None:
            self._controlled(self._control.claim, wish, port)
        else:
            self._refuse(wish, port, refusal)
        if self._exchange.session_of(port.number) is None:
            port.finish(Farewell.REFUSED)

    def _ingress(self, message: Message, port: Port) -> None:
        session = self._exchange.session_of(port.number)
        by = None if session is None else session.core.runtime
        refusal: Refusal | None
        if message.to == self._node.session:
            refusal = self._ruled_out(message, by)
            if refusal is None:
                self._controlled(self._control.receive, message, port)
        else:
            self._witness.rcv(message, port.name)
            refusal = _NO_SESSION if by is None else self._routed_out(message, by)
        if refusal is not None:
            self._refuse(message, port, refusal)

    def _controlled(
        self, control: Callable[[Message, Port], None], message: Message, port: Port
    ) -> None:
        try:
            control(message, port)
        except BadMessageError as exc:
            if message.is_request:
                self._exchange.tell_link(port, refuse(message, exc.code, exc.reason))

    def _routed_out(self, message: Message, by: str) -> Refusal | None:
        """Check and route a message of a session; return what objects to it."""
        admission = self._routing.admit(message, by)
        if isinstance(admission, Refusal):
            return admission
        refusal = self._ruled_out(message, by) or self._unbound(admission, by)
        if refusal is None:
            self._witness.hop(Op.ADMIT, message)
            self._route(message, by)
        return refusal

    def _ruled_out(self, message: Message, by: str | None) -> Refusal | None:
        ruling: Ruling = self._policy.judge(message, by)
        self._witness.authz(message, ruling)
        if ruling.decision is Decision.PERMIT:
            return None
        return Refusal(Check.POLICY, ruling.why or "blocked by policy")

    def _unbound(self, admission: Admitted, by: str) -> Refusal | None:
        """Bind addresses of other domains to the session that uses them (MN-13)."""
        for address in admission.bind:
            outcome = self._exchange.tables.own(Bind(by, address))
            if isinstance(outcome, Refused):
                return Refusal(Check.SOURCE, outcome.why)
        return None

    def _refuse(self, message: Message, port: Port, refusal: Refusal) -> None:
        """Say no over the link the message came from, wherever it says it is from."""
        code = refusal.code
        if code is not None:
            self._witness.deny(message, code, refusal.why)
        if code is None or not message.is_request:
            self._witness.drop(message, refusal.reason)
            return
        answer = refuse(message, code, refusal.why)
        self._witness.hop(Op.SYNTH, answer)
        self._exchange.tell_link(port, answer)
        self._witness.xmit(answer, port.name)

    # ---- routing

    def _route(self, message: Message, by: str | None) -> None:
        match self._routing.route(message, by):
            case ToRuntimes(runtimes, is_published):
                if is_published:
                    self._witness.publish(message, len(runtimes))
                line = encode(message)
                for runtime in runtimes:
                    self._exchange.send(runtime, message, line)
            case ToComponent(address):
                self._consult(message, address, by)
            case Nobody(why):
                self._exchange.undeliverable(message, Code.NOT_FOUND, why, DropReason.NO_TARGET)

    def _consult(self, message: Message, address: str, by: str | None) -> None:
        """Give a request to a part of the node."""
        if by is None or not message.is_request:
            self._witness.drop(message, DropReason.UNMATCHED)
            return
        self._witness.deliver(message, address)
        desk = self._desks.get(address)
        if desk is None:
            self._ask(message, address, by)
            return
        try:
            answer = desk.receive(message, by)
        except BadMessageError as exc:
            answer = refuse(message, exc.code, exc.reason)
        self._exchange.send(by, answer)

    def _ask(self, message: Message, address: str, by: str) -> None:
        component = self._exchange.components.get(address)
        subject = _subject(message)
        owner = None if subject is None else self._routing.owner_of(subject)
        asked = Asked(message, by, owner)
        if component is None or not component.try_tell(asked):
            answer = refuse(message, Code.UNAVAILABLE, f"{address} cannot be asked now")
            self._exchange.send(by, answer)

    def _emitted(self, message: Message, to_runtime: str | None) -> None:
        if to_runtime is None:
            self._route(message, None)
        else:
            self._exchange.send(to_runtime, message)


def _subject(message: Message) -> str | None:
    """Return the address a request to a component is about; None if it names none."""
    value = message.body.get("value")
    named = value.get("url") if isinstance(value, dict) else None
    subject = named or message.body.get("resource")
    try:
        return canonical(subject) if isinstance(subject, str) else None
    except BadUrlError:
        return None
