"""Judges of what a node hands on: to whom, in which order, in whose name (I-M5..I-M14)."""

import math
from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from fsm.judge.claims.finding import Finding
from fsm.judge.claims.told import NodeTrace, is_answer, key_of
from fsm.judge.trace_line import TraceLine
from fsm.sync.subscriptions.subscriptions import entity_of
from specs.addresses.address import is_below, is_node
from specs.trace import Kind, Op

__all__ = [
    "fan_out_exact",
    "none_after_unsubscribe",
    "order_per_object",
    "relay_fidelity",
    "who_answers",
]

_CHILDREN: Final = "/children/"
_MACHINE: Final = "node_subscription"
_ACTIVE: Final = "active"


class _Subscribers:
    """Who is given what goes to an address, by the steps of subscriptions."""

    def __init__(self) -> None:
        self._rows: defaultdict[str, set[str]] = defaultdict(set)

    def take(self, record: TraceLine) -> bool:
        if not record.is_step or record.machine != _MACHINE:
            return False
        resource, _, runtime = (record.key or "").rpartition("|")
        row = self._rows[resource]
        (row.add if record.new == _ACTIVE else row.discard)(runtime)
        return True

    def of(self, resource: str) -> set[str]:
        return self._rows.get(resource, set())


def fan_out_exact(node: NodeTrace) -> Iterator[Finding]:
    """A message is handed to all who subscribe to its target, but who sent it (I-M5).

    Children go back to their author, too; the node of another domain may be one more.
    """
    subscribers = _Subscribers()
    sender: dict[str | None, str] = {}
    for record in node.records:
        if subscribers.take(record):
            continue
        if record.op == Op.ADMIT and record.by is not None:
            sender[record.mid] = record.by
        elif record.op == Op.PUBLISH:
            by, to = sender.get(record.mid, ""), record.to or ""
            is_echoed = _CHILDREN in to and not is_node(by)
            wanted = len(subscribers.of(to) - (set() if is_echoed else {by}))
            if record.targets not in {wanted, wanted + 1}:
                yield node.finding("I-M5", record, f"{wanted} to get it")


def none_after_unsubscribe(node: NodeTrace) -> Iterator[Finding]:
    """Who has unsubscribed gets nothing that came after that, but what is its own (I-M7)."""
    paths = _Paths()
    came: dict[str | None, int] = {}
    for record in node.records:
        if record.op == Op.ADMIT:
            came[record.mid] = record.ln
        elif record.op == Op.XMIT and not is_answer(record):
            if came.get(record.mid, 0) > paths.left_since(record):
                yield node.finding("I-M7", record, "nothing of what it unsubscribed")
        else:
            paths.take(record)


class _Paths:
    """Whose link is whose, who owns what, and who left what when."""

    def __init__(self) -> None:
        self._peers: dict[str | None, str | None] = {}
        self._owners: dict[str | None, str | None] = {}
        self._left: dict[tuple[str, str], int] = {}

    def take(self, record: TraceLine) -> None:
        if record.k == Kind.SESSION:
            self._peers[record.link] = record.b
        elif record.table == "alloc":
            self._owners[record.key] = record.val if record.op != Op.DEL else None
        elif record.is_step and record.machine == _MACHINE:
            resource, _, runtime = (record.key or "").rpartition("|")
            self._left.pop((resource, runtime), None)
            if record.new != _ACTIVE:
                self._left[resource, runtime] = record.ln

    def left_since(self, sent: TraceLine) -> float:
        """Return when the receiver left the target; never: it did not, or owns it."""
        peer, to = self._peers.get(sent.link), sent.to or ""
        if peer is None or is_below(to, peer) or self._owners.get(entity_of(to)) == peer:
            return math.inf
        return self._left.get((to, peer), math.inf)


def relay_fidelity(node: NodeTrace) -> Iterator[Finding]:
    """A back end's answer is of a question, and there is one (I-M11)."""
    asked: set[tuple[str, str, int]] = set()
    for record in node.messages:
        if record.op != Op.RELAY:
            continue
        key = key_of(record)
        if record.direction == "out":
            asked.add(key)
        elif key not in asked:
            yield node.finding("I-M11", record, "one question of a back end before its answer")
        else:
            asked.remove(key)


def who_answers(node: NodeTrace) -> Iterator[Finding]:
    """A part of a node answers from where it was asked (I-M13)."""
    asked: dict[str | None, str | None] = {}
    parts = {row.key for row in node.rows("components")}
    for record in node.messages if node.home is None else ():
        if record.op == Op.DELIVER and record.listener in parts:
            asked[record.mid] = record.listener
        elif record.op == Op.XMIT and is_answer(record):
            listener = asked.get(record.ref)
            if listener is not None and record.from_ != listener:
                yield node.finding("I-M13", record, f"an answer from {listener}")


def order_per_object(node: NodeTrace) -> Iterator[Finding]:
    """Changes of one object leave by each link in the order they came (I-M14)."""
    came: dict[str | None, int] = {}
    last: dict[tuple[str | None, str | None, str | None], int] = defaultdict(int)
    for record in node.messages if node.home is None else ():
        if record.op == Op.ADMIT:
            came[record.mid] = record.ln
        elif record.op == Op.XMIT and record.mid in came and (record.to or "").endswith("/changes"):
            at = (record.link, record.from_, record.to)
            if came[record.mid] < last[at]:
                yield node.finding("I-M14", record, "what came later to leave later")
            last[at] = max(last[at], came[record.mid])
