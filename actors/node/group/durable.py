"""Durable messages at a node: stored in logs of the engine, from which they are delivered."""

from collections import deque
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import attrs
import trio

from actors.kit.log import get_logger
from actors.node.group import messages
from actors.node.group.engine_client import EngineClient
from actors.node.session.session import Session
from fsm.effects import CoreHost, Refused, deferred
from fsm.group.durable import AcceptCore, DeliverCore, Kept, Offered
from fsm.session.node_session_io import OutboundMessage
from specs.identity import Identity
from specs.message import DURABLE, Message, reply_to
from specs.reply_code import Code, DropReason
from specs.trace import Op
from transports.codec import encode
from transports.engine.contract import Append, Appended, EngineDownError, LogFullError

if TYPE_CHECKING:
    from actors.node.group.group import Group

_log = get_logger("actors.node")

_LOG_FULL: Final = Refused(Code.UNAVAILABLE, "the log of the receiver's runtime is full")
_NOT_KEPT: Final = Refused(Code.UNAVAILABLE, "the engine of the domain has not kept the message")
_UNKNOWN: Final = Refused(
    Code.UNAVAILABLE, "it is not known whether the engine of the domain has kept the message"
)

_LINK: Final = "log"
"""Name of the durable log in traces, in place of a link."""


def _owner(identity: Identity | None, key: str | None) -> str:
    """Return the owner of a session as a text; empty: whoever has the runtime's name.

    Args:
        identity: Login of the session; None: no login.
        key: Thumbprint of the key that the runtime has proven; None: no key.
    """
    return key or "" if identity is None else f"{identity.issuer} {identity.user}"


