"""The bus of a message node: every message of every link passes here.

What it must pass stands in `ingress`, where it goes then in `dispatch`; the sessions
and how messages reach them in `exchange`. All of it is this one task.
"""

from typing import assert_never, final

import attrs
import structlog
from typing_extensions import override

from actors.kit.supervision.actor import Actor, Reply
from actors.node.bus.dispatch import Dispatch
from actors.node.bus.ingress import Ingress
from actors.node.components import LocalService
from actors.node.errors import AddressTakenError
from actors.node.links.port import Port
from actors.node.messages import (
    AbroadIs,
    Alive,
    Arrived,
    Attached,
    BusMessage,
    Connected,
    Detached,
    Drain,
    Emitted,
    ForgottenBy,
    FromAbroad,
    Gone,
    Misbehaved,
    Snapshot,
    TooLarge,
)
from actors.node.session.control import Control
from actors.node.session.exchange import Exchange, views
from actors.node.session.gate import Gate
from fsm.session.node_session_io import CloseAsked
from specs.addresses.address import last_segment
from specs.link_end import LinkEnd
from specs.reply_code import DropReason
from specs.trace import Op
from transports.errors import CloseReason

__all__ = ["NodeBus", "NodeBusParts"]

_log = structlog.get_logger("actors.node")


@final
@attrs.frozen
class NodeBusParts:
    """What the bus is made of; all of it belongs to its task from then on.

    Attributes:
        exchange: Sessions and links.
        control: Session control.
        desks: Parts of the node that answer on the spot, by address.
        gate: Where policy is asked, once per message.
    """

    exchange: Exchange
    control: Control
    desks: dict[str, LocalService]
    gate: Gate


@final
class NodeBus(Actor[BusMessage]):
    """Routes between sessions and the parts of the node."""

    def __init__(self, parts: NodeBusParts) -> None:
        self._exchange = parts.exchange
        self._control = parts.control
        self._witness = parts.exchange.witness
        self._node = parts.exchange.tables.addresses
        self._dispatch = Dispatch(parts.exchange, parts.control, parts.desks)
        self._ingress = Ingress(parts.exchange, parts.control, parts.gate, self._dispatch)
        self._desks = (self._node.session, *parts.desks)
        self._drained: Reply[None] | None = None
        self._is_leaving = False

    @override
    async def start(self) -> None:
        for address in self._desks:
            self._exchange.components.serve(address, last_segment(address))

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
            case FromAbroad():
                self._ingress.abroad(message)
            case Misbehaved(number):
                self._misbehaved(number)
            case _:
                self._operate(message)

    def _operate(
        self, message: Attached | Detached | AbroadIs | ForgottenBy | Drain | Snapshot | Alive
    ) -> None:
        match message:
            case Attached():
                self._attached(message)
            case Detached(address, component):
                self._exchange.components.detach(address, component)
            case AbroadIs() | ForgottenBy():
                self._exchange.border.heed(message)
            case Snapshot(reply):
                reply.send(views(self._exchange))
            case Alive(reply):
                reply.send(None)
            case Drain(done):
                self._drained = done
                self._is_leaving = True
                self._exchange.drain()
            case _:
                assert_never(message)

    @override
    async def drained(self) -> None:
        self._exchange.departures.settle()
        self._exchange.border.settle()
        if self._drained is not None and self._exchange.departures.is_settled:
            self._drained.send(None)
            self._drained = None

    @override
    def deadline(self) -> float:
        return min(self._exchange.deadline(), self._control.deadline())

    @override
    async def timed_out(self) -> None:
        self._exchange.tick()
        self._control.tick()

    @override
    async def stop(self) -> None:
        self._exchange.rest()
        self._exchange.components.close()

    def _attached(self, request: Attached) -> None:
        verdict: AddressTakenError | None = None
        try:
            self._exchange.components.attach(request.address, request.component)
        except AddressTakenError as exc:
            _log.error("address taken", address=exc.address, part=exc.part, holder=exc.holder)
            verdict = exc
        if request.verdict is not None:
            request.verdict.send(verdict)

    # ---- links

    def _connected(self, port: Port) -> None:
        self._exchange.ports[port.number] = port
        port.count_in(self._exchange.budget)
        self._witness.link(Op.OPEN, port.name, self._node.node)
        if self._is_leaving:
            del self._exchange.ports[port.number]
            port.finish(CloseReason.GOING_AWAY)

    def _gone(self, gone: Gone) -> None:
        self._witness.link(Op.CLOSE, gone.name, self._node.node)
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
        self._witness.counters.drop(DropReason.MALFORMED)
        if port is None:
            return
        port.farewell = CloseReason.TOO_LARGE
        self._control.refuse_size(port)
        if session is not None:
            self._exchange.feed(session, CloseAsked(number))
        port.finish(CloseReason.TOO_LARGE)
