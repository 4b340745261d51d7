"""Look up receivers in the engine, if this node does not know their rows yet.

Rows reach the nodes of a domain at different times. So before a node answers that an address has no
receiver, it reads the row of the address from the engine, and the row of the owner's session.
Meanwhile messages to the address wait, in order.
"""

from typing import TYPE_CHECKING, Final

import attrs

from actors.node.group.messages import LookUp
from fsm.bus.node_routing import is_published
from fsm.effects import Refused
from fsm.group.kinds import owner_key, session_key
from fsm.limits.shares import Share, UserShares
from fsm.sync.subscriptions import entity_of
from specs.addresses.address import RUNTIME_SCHEME, domain_of, is_backend, runtime_of, scheme_of
from specs.limits.engine import ROW_KEY
from specs.limits.group import GROUP_LOOKUP_BYTES, GROUP_LOOKUPS
from specs.message import Message
from specs.reply_code import Code, DropReason
from specs.trace import Op
from transports.codec import encode

if TYPE_CHECKING:
    from actors.node.group.group import Group

DOWN: Final = Refused(Code.UNAVAILABLE, "the engine of the domain cannot be reached now")
"""Refusal of requests that need the engine while the engine cannot be reached."""

_KIND: Final = "messages that wait until their receiver is looked up"
_TOGETHER: Final = Share(GROUP_LOOKUPS, GROUP_LOOKUP_BYTES)
_EACH: Final = Share(GROUP_LOOKUPS // 8, GROUP_LOOKUP_BYTES // 4)


@attrs.define
class _Lookup:
    """Lookup of an address in progress, and the messages that wait for it.

    Attributes:
        messages: The waiting messages, each with the runtime that sent it and its size in bytes.
        counted: How many of the messages came before the row was read; its answer holds for them.
    """

    read: LookUp
    messages: list[tuple[Message, str | None, int]] = attrs.field(factory=list)
    counted: int = 1


class Lookups:
    """Hold messages to unknown addresses while rows are read from the engine; the bus calls it.

    Args:
        group: The node in its group.

    Attributes:
        pending: Lookups in progress, by address.
    """

    def __init__(self, group: "Group") -> None:
        self.pending: Final[dict[str, _Lookup]] = {}
        self._group: Final = group
        self._exchange: Final = group.exchange
        self._tables: Final = group.exchange.tables
        self._shares: Final = UserShares(_KIND, _EACH, _TOGETHER, self._user_of, Code.UNAVAILABLE)
        self._settled: str | None = None

    def _user_of(self, runtime: str) -> str:
        return self._exchange.names.user_of(runtime)

    def look_up(self, message: Message, by: str | None) -> bool:
        """Hold a message while its receiver is looked up; see `OtherNodes.look_up`."""
        if self._settled == message.to:
            return False
        lookup = self.pending.get(message.to)
        if lookup is None:
            key = None if is_published(message) else self._missing_row(message.to)
            if key is None:
                return False
            lookup = _Lookup(LookUp(message.to, key))
        size = len(encode(message))
        refusal, reason = self._shares.refusal(by or "", 1, size), DropReason.OVERFLOW
        if refusal is None and not lookup.messages:
            refusal, reason = self._group.look_row_up(lookup.read), DropReason.NO_TARGET
        if refusal is not None:
            self._exchange.undeliverable(message, refusal.code, refusal.why, reason)
            return True
        self._shares.take(by or "", 1, size)
        self._exchange.trace.hop(Op.QUEUE, message)
        lookup.messages.append((message, by, size))
        self.pending[message.to] = lookup
        return True

    def _missing_row(self, address: str) -> str | None:
        """Return the key of the row that is missing to route to an address; None: none is missing.

        Also return None for an address for which the engine has no rows.
        """
        if domain_of(address) != self._tables.addresses.domain or is_backend(address):
            return None
        owner = self._tables.routing.owner_of(address)
        if owner is None and scheme_of(address) != RUNTIME_SCHEME:
            key = owner_key(entity_of(address))
        else:
            runtime = owner or runtime_of(address)
            if runtime in self._exchange.sessions or runtime in self._tables.away:
                return None
            key = session_key(runtime)
        return key if len(key.encode()) <= ROW_KEY else None

    def on_row_read(self, read: LookUp, *, is_read: bool) -> None:
        """Route the messages that waited for a row; if another row is missing now, they wait again.

        Args:
            read: The lookup, whose row was already applied to the tables.
            is_read: Whether the engine has answered.
        """
        lookup = self.pending.get(read.address)
        if lookup is None or lookup.read is not read:
            return
        if not is_read:
            self.give_up(DOWN, lookup)
            return
        del self.pending[read.address]
        is_missing = self._missing_row(read.address) == read.key
        # For later messages the answer may be outdated: the row may have been written since.
        for number, (message, by, size) in enumerate(lookup.messages):
            self._release(message, by, size)
            self._settled = read.address if is_missing and number < lookup.counted else None
            try:
                self._exchange.route(message, by)
            finally:
                self._settled = None
        if (again := self.pending.get(read.address)) is not None:
            again.counted = len(again.messages)

    def _release(self, message: Message, by: str | None, size: int) -> None:
        self._shares.take(by or "", -1, -size)
        self._exchange.trace.hop(Op.FLUSH, message)

    def give_up(self, why: Refused, *lookups: _Lookup) -> None:
        """Refuse the messages that wait for the given lookups, or for all if none is given."""
        for lookup in lookups or tuple(self.pending.values()):
            del self.pending[lookup.read.address]
            for message, by, size in lookup.messages:
                self._release(message, by, size)
                self._exchange.undeliverable(message, why.code, why.why, DropReason.NO_TARGET)