class Durable(CoreHost):
    """Store durable messages in the engine, and deliver them; the task of the bus calls it.

    Args:
        group: The node in its group.
    """

    def __init__(self, group: "Group") -> None:
        self.due = deque()
        self._group: Final = group
        self._exchange: Final = group.exchange
        self._trace: Final = group.trace
        self._accept: Final = AcceptCore(group.exchange.tables.addresses.domain)
        self._deliver: Final = DeliverCore(self)
        self._trims: dict[str, int] = {}

    # ---- from senders

    def keep(self, message: Message, runtime: str, by: str) -> None:
        """Append a request to the receiver's log; the sender is answered when the outcome is known.

        Args:
            message: The request.
            runtime: Runtime of the receiver.
            by: Runtime whose session brought it.
        """
        wall = self._exchange.names.wall()
        entry = messages.write_entry(self._owner_of(runtime), wall, encode(message))
        offered = Offered(message, by, runtime, entry)
        objection = self._group.objection() or self._accept.offer(offered)
        if objection is None:
            self._trace.hop(Op.XMIT, message, link=_LINK)
        else:
            self._refuse(offered, objection)

    def _owner_of(self, runtime: str) -> str:
        """Return the owner of a runtime's session, which may be at another node."""
        session, row = self._exchange.sessions.get(runtime), self._group.homes.row(runtime)
        if session is not None:
            return _owner(session.asker.identity, session.core.key)
        return "" if row is None else _owner(row.identity, row.kept and row.kept.key)

    def take_outcomes(self, number: int, outcomes: Sequence[Appended]) -> None:
        """Answer the senders of a batch of requests by whether the engine has stored them."""
        offers = self._accept.end_batch(number)
        if not offers:
            # The requests were refused already, or the batch is of an earlier bus, which crashed.
            return
        for offered, outcome in zip(offers, outcomes, strict=True):
            match outcome:
                case LogFullError():
                    self._refuse(offered, _LOG_FULL)
                case EngineDownError(is_unknown=is_unknown):
                    self._refuse(offered, _UNKNOWN if is_unknown else _NOT_KEPT)
                case _:
                    answer = reply_to(offered.message, Code.ACCEPTED)
                    self._exchange.trace.hop(Op.SYNTH, answer)
                    self._exchange.send(offered.by, answer)

    def _refuse(self, offered: Offered, refused: Refused) -> None:
        self._exchange.undeliverable(
            offered.message, refused.code, refused.why, DropReason.OVERFLOW
        )

    # ---- to receivers

    def follow(self, session: Session) -> None:
        """Deliver a session's log while the session has a link, else stop; idempotent."""
        runtime = session.core.runtime
        if session.port is None:
            self._deliver.detach(runtime)
        else:
            self._deliver.attach(runtime, self._owner_of(runtime), trio.current_time())
            self.perform()

    def end(self, message: Message, by: str) -> bool:
        """End a logged message if this is its answer; return whether it was its answer.

        Args:
            message: Any message.
            by: Runtime whose session brought it.
        """
        if not message.is_response or not self._deliver.awaits(by, message):
            return False
        self._exchange.trace.hop(Op.CALLBACK, message)
        self._deliver.take_answer(by, message, trio.current_time())
        self.perform()
        return True

    # ---- actions that the core decides; those that may call the core again are deferred

    @deferred
    def fetch(self, runtime: str, number: int, after: int, most: int) -> None:
        """Start to read messages from the log of a runtime."""
        if not self._group.begin(EngineClient.fetch, runtime, number, after, most):
            self.take_entries(runtime, number, None)

    @deferred
    def deliver(self, runtime: str, position: int, message: Message) -> None:
        """Deliver a message to the session of a runtime."""
        numbered = attrs.evolve(message, body={**message.body, DURABLE: position})
        self._trace.hop(Op.RCV, numbered, link=_LINK)
        self._exchange.deliver_to((runtime,), OutboundMessage(numbered, encode(numbered)))

    def trim(self, runtime: str, position: int) -> None:
        """Remove messages of a log up to a position, after the next batch of the bus."""
        self._trims[runtime] = position

    @deferred
    def give_up(self, runtime: str, message: Message | None, why: str) -> None:
        """Count and log a durable message that ends without an answer of its receiver."""
        _log.warning("durable message given up", runtime=runtime, why=why)
        session = self._exchange.sessions.get(runtime)
        if session is not None:
            session.core.miss()
        if message is None:
            self._trace.counters.drop(DropReason.MALFORMED)
        else:
            self._trace.drop(message, DropReason.NO_TARGET)

    # ---- reports of the engine

    def begin(self) -> None:
        """Use a new connection to the engine; appends that it has not answered are refused."""
        for offered in self._accept.give_up_batch():
            self._refuse(offered, _UNKNOWN)
        self._deliver.begin(trio.current_time())
        self.perform()

    def begin_list(self) -> None:
        """Prepare for a list of all logs with entries, followed by each new entry."""
        self._deliver.begin_list()
        self.perform()

    def add_entries(self, reached: Sequence[tuple[str, int]]) -> None:
        """Record up to which positions the logs of runtimes have entries, or had them."""
        for runtime, position in reached:
            self._deliver.add_entry(runtime, position, trio.current_time())
        self.perform()

    def take_entries(self, runtime: str, number: int, entries: Sequence[Kept] | None) -> None:
        """Process messages that were read from a log; None: the log could not be read."""
        self._deliver.take_entries(runtime, number, entries, trio.current_time())
        self.perform()

    def end_trims(self, reached: Mapping[str, int], *, is_done: bool) -> None:
        """Record whether logs were trimmed, each up to a position."""
        for runtime, position in reached.items():
            self._deliver.take_trim(runtime, position, trio.current_time(), is_done=is_done)
        self.perform()

    # ---- calls of the bus after each batch of messages

    @property
    def is_settled(self) -> bool:
        """True if no append waits for the engine."""
        return self._accept.is_settled

    def settle(self) -> None:
        """Send the trims and appends that were decided since the last call to the engine."""
        if self._trims:
            trims, self._trims = self._trims, {}
            if not self._group.begin(EngineClient.trim, trims):
                self.end_trims(trims, is_done=False)
        batch = self._accept.begin_batch()
        if batch is not None:
            number, offers = batch
            appends = tuple(Append(offer.log, offer.payload) for offer in offers)
            if not self._group.begin(EngineClient.append, number, appends):
                for offered in self._accept.give_up_batch():
                    self._refuse(offered, _NOT_KEPT)

    def deadline(self) -> float:
        """Return when to call `tick`."""
        return self._deliver.deadline()

    def tick(self) -> None:
        """Handle timeouts of deliveries."""
        self._deliver.tick(trio.current_time())
        self.perform()
