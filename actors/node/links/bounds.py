"""Rate and memory limits that all links and components of a node share (RELIABILITY L1..L7)."""

import math
from time import perf_counter
from typing import Final, TypeAlias

import trio
from typing_extensions import override

from actors.kit.counters import Counters, Gauge, Tally
from actors.kit.log import get_logger
from actors.node.limits import NodeLimits
from fsm.limits.rates import Rate, TokenBuckets
from fsm.limits.shares import UnauthenticatedLinks
from fsm.session.outbox_budget import OutboxBudget
from specs.addresses.address import is_node
from specs.identity import Identity
from specs.limits.protocol import WARNING_PAUSE
from specs.reply_code import TurnedAway
from transports.link import Gate, Guest

_log = get_logger("actors.node")


_Who: TypeAlias = str | int
"""Peer that a limit is counted for: a session by its runtime, or a link by its number."""


class _NodeGuest(Guest):
    __slots__ = ("_gate", "_number")

    def __init__(self, gate: "NodeGate", number: int, host: str) -> None:
        super().__init__(host)
        self._gate: Final = gate
        self._number: Final = number

    @override
    def settle(self) -> None:
        self._gate.settle(self._number)


class NodeGate(Gate):
    """Admission of connections at the listener of a node; counts those that have no session."""

    def __init__(self, limits: NodeLimits, origins: frozenset[str], counters: Counters) -> None:
        self.origins = origins
        self._counters: Final = counters
        self._guests: Final[dict[int, Guest]] = {}
        self._unauthenticated: Final = UnauthenticatedLinks(
            limits.handshakes, limits.unauthenticated, limits.unauthenticated_per_host
        )

    def __len__(self) -> int:
        return len(self._unauthenticated)

    @override
    def knock(self, host: str) -> Guest | None:
        knock = self._unauthenticated.knock(host, trio.current_time())
        if knock is None:
            self.turned_away(TurnedAway.TOO_FAST)
            return None
        number, makes_room = knock
        if makes_room is not None:
            self._guests.pop(makes_room).expel()
        return self._guests.setdefault(number, _NodeGuest(self, number, host))

    @override
    def room(self) -> int:
        return self._unauthenticated.room(trio.current_time())

    @override
    def turned_away(self, why: TurnedAway) -> None:
        self._counters.count(Tally.HANDSHAKES_REFUSED, why)

    def settle(self, number: int) -> None:
        """Stop counting a connection as one without a session."""
        self._unauthenticated.forget(number)
        self._guests.pop(number, None)


class _TokenBucket:
    """Message rate limits: for each session, and for all sessions of one user together."""

    def __init__(self, each: Rate, together: Rate) -> None:
        self._sessions: Final = TokenBuckets[_Who](each)
        self._identities: Final = TokenBuckets[tuple[str, str]](together)

    def pause(self, who: _Who, identity: Identity | None, count: int) -> tuple[float, bool]:
        """Count messages; return the seconds until the peer is below its rate again.

        Also return whether the sessions of the identity together exceed their rate by more than
        this one.
        """
        now = trio.current_time()
        pause = self._sessions.spend(who, count, now)
        if identity is None:
            return pause, False
        key = (identity.issuer, identity.user)
        together = self._identities.spend(key, count, now)
        return max(pause, together), together > pause


def _per_minute(count: float) -> Rate:
    return Rate(count / 60, int(count)) if math.isfinite(count) else Rate(math.inf, 1)


class Bounds:
    """Limits of a node, and their current use.

    Attributes:
        budget: Bytes that wait; each bus makes a new budget when it starts.
        counters: Counters of refused connections, and of the ends of links.
        work_clock: Returns seconds that also pass while the node does not wait.
        failures: Permitted requests for sessions with wrong tokens, by host.
    """

    def __init__(self, limits: NodeLimits, origins: frozenset[str], counters: Counters) -> None:
        self.limits: Final = limits
        self.gate: Final = NodeGate(limits, origins, counters)
        self.budget = OutboxBudget(limits.outbox_budget)
        self.counters: Final = counters
        self.work_clock = perf_counter
        self.failures: Final = TokenBuckets[str](_per_minute(limits.max_failed_opens))
        self._warned: Final = TokenBuckets[tuple[str, str]](Rate(1 / WARNING_PAUSE, 1))
        self._runtimes: Final = _TokenBucket(limits.messages, limits.identity)
        self._nodes: Final = _TokenBucket(limits.nodes, limits.nodes)
        counters.watch(Gauge.OUTBOX_BYTES, lambda: self.budget.used)

    def fresh_budget(self) -> OutboxBudget:
        """Return a new budget: a bus has started, and has no outbox yet."""
        self.budget = OutboxBudget(self.limits.outbox_budget)
        return self.budget

    def pace_of(self, peer: str) -> Rate:
        """Return the message rate of one session of a peer.

        Args:
            peer: Address of a runtime, or of the node of another domain.
        """
        limits = self.limits
        if is_node(peer):
            return limits.nodes
        return min(limits.messages, limits.identity, key=lambda rate: rate.per_second)

    def pause(self, who: _Who, identity: Identity | None, count: int) -> float:
        """Count messages of a peer; return the seconds for which its link must not be read.

        A peer above its rate is logged once a minute. Runtimes of Protofly keep to the rate by
        themselves.

        Args:
            who: The peer's link or session.
            identity: Identity of the user; None: no login.
            count: Number of messages.
        """
        is_of_node = isinstance(who, str) and is_node(who)
        pace = self._nodes if is_of_node else self._runtimes
        pause, is_of_all = pace.pause(who, identity, count)
        if pause:
            limit, rate = "message-rate", self.limits.messages
            if is_of_node:
                limit, rate = "node-rate", self.limits.nodes
            elif is_of_all:
                limit, rate = "identity-rate", self.limits.identity
            self.warn(str(who), "messages above the rate are read late", limit, rate.per_second)
        return pause

    def warn(self, who: str, event: str, limit: str, value: float) -> None:
        """Log that a peer reaches a limit, once a minute for each peer and limit.

        Args:
            who: Address of the peer, or number of its link.
            event: The effect on the messages of the peer.
            limit: Name of the limit.
            value: Value of the limit.
        """
        if self._warned.try_spend((who, limit), trio.current_time()):
            _log.warning(event, peer=who, limit=limit, value=value)
