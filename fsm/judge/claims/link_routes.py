"""Judges of direct links as ways (I-P17..I-P19)."""

from collections.abc import Iterator

from fsm.judge.claims.finding import Finding
from fsm.judge.claims.listeners import Listeners
from fsm.judge.claims.rows import Rows
from fsm.judge.claims.told import BUS, LINK_MACHINE, LIVE, SLACK, NodeTrace, is_connection, split
from fsm.judge.trace_line import TraceLine
from specs.trace import Kind, Op

__all__ = [
    "registration_order",
    "route_needs_listener",
    "unbind",
]


def registration_order(node: NodeTrace) -> Iterator[Finding]:
    """Live first, then the bus listens, then the handler's, then it is a way (I-P17)."""
    listeners, lived = Listeners(), set[str]()
    for record in node.records:
        if listeners.take(record):
            end = record.key or ""
            if record.op != Op.ADD or not is_connection(end):
                continue
            if record.actor == BUS and end not in lived:
                yield node.finding("I-P17", record, "the link to be live first")
            elif record.actor != BUS and not listeners.of(BUS, end):
                yield node.finding("I-P17", record, "the bus to listen first")
        elif record.is_step and record.machine == LINK_MACHINE and record.new == LIVE:
            lived.add(split(record.key)[-1])


def route_needs_listener(node: NodeTrace) -> Iterator[Finding]:
    """A handler's end is a way only if both routers know it (I-P18)."""
    listeners = Listeners()
    for record in node.records:
        if listeners.take(record) or record.k != Kind.RESOLVE or record.op != Op.DONE:
            continue
        end = record.result or ""
        if not is_connection(end):
            continue
        routers = [BUS, *listeners.of(BUS, end)]
        if len(routers) == 1 or not all(listeners.of(router, end) for router in routers):
            yield node.finding("I-P18", record, f"listeners of {end} at both routers")


def unbind(node: NodeTrace) -> Iterator[Finding]:
    """Of a link that is over no listener stays (I-P19)."""
    listeners, gone = Listeners(), dict[str, TraceLine]()
    links = Rows("p2p")
    for record in node.records:
        words = links.words(record.key or "")
        if listeners.take(record) or not links.take(record):
            continue
        if record.op == Op.DEL and len(words) > 1 and is_connection(words[1]):
            gone[words[1]] = record
    for end, record in gone.items():
        if node.is_over_since(record.t + SLACK) and listeners.of(BUS, end):
            yield node.finding("I-P19", record, f"no listener of {end}")
