"""Session of a runtime at a node: connects the session's state machine with links and messages."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import attrs
import trio

from actors.kit.log import get_logger
from actors.node.links.connection import Connection
from actors.node.messages import RuntimeLeft
from actors.node.policy_hook import Asker
from actors.node.state.file import SessionForgotten
from fsm.bus.node_routing import ToRuntimes
from fsm.effects import Refused
from fsm.engine import Step
from fsm.machines.session import State
from fsm.session.node_session import LOST, NodeSessionCore
from fsm.session.node_session_io import (
    Granted,
    OutboundMessage,
)
from specs.addresses.address import status_of
from specs.identity import Identity
from specs.limits.protocol import SESSION_QUEUE
from specs.message import Message, MessageType, identified
from specs.reply_code import TAKEN_OVER, Code, DropReason, LinkEnd
from specs.trace import Op
from transports.bodies import write_body
from transports.codec import encode
from transports.errors import CloseReason

if TYPE_CHECKING:
    from actors.node.session.exchange import Exchange
    from specs.dialects.dialect import Dialect

_log = get_logger("actors.node")

Outcome: TypeAlias = Granted | Refused | None
"""Outcome of a request for a session; None: the session has ended meanwhile."""


class Session:
    """Session of a runtime: performs what the session core decides, on links and other sessions.

    Actions that may cause messages for this runtime are deferred until the core has returned.

    Attributes:
        asker: Facts about the runtime and its user, for policies.
        port: The link that has the session; None: no link at present.
        dialect: Dialect of the runtime over its last link; None while it has a link (N3).
    """

    __slots__ = (
        "_deferred", "_exchange", "_outcome", "_unsent", "asker", "core", "dialect", "port", "stub",
    )  # fmt: skip

    def __init__(
        self, exchange: "Exchange", key: str, stub: str, asker: Asker, runtime: str
    ) -> None:
        self.core = NodeSessionCore(key, runtime, self, exchange.budget, exchange.waiting)
        self.stub = stub
        self.asker = asker
        self.port: Connection | None = None
        self.dialect: Dialect | None = None
        self._exchange = exchange
        self._outcome: Outcome = None
        self._unsent: Sequence[OutboundMessage] = ()
        self._deferred: list[Callable[[], None]] | None = None

    @property
    def identity(self) -> Identity | None:
        """The identity of the login that opened the session; None: there was no login."""
        return self.asker.identity

    # ---- events of the session

    def tell(self, act: Callable[[NodeSessionCore, float], None]) -> Outcome:
        """Call a method of the core with the current time; return the outcome of a request."""
        act(self.core, trio.current_time())
        return self._settle()

    def lose_link(self, link: int, why: str) -> None:
        self.detach(link)
        self.core.lose_link(link, why, trio.current_time())
        self._settle()

    def close(self, link: int) -> None:
        self._exchange.fan_outs.settle(self.core.runtime)
        self.core.close(link)
        self._settle()

    def leave(self) -> None:
        self._exchange.fan_outs.settle(self.core.runtime)
        self.core.leave()
        self._settle(is_leaving=True)

    def move_away(self, why: str) -> None:
        self._exchange.fan_outs.settle(self.core.runtime)
        self.core.move_away(why, trio.current_time())
        self._settle(is_leaving=True)

    def tick(self) -> None:
        self.tell(NodeSessionCore.time_over)

    def wait(self, entry: OutboundMessage) -> None:
        self.core.wait(entry)
        self._settle()

    def drop_waiting(self) -> None:
        self.core.shed()
        self._settle()

    def detach(self, link: int) -> None:
        """Remove a link that does not have this session any more."""
        exchange = self._exchange
        exchange.runtimes.pop(link, None)
        exchange.ports.pop(link, None)
        if self.port is not None and self.port.number == link:
            self.dialect = self.port.acceptor.dialect
            self.port = None
            exchange.others.follow(self)

    def _settle(self, *, is_leaving: bool = False) -> Outcome:
        """Run the actions that the core has caused, after it has returned; return the outcome."""
        exchange, runtime = self._exchange, self.core.runtime
        deferred, unsent, outcome = self._deferred, self._unsent, self._outcome
        self._deferred, self._unsent, self._outcome = None, (), None
        for act in deferred or ():
            act()
        exchange.alarms.set(runtime, self.core.deadline())
        if self.core.state is not State.OPEN and not is_leaving:
            self._notify_lost()
        if isinstance(outcome, Granted):
            exchange.trace.record_queued((entry.message for entry in unsent), runtime)
            return attrs.evolve(outcome, waiting=(*unsent, *outcome.waiting))
        exchange.overload.keep(self, unsent)
        return outcome

    def _notify_lost(self) -> None:
        """Tell subscribers of the runtime's status, once, that the runtime is gone (REG-12)."""
        exchange, runtime = self._exchange, self.core.runtime
        if not exchange.statuses.lose_runtime(runtime):
            return
        number, to, body = exchange.next_id(runtime), status_of(runtime), write_body(LOST)
        event = identified(
            Message(number, MessageType.UPDATE, runtime, to, body), self.asker.sender
        )
        match exchange.tables.routing.route(event, runtime):
            case ToRuntimes(runtimes) if len(runtimes) <= exchange.fan_out:
                exchange.trace.hop(Op.PUBLISH, event, targets=len(runtimes))
                exchange.deliver_to(runtimes, OutboundMessage(event, encode(event)))
            case _:
                exchange.trace.drop(event, DropReason.NO_TARGET)

    # ---- actions that the core decides

    def _defer(self, act: Callable[[], None]) -> None:
        self._deferred = self._deferred or []
        self._deferred.append(act)

    def step(self, step: Step) -> None:
        self._exchange.trace.session_step(self.core.runtime, step)

    def grant(self, granted: Granted) -> None:
        exchange, runtime = self._exchange, self.core.runtime
        self._outcome = granted
        port = self.port = exchange.ports[granted.link]
        exchange.tables.came(runtime, port.acceptor.form)
        if self.dialect is not None:
            port.acceptor.recall(self.dialect)
            self.dialect = None
        exchange.runtimes[granted.link] = runtime
        node = exchange.tables.addresses.node
        exchange.trace.session(port.name, port.acceptor.form, node, runtime)
        port.set_runtime(runtime)

    def refuse(self, code: Code, why: str) -> None:
        self._outcome = Refused(code, why)

    def cut(self, link: int, why: str, end: LinkEnd) -> None:
        is_taken = why == TAKEN_OVER
        log = _log.warning if is_taken else _log.info
        log("session taken over" if is_taken else "link cut", runtime=self.core.runtime, why=why)
        exchange = self._exchange
        port = exchange.ports.pop(link, None)
        self.detach(link)
        if port is not None:
            self._unsent = exchange.overload.session_entries(port.cut(CloseReason.REFUSED, end))

    def finish(self, link: int) -> None:
        port = self._exchange.ports.pop(link, None)
        self.detach(link)
        if port is not None:
            port.finish(port.close_reason)

    def queued(self, message: Message) -> None:
        self._exchange.trace.record_queued((message,), self.core.runtime)

    def overflow(self, message: Message, why: str) -> None:
        self._defer(partial(self._refuse_message, message, why))

    def _refuse_message(self, message: Message, why: str) -> None:
        self._exchange.warn(self.core.runtime, why, "SESSION_QUEUE", SESSION_QUEUE)
        self._exchange.undeliverable(message, Code.UNAVAILABLE, why, DropReason.OVERFLOW)

    def ping(self) -> None:
        self._defer(self._ping)

    def _ping(self) -> None:
        if self.port is not None:
            exchange = self._exchange
            node = exchange.tables.addresses.session
            number = exchange.next_id(node)
            ping = Message(number, MessageType.EXECUTE, node, self.stub, {"method": "ping"})
            exchange.send_to_link(self.port, ping)

    def end(self, why: str, undelivered: tuple[Message, ...], *, is_resumable: bool) -> None:
        exchange, runtime, is_released = self._exchange, self.core.runtime, False
        if not is_resumable:
            exchange.note(SessionForgotten(runtime), None)
            is_released = exchange.names.note_ended(runtime)
        exchange.forget(runtime)
        notice = RuntimeLeft(runtime, why, is_released)
        exchange.others.end(notice, is_resumable=is_resumable)
        shared = (entry.message for entry in exchange.fan_outs.take(runtime))
        gone = "no session owns address"
        for message in (*undelivered, *shared):
            exchange.undeliverable(message, Code.NOT_FOUND, gone, DropReason.SESSION_GONE)

    def move(self, waiting: tuple[OutboundMessage, ...]) -> None:
        exchange, runtime = self._exchange, self.core.runtime
        exchange.forget(runtime)
        exchange.statuses.lose_runtime(runtime)
        exchange.tables.moved_away(runtime)
        for entry in waiting:
            exchange.trace.hop(Op.FLUSH, entry.message)
            exchange.send_elsewhere(runtime, entry)
