"""The routing table that MiniBUS, Message BUS and message node share (BUS-01..04, BUS-17).

The core is only a table of listeners. It never parses an address, changes a message or decides on
permissions. The look-up is by the literal address (I-B1) and finds all listeners of an address in
the order of their registration (I-B2, I-B3). The listener `*` gets the messages that have no
listener of their own. Only a MiniBUS has one: on a Message BUS it would send messages back to where
they came from (I-B5).
"""

from collections import Counter
from collections.abc import Iterator
from typing import Final, Generic, Protocol, TypeVar, final

import attrs

from fsm.effects import RowChanged
from specs.addresses.address import canonical
from specs.errors import ProtoflyError, SpecError
from specs.limits.bus import FORWARD_RULES
from specs.message import Message
from specs.trace import Op

ANY: Final = "*"
"""The address of the listener for messages that have no other listener."""

TABLE: Final = "listeners"
"""The name of this table in traces."""


class Named(Protocol):
    """A listener: any object with a name, which appears in traces."""

    @property
    def name(self) -> str:
        """The listener's name."""


L = TypeVar("L", bound=Named)


class RoutingCore(Generic[L]):
    """The listeners of each address.

    Args:
        has_any: Whether the table may contain `*`, as in a MiniBUS.
    """

    def __init__(self, *, has_any: bool) -> None:
        self._has_any = has_any
        self._rows: dict[str, tuple[L, ...]] = {}

    def __len__(self) -> int:
        return sum(len(listeners) for listeners in self._rows.values())

    def __bool__(self) -> bool:
        return bool(self._rows)

    def add(self, address: str, listener: L, writer: str) -> list[RowChanged]:
        """Add a row; an existing row keeps its place. Idempotent.

        Args:
            address: The address to listen to, or `*`.
            listener: The component that gets the messages.
            writer: Name of the component that changes the table, for the trace.

        Raises:
            SpecError: `*` on a Message BUS: a bug of the caller.
        """
        if address == ANY and not self._has_any:
            raise SpecError("a Message BUS has no listener for everything")
        listeners = self._rows.get(address, ())
        if listener in listeners:
            return []
        self._rows[address] = (*listeners, listener)
        return [RowChanged(Op.ADD, TABLE, address, listener.name, writer)]

    def remove(self, address: str, listener: L | None, writer: str) -> list[RowChanged]:
        """Remove rows of an address. Idempotent.

        Args:
            address: The address of the rows.
            listener: The listener whose row is removed; None: all rows of the address.
            writer: Name of the component that changes the table, for the trace.
        """
        listeners = self._rows.get(address, ())
        removed = tuple(row for row in listeners if listener is None or row == listener)
        stays = tuple(row for row in listeners if row not in removed)
        if stays:
            self._rows[address] = stays
        else:
            self._rows.pop(address, None)
        return [RowChanged(Op.DEL, TABLE, address, row.name, writer) for row in removed]

    def remove_listener(self, listener: L, writer: str) -> list[RowChanged]:
        """Remove every row of a listener. Idempotent.

        Args:
            listener: The listener, which has ended.
            writer: Name of the component that changes the table, for the trace.
        """
        addresses = [address for address, rows in self._rows.items() if listener in rows]
        return [
            change for address in addresses for change in self.remove(address, listener, writer)
        ]

    def find(self, address: str) -> tuple[L, ...]:
        """Return the listeners of exactly this address, in registration order."""
        return self._rows.get(address, ())

    def find_routed(self, route: str, to: str) -> tuple[L, ...]:
        """Return the listeners of the route; if none, those of `to`; if none, those of `*`.

        Args:
            route: Address that the message was routed to.
            to: Receiver of the message.
        """
        rows = self._rows
        return rows.get(route) or rows.get(to) or rows.get(ANY, ())


# Forward rules and aliases of a Message BUS (BUS-08, BUS-10).
#
# By a forward rule, every request and event for one address is copied to another; by an alias,
# in both directions. The rules form no cycle: a rule that would close one is refused. A copy names
# the addresses from which it was copied in `via`, so it goes back to none of them, and the loop
# check ends a chain of more than HOP_LIMIT.

_TABLE: Final = "forwards"
"""The name of this table in traces."""


