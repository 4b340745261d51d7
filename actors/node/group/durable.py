"""Durable messages of a node: kept in the logs of the engine, and delivered from there."""

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
"""What traces call the way into a log, and out of it."""


def _owner(identity: Identity | None, key: str | None) -> str:
    """Return what a session belongs to, in one text; empty: to the name of its runtime alone.

    Args:
        identity: Who has logged in; None: nobody.
        key: Thumbprint of the key that its runtime has proven; None: it showed none.
    """
    return key or "" if identity is None else f"{identity.issuer} {identity.user}"


class Durable(CoreHost):
    """Host of the cores of durable messages; part of the bus's task.

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
        """Write a request to the log of its receiver; the sender is answered when that is decided.

        Args:
            message: The request.
            runtime: Runtime of the receiver.
            by: Runtime whose session brought it.
        """
        wall = self._exchange.names.wall()
        entry = messages.write_entry(self._whose(runtime), wall, encode(message))
        offered = Offered(message, by, runtime, entry)
        objection = self._group.objection() or self._accept.offer(offered)
        if objection is None:
            self._trace.hop(Op.XMIT, message, link=_LINK)
        else:
            self._refuse(offered, objection)

    def _whose(self, runtime: str) -> str:
        """Return what the session of a runtime belongs to, here or at another node."""
        session, row = self._exchange.sessions.get(runtime), self._group.homes.row(runtime)
        if session is not None:
            return _owner(session.asker.identity, session.core.key)
        return "" if row is None else _owner(row.identity, row.kept and row.kept.key)

    def take_outcomes(self, number: int, outcomes: Sequence[Appended]) -> None:
        """Take what has become of the additions of one batch."""
        asked = self._accept.end_batch(number)
        if not asked:
            # It was given up, or an earlier bus, which has crashed, has asked.
            return
        for offered, outcome in zip(asked, outcomes, strict=True):
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
        """Give a session with a link what is kept for it, and one without nothing. Idempotent."""
        runtime = session.core.runtime
        if session.port is None:
            self._deliver.detach(runtime)
        else:
            self._deliver.attach(runtime, self._whose(runtime), trio.current_time())
            self.perform()

    def end(self, message: Message, by: str) -> bool:
        """End a message that a log has kept, if this is its answer, which goes no further then.

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

    # ---- port of the core: what may lead back to it waits until the core is done

    @deferred
    def fetch(self, runtime: str, number: int, after: int, most: int) -> None:
        """Have a log read."""
        if not self._group.begin(EngineClient.fetch, runtime, number, after, most):
            self.take_entries(runtime, number, None)

    @deferred
    def deliver(self, runtime: str, position: int, message: Message) -> None:
        """Give a message to the session of a runtime."""
        placed = attrs.evolve(message, body={**message.body, DURABLE: position})
        self._trace.hop(Op.RCV, placed, link=_LINK)
        self._exchange.hand_out_to((runtime,), OutboundMessage(placed, encode(placed)))

    def trim(self, runtime: str, position: int) -> None:
        """Have a log trimmed with the next turn of the bus."""
        self._trims[runtime] = position

    @deferred
    def give_up(self, runtime: str, message: Message | None, why: str) -> None:
        """Report a message that ends without an answer of its receiver."""
        _log.warning("durable message given up", runtime=runtime, why=why)
        session = self._exchange.sessions.get(runtime)
        if session is not None:
            session.core.miss()
        if message is None:
            self._trace.counters.drop(DropReason.MALFORMED)
        else:
            self._trace.drop(message, DropReason.NO_TARGET)

    # ---- news

    def begin(self) -> None:
        """Ask the logs from now on; what was under way is not answered any more."""
        for offered in self._accept.give_up_batch():
            self._refuse(offered, _UNKNOWN)
        self._deliver.begin(trio.current_time())
        self.perform()

    def begin_list(self) -> None:
        """Each log that has an entry is reported from now on, and then each further entry."""
        self._deliver.begin_list()
        self.perform()

    def add_entries(self, reached: Sequence[tuple[str, int]]) -> None:
        """Note that logs of runtimes have entries at positions, or have had them."""
        for runtime, position in reached:
            self._deliver.add_entry(runtime, position, trio.current_time())
        self.perform()

    def take_entries(self, runtime: str, number: int, entries: Sequence[Kept] | None) -> None:
        """Take what was read of a log; None: it could not be read."""
        self._deliver.take_entries(runtime, number, entries, trio.current_time())
        self.perform()

    def end_trims(self, reached: Mapping[str, int], *, is_done: bool) -> None:
        """Note that logs were trimmed up to a position each, or could not be."""
        for runtime, position in reached.items():
            self._deliver.take_trim(runtime, position, trio.current_time(), is_done=is_done)
        self.perform()

    # ---- turns of the bus

    @property
    def is_settled(self) -> bool:
        """True if nothing waits for the engine."""
        return self._accept.is_settled

    def settle(self) -> None:
        """Send what the turn of the bus has brought about."""
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
        """Return when `tick` is due."""
        return self._deliver.deadline()

    def tick(self) -> None:
        """Do what is due."""
        self._deliver.tick(trio.current_time())
        self.perform()
