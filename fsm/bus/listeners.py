"""Routing tables of a message bus: listeners of each address, and rules that forward copies.

`RoutingCore`, which MiniBUS, Message BUS and message node all use, maps an address to the listeners
that get its messages (BUS-01..04, BUS-17). It never parses an address, changes a message or decides
on permissions. It compares literal addresses (I-B1) and returns the listeners in the order of their
registration (I-B2, I-B3). The listener of `*` gets the messages to addresses without a listener.
Only a MiniBUS has it: on a Message BUS it would send messages back to where they came from (I-B5).
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
    """Routing table: the listeners of each address.

    Args:
        has_any: Whether the table may contain a listener of `*`, as in a MiniBUS.
    """

    def __init__(self, *, has_any: bool) -> None:
        self._has_any = has_any
        self._rows: dict[str, tuple[L, ...]] = {}

    def __len__(self) -> int:
        return sum(len(listeners) for listeners in self._rows.values())

    def __bool__(self) -> bool:
        return bool(self._rows)

    def add(self, address: str, listener: L, writer: str) -> list[RowChanged]:
        """Add a listener of an address, after the existing listeners. Idempotent.

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
        """Remove one listener, or all listeners, of an address. Idempotent.

        Args:
            address: The address.
            listener: The listener to remove; None: all listeners of the address.
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
        """Remove a listener from all its addresses. Idempotent.

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
        """Return the listeners of `route`, else the listeners of `to`, else the listener of `*`.

        Args:
            route: Address that the message was routed to.
            to: Receiver of the message.
        """
        rows = self._rows
        return rows.get(route) or rows.get(to) or rows.get(ANY, ())


# Forward rules and aliases of a Message BUS (BUS-08, BUS-10).
#
# A forward rule copies every request and event for one address to another address; an alias does so
# in both directions. The rules form no cycle: a rule that would close a cycle is refused. The field
# `via` of a copy lists the addresses that the message was copied from, so no copy returns to any of
# them, and the loop check ends a chain of more than HOP_LIMIT copies.

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
    """A rule that copies messages for one address to another; an alias does so in both directions.

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
        """Return the rule for two addresses; the order of an alias's addresses does not matter.

        Args:
            source: The first address.
            target: The second address.
            is_alias: Whether messages are copied in both directions.

        Raises:
            BadUrlError: One of the two texts is no valid address.
        """
        ends = canonical(source), canonical(target)
        first, second = sorted(ends) if is_alias else ends
        return cls(first, second, is_alias)

    @property
    def directions(self) -> tuple[tuple[str, str], ...]:
        """Pairs of addresses: messages for the first of a pair are copied to the second."""
        forward = (self.source, self.target)
        return (forward, forward[::-1]) if self.is_alias else (forward,)


class ForwardRules:
    """The forward rules of one Message BUS, with the number of components that have added each.

    Attributes:
        targets: The addresses to which the messages of each address are copied.
    """

    def __init__(self) -> None:
        self._owners: Counter[ForwardRule] = Counter()
        self.targets: dict[str, tuple[str, ...]] = {}

    def add(self, rule: ForwardRule, writer: str) -> list[RowChanged]:
        """Add a rule; if an equal rule exists, count one more owner of it.

        Args:
            rule: The rule.
            writer: Name of the component that adds the rule, for the trace.

        Raises:
            ForwardRefusedError: The rule would close a cycle, or too many rules exist.
        """
        if rule not in self._owners:
            why = self._objection(rule)
            if why:
                raise ForwardRefusedError(rule.source, rule.target, why)
        self._owners[rule] += 1
        return self._compile_targets(Op.ADD, rule, writer) if self._owners[rule] == 1 else []

    def remove(self, rule: ForwardRule, writer: str) -> list[RowChanged]:
        """Count one owner of a rule less; the last owner removes the rule. Idempotent.

        Args:
            rule: The rule.
            writer: Name of the component that removes the rule, for the trace.
        """
        if rule not in self._owners:
            return []
        self._owners[rule] -= 1
        if self._owners[rule]:
            return []
        del self._owners[rule]
        return self._compile_targets(Op.DEL, rule, writer)

    def copies(self, message: Message) -> Iterator[Message]:
        """Yield the copies of a message for the addresses to which the rules forward it.

        Args:
            message: A request or event.
        """
        targets = self.targets.get(message.to)
        if targets is None:
            return
        # The new address comes first, so the last element stays the stub that brought the message.
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
        """Return an address and all addresses that get, directly or not, copies of its messages."""
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