@final
class ForwardRefusedError(ProtoflyError, public=True):
    """A forward rule or an alias cannot be added.

    Attributes:
        source: The address whose messages should be copied.
        target: The address that should get the copies.
        reason: The reason of the refusal, as half a sentence.
    """

    def __init__(self, source: str, target: str, reason: str) -> None:
        super().__init__(f"messages for {source} are not forwarded to {target}: {reason}")
        self.source = source
        self.target = target
        self.reason = reason


@attrs.frozen
class ForwardRule:
    """A forward rule, or an alias.

    Attributes:
        source: Address whose messages are copied.
        target: Address that gets the copies.
        is_alias: Whether messages for the target are copied to the source, too.
    """

    source: str
    target: str
    is_alias: bool = False

    @classmethod
    def of(cls, source: str, target: str, *, is_alias: bool = False) -> "ForwardRule":
        """Return the rule for two addresses; the ends of an alias have no order.

        Args:
            source: The first address.
            target: The second address.
            is_alias: Whether messages are copied in both directions.

        Raises:
            BadUrlError: One of them is no address.
        """
        ends = canonical(source), canonical(target)
        first, second = sorted(ends) if is_alias else ends
        return cls(first, second, is_alias)

    @property
    def directions(self) -> tuple[tuple[str, str], ...]:
        """Pairs of addresses: messages for the first are copied to the second."""
        forward = (self.source, self.target)
        return (forward, forward[::-1]) if self.is_alias else (forward,)


class ForwardRules:
    """The rules of one Message BUS; a rule that was added several times has several owners.

    Attributes:
        targets: The addresses to which the messages of each address are copied.
    """

    def __init__(self) -> None:
        self._owners: Counter[ForwardRule] = Counter()
        self.targets: dict[str, tuple[str, ...]] = {}

    def add(self, rule: ForwardRule, writer: str) -> list[RowChanged]:
        """Add a rule, or one more owner of an equal rule.

        Args:
            writer: Name of the component that adds it, for the trace.

        Raises:
            ForwardRefusedError: The rule would close a circle, or there are too many.
        """
        if rule not in self._owners:
            why = self._objection(rule)
            if why:
                raise ForwardRefusedError(rule.source, rule.target, why)
        self._owners[rule] += 1
        return self._compile_targets(Op.ADD, rule, writer) if self._owners[rule] == 1 else []

    def remove(self, rule: ForwardRule, writer: str) -> list[RowChanged]:
        """Remove one owner of a rule, and the rule with its last owner. Idempotent.

        Args:
            writer: Name of the component that removes it, for the trace.
        """
        if rule not in self._owners:
            return []
        self._owners[rule] -= 1
        if self._owners[rule]:
            return []
        del self._owners[rule]
        return self._compile_targets(Op.DEL, rule, writer)

    def copies(self, message: Message) -> Iterator[Message]:
        """Yield the copies of a message for the next addresses of its rules.

        Args:
            message: A request or event.
        """
        targets = self.targets.get(message.to)
        if targets is None:
            return
        # After the name of the stub that brought the message, which is the last one.
        via = message.via
        crossed = [message.to, *via]
        for target in targets:
            if target not in via:
                yield attrs.evolve(message, to=target, body={**message.body, "via": [*crossed]})

    def _objection(self, rule: ForwardRule) -> str:
        if len(self._owners) >= FORWARD_RULES:
            return f"there are {FORWARD_RULES} rules; end one first"
        ends = [rule.source, rule.target]
        is_circle = rule.source in self._reachable_from(rule.target)
        if is_circle or (rule.is_alias and rule.target in self._reachable_from(rule.source)):
            return f"they would form a loop between {' and '.join(ends)}"
        return ""

    def _reachable_from(self, source: str) -> set[str]:
        """Return an address and all addresses that get copies of its messages."""
        reached, queue = {source}, [source]
        while queue:
            added = [each for each in self.targets.get(queue.pop(), ()) if each not in reached]
            reached.update(added)
            queue += added
        return reached

    def _compile_targets(self, op: Op, rule: ForwardRule, writer: str) -> list[RowChanged]:
        targets: dict[str, dict[str, None]] = {}
        for owner in self._owners:
            for source, target in owner.directions:
                targets.setdefault(source, {})[target] = None
        self.targets = {source: tuple(found) for source, found in targets.items()}
        return [RowChanged(op, _TABLE, a, b, writer) for a, b in rule.directions]
