"""Where admitted messages go: to sessions, to parts of the node, to other nodes (MN-01, MN-03)."""

from collections.abc import Mapping, Sequence
from typing import Final, final

import trio

from actors.kit.back_ends.requests import Asked
from actors.node.components import LocalService
from actors.node.session.control import Control
from actors.node.session.exchange import Exchange
from actors.node.session.other_nodes import objection_of
from fsm.bus.node_routing import Nobody, ToComponent, ToRuntimes
from fsm.registry.records import users_of
from fsm.session.node_session_io import OutboundMessage, PeerForm
from fsm.session.restart import RESTARTED
from specs.addresses.address import canonical, domain_of, is_node
from specs.errors import BadMessageError, BadUrlError
from specs.message import Message, MessageType, is_durable, refuse
from specs.reply_code import Code, DropReason, Ground
from specs.trace import Op
from transports.codec import encode

_NO_LOGS: Final = "the node keeps no messages: it has no engine"


@final
class Dispatch:
    """Carries out what routing says; part of the bus's task.

    Args:
        control: Session control, which hears the answers to what it asks.
        services: Parts of the node that answer on the spot, by address.
    """

    def __init__(
        self, exchange: Exchange, control: Control, services: Mapping[str, LocalService]
    ) -> None:
        self._exchange = exchange
        self._others = exchange.others
        self._control = control
        self._services = services
        self._trace = exchange.trace
        self._routing = exchange.tables.routing
        self._remembered = exchange.tables.remembered
        self._node = exchange.tables.addresses
        self._lookups = exchange.lookups
        exchange.route = self.route

    def route(self, message: Message, by: str | None) -> None:
        """Send an admitted message on; `by` None: the node itself made it.

        Args:
            message: The message.
            by: Address of the sending session; None: the node itself.
        """
        if message.to in self._lookups and self._exchange.look_up(message, by):
            return
        runtime = self._log_of(message)
        if runtime is not None and runtime != by:
            self._keep(message, runtime, by)
            return
        match self._remembered.route(message, by):
            case ToRuntimes(runtimes) if len(runtimes) > self._exchange.fan_out:
                why = "more sessions subscribe to it than one message may be given to"
                self._exchange.undeliverable(message, Code.TOO_LARGE, why, DropReason.OVERFLOW)
            case ToRuntimes(runtimes, is_published, nodes):
                if is_published:
                    self._trace.hop(Op.PUBLISH, message, targets=len(runtimes))
                entry = OutboundMessage(message, encode(message), {} if len(runtimes) > 1 else None)
                here: Sequence[str] = runtimes
                if self._others is not None:
                    here = self._others.carrier.carried(entry, by, runtimes, nodes)
                self._exchange.hand_out_to(here, entry)
            case ToComponent(address):
                self._consult(message, address, by)
            case Nobody(is_known=False) if self._exchange.look_up(message, by):
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

    def _log_of(self, message: Message) -> str | None:
        """Return the runtime whose log has to keep a message; another domain has its own logs."""
        if not is_durable(message):
            return None
        # Not that of a subscriber: a runtime that has come back subscribes to its own addresses.
        owner = self._routing.owner_of(message.to)
        if owner is None or is_node(owner):
            return None
        # A log belongs to a session: if its row has not come yet, it is looked up first.
        is_here = self._others is None or owner in self._exchange.sessions
        return owner if is_here or self._exchange.tables.is_elsewhere(owner) else None

    def _keep(self, message: Message, runtime: str, by: str | None) -> None:
        """Have a message kept for a runtime, and its sender answered then."""
        durable = self._exchange.durable
        if durable is None or by is None:
            self._exchange.undeliverable(message, Code.FORBIDDEN, _NO_LOGS, DropReason.DENIED)
        else:
            durable.keep(message, runtime, by)

    def emitted(self, message: Message, to_runtime: str | None) -> None:
        """Send on what a part of the node has to say.

        Args:
            message: The message.
            to_runtime: Only receiver of the message; None: every subscriber.
        """
        if to_runtime is not None:
            if to_runtime in self._exchange.requests_at_parts:
                self._exchange.requests_at_parts.take(to_runtime, -1, 0)
            self._answered(to_runtime, message)
        elif message.is_response and message.to == self._node.session:
            self._control.answered(message)
        else:
            self.route(message, None)

    def _consult(self, message: Message, address: str, by: str | None) -> None:
        """Give a request to a part of the node."""
        if message.is_response and self._exchange.foreign.answered(message):
            self._trace.hop(Op.CALLBACK, message)
            return
        if by is None or not message.is_request:
            self._trace.drop(message, DropReason.UNMATCHED)
            return
        self._trace.hop(Op.DELIVER, message, listener=address)
        service = self._services.get(address)
        objection = None if service is None else objection_of(self._others)
        if objection is not None:
            self._answered(by, refuse(message, objection.code, objection.why))
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
            self._answered(by, answer)

    def _answered(self, by: str, answer: Message) -> None:
        is_limit = answer.code in {Code.TOO_LARGE, Code.UNAVAILABLE}
        self._trace.refused_by(answer, by, Ground.LIMIT if is_limit else Ground.SERVICE)
        self._exchange.send(by, answer)

    def _ask(self, message: Message, address: str, by: str) -> None:
        component = self._exchange.components.get(address)
        subject = _subject(message)
        if address == self._node.registry and subject is not None:
            self._claimed(message, subject, by)
        owner = None if subject is None else self._routing.owner_of(subject)
        is_upstream = self._exchange.tables.form_of(by) is PeerForm.UPSTREAM
        session = self._exchange.sessions.get(by)
        identity = None if session is None else session.identity
        users = users_of(
            None if identity is None else identity.user,
            has_login=self._exchange.has_login and not is_upstream,
        )
        asked = Asked(message, by, owner, is_upstream, users, self._is_returning)
        refused = self._exchange.requests_at_parts.refusal(by, 1, 0)
        if refused is None and component is not None and component.try_tell(asked):
            self._exchange.requests_at_parts.take(by, 1, 0)
            return
        why = f"{address} cannot be asked now" if refused is None else refused.why
        self._answered(by, refuse(message, Code.UNAVAILABLE, why))

    def _claimed(self, message: Message, subject: str, by: str) -> None:
        """Let a registration claim its data object; a refused claim is a refused registration."""
        value = message.body.get("value")
        reporter = value.get("reporter") if isinstance(value, dict) else None
        tables = self._exchange.tables
        if (
            message.type is MessageType.CREATE
            and isinstance(reporter, str)
            and tables.rights.may_register(subject, reporter, by)
        ):
            tables.own(tables.allocation.claim(by, (subject,)))


def _subject(message: Message) -> str | None:
    """Return the address a request to a component is about; None if it names none."""
    value = message.body.get("value")
    named = value.get("url") if isinstance(value, dict) else None
    subject = named or message.body.get("resource")
    try:
        return canonical(subject) if isinstance(subject, str) else None
    except BadUrlError:
        return None
