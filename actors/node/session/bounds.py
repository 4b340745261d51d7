"""What the parts of one node share to keep its limits (RELIABILITY L1..L7)."""

from typing import Final, TypeAlias, final

import trio
from typing_extensions import override

from actors.kit.counting.counters import Counters
from actors.kit.counting.tally import Gauge, Tally
from actors.node.limits import NodeLimits
from actors.node.session.heartbeat import LinkHeartbeat
from fsm.limits.token_bucket import Rate, TokenBuckets
from fsm.limits.unauthenticated_links import UnauthenticatedLinks
from fsm.session.outbox_budget import OutboxBudget
from specs.addresses.address import is_node
from specs.identity import Identity
from specs.link_end import TurnedAway
from transports.gate import Gate, Guest

__all__ = ["Bounds", "NodeGate"]

_Who: TypeAlias = str | int
"""A session, by its runtime; a link that has none, by its number."""


@final
class _NodeGuest(Guest):
    __slots__ = ("_gate", "_number")

    def __init__(self, gate: "NodeGate", number: int) -> None:
        super().__init__()
        self._gate: Final = gate
        self._number: Final = number

    @override
    def settle(self) -> None:
        self._gate.settle(self._number)


@final
class NodeGate(Gate):
    """The gate of a node's front door: host of the core that counts strangers."""

    def __init__(self, limits: NodeLimits, origins: frozenset[str], counters: Counters) -> None:
        self.origins = origins
        self._counters: Final = counters
        self._guests: Final[dict[int, Guest]] = {}
        self._strangers: Final = UnauthenticatedLinks(
            limits.handshakes, limits.strangers, limits.strangers_per_host
        )

    def __len__(self) -> int:
        return len(self._strangers)

    @override
    def knock(self, host: str) -> Guest | None:
        knock = self._strangers.knock(host, trio.current_time())
        if knock is None:
            self.turned_away(TurnedAway.TOO_FAST)
            return None
        if knock.makes_room is not None:
            self._guests.pop(knock.makes_room).expel()
        guest = self._guests[knock.number] = _NodeGuest(self, knock.number)
        return guest

    @override
    def turned_away(self, why: TurnedAway) -> None:
        self._counters.count(Tally.HANDSHAKES_REFUSED, why)

    def settle(self, number: int) -> None:
        """Count somebody no longer."""
        self._strangers.forget(number)
        self._guests.pop(number, None)


@final
class _TokenBucket:
    """How fast sessions of one kind may send, each, and all of one identity together."""

    def __init__(self, each: Rate, together: Rate) -> None:
        self._sessions: Final = TokenBuckets[_Who](each)
        self._identities: Final = TokenBuckets[tuple[str, str]](together)

    def pause(self, who: _Who, identity: Identity | None, count: int) -> float:
        """Note that messages came; return the seconds until none is owed."""
        now = trio.current_time()
        pause = self._sessions.spend(who, count, now)
        if identity is None:
            return pause
        key = (identity.issuer, identity.user)
        return max(pause, self._identities.spend(key, count, now))


@final
class Bounds:
    """The limits, and what has been used of them.

    Attributes:
        limits: As configured.
        gate: Who may come in.
        budget: Bytes that wait; of the bus that runs, which makes it anew when it starts.
        counters: Where it is counted what was not let in, and why links ended.
        pulse: Who looks whether silent peers are there; the front door runs it.
    """

    def __init__(self, limits: NodeLimits, origins: frozenset[str], counters: Counters) -> None:
        self.limits: Final = limits
        self.gate: Final = NodeGate(limits, origins, counters)
        self.budget = OutboxBudget(limits.outbox_budget)
        self.counters: Final = counters
        self.pulse: Final = LinkHeartbeat()
        self._runtimes: Final = _TokenBucket(limits.messages, limits.identity)
        self._nodes: Final = _TokenBucket(limits.nodes, limits.nodes)
        counters.watch(Gauge.OUTBOX_BYTES, lambda: self.budget.used)

    def fresh_budget(self) -> OutboxBudget:
        """Begin to count what waits: a bus has started, and knows no outbox yet."""
        self.budget = OutboxBudget(self.limits.outbox_budget)
        return self.budget

    def pause(self, who: _Who, identity: Identity | None, count: int) -> float:
        """Note that somebody has sent messages; return how long nothing more is to be read."""
        pace = self._nodes if isinstance(who, str) and is_node(who) else self._runtimes
        return pace.pause(who, identity, count)
