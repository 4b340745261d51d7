"""How much a node holds, read from the bus's own tables when somebody looks."""

from actors.kit.counting.tally import Gauge
from actors.node.session.exchange import Exchange
from fsm.machines.session import State

__all__ = ["watch"]


def watch(exchange: Exchange) -> None:
    """Have the gauges of the bus read from an exchange; it replaces the one before a crash."""
    counters, tables = exchange.witness.counters, exchange.tables
    counters.watch(
        Gauge.SESSIONS,
        lambda: {
            State.OPEN: len(exchange.runtimes),
            State.DETACHED: len(exchange.sessions) - len(exchange.runtimes),
        },
    )
    counters.watch(Gauge.LINKS, lambda: len(exchange.ports))
    counters.watch(Gauge.LINKS_PENDING, lambda: len(exchange.ports) - len(exchange.runtimes))
    counters.watch(
        Gauge.OUTBOX_MESSAGES, lambda: sum(port.waiting for port in exchange.ports.values())
    )
    counters.watch(Gauge.ADDRESSES, lambda: len(tables.allocation))
    counters.watch(Gauge.SUBSCRIPTIONS, lambda: len(tables.subscriptions))
