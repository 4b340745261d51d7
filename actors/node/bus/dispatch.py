"""Where an admitted message goes: to sessions, to a part of the node, or to nobody (MN-01)."""

from collections.abc import Mapping
from typing import final

from actors.node.components import LocalService
from actors.node.messages import Asked
from actors.node.session.control import Control
from actors.node.session.exchange import Exchange
from fsm.bus.node_routing import Nobody, ToComponent, ToRuntimes
from fsm.session.node_session_io import Parcel, PeerForm
from specs.addresses.address import canonical
from specs.errors import BadMessageError, BadUrlError
from specs.message import Message, refuse
from specs.reply_code import Code, DropReason
from specs.trace import Op
from transports.codec import encode

__all__ = ["Dispatch"]


@final
class Dispatch:
    """Carries out what routing says; part of the bus's task.

    Args:
        exchange: Sessions and links.
        control: Session control, which hears the answers to what it asks.
        desks: Parts of the node that answer on the spot, by address.
    """

    def __init__(
        self, exchange: Exchange, control: Control, desks: Mapping[str, LocalService]
    ) -> None:
        self._exchange = exchange
        self._control = control
        self._desks = desks
        self._witness = exchange.witness
        self._routing = exchange.tables.routing
        self._node = exchange.tables.addresses

    def route(self, message: Message, by: str | None) -> None:
        """Send an admitted message on; `by` None: the node itself made it."""
        match self._routing.route(message, by):
            case ToRuntimes(runtimes) if len(runtimes) > self._exchange.fan_out:
                why = "more sessions subscribe to it than one message may be given to"
                self._exchange.undeliverable(message, Code.TOO_LARGE, why, DropReason.OVERFLOW)
            case ToRuntimes(runtimes, is_published):
                if is_published:
                    self._witness.publish(message, len(runtimes))
                parcel = Parcel(message, encode(message), {} if len(runtimes) > 1 else None)
                self._exchange.hand_out_to(runtimes, parcel)
            case ToComponent(address):
                self._consult(message, address, by)
            case Nobody(why):
                self._exchange.undeliverable(message, Code.NOT_FOUND, why, DropReason.NO_TARGET)

    def emitted(self, message: Message, to_runtime: str | None) -> None:
        """Send on what a part of the node has to say."""
        if to_runtime is not None:
            self._exchange.send(to_runtime, message)
        elif message.is_response and message.to == self._node.session:
            self._control.answered(message)
        else:
            self.route(message, None)

    def _consult(self, message: Message, address: str, by: str | None) -> None:
        """Give a request to a part of the node."""
        if message.is_response and self._exchange.border.answered(message):
            self._witness.hop(Op.CALLBACK, message)
            return
        if by is None or not message.is_request:
            self._witness.drop(message, DropReason.UNMATCHED)
            return
        self._witness.deliver(message, address)
        desk = self._desks.get(address)
        if desk is None:
            self._ask(message, address, by)
            return
        answer: Message | None
        try:
            answer = desk.receive(message, by)
        except BadMessageError as exc:
            answer = refuse(message, exc.code, exc.reason)
        if answer is not None:
            self._exchange.send(by, answer)

    def _ask(self, message: Message, address: str, by: str) -> None:
        component = self._exchange.components.get(address)
        subject = _subject(message)
        owner = None if subject is None else self._routing.owner_of(subject)
        is_moved = subject is not None and self._exchange.tables.offers.is_moved(subject)
        is_upstream = self._exchange.tables.form_of(by) is PeerForm.UPSTREAM
        asked = Asked(message, by, owner, is_moved, is_upstream)
        if component is None or not component.try_tell(asked):
            answer = refuse(message, Code.UNAVAILABLE, f"{address} cannot be asked now")
            self._exchange.send(by, answer)


def _subject(message: Message) -> str | None:
    """Return the address a request to a component is about; None if it names none."""
    value = message.body.get("value")
    named = value.get("url") if isinstance(value, dict) else None
    subject = named or message.body.get("resource")
    try:
        return canonical(subject) if isinstance(subject, str) else None
    except BadUrlError:
        return None
