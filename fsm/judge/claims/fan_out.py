"""Folds of what a node hands on: to whom, in which order, in whose name (I-M5..I-M14)."""

import math
from collections import defaultdict
from typing import Final, final

from fsm.judge.claims.fold import Fold, Place, Process, any_msg, msg, on, others, rows, steps
from fsm.judge.claims.records import Key, is_answer, key_of
from fsm.judge.trace_line import TraceLine
from fsm.sync.subscriptions import entity_of
from specs.addresses.address import is_below, is_node
from specs.trace import Kind, Op

__all__ = ["FanOutExact", "NoneAfterUnsubscribe", "OrderPerObject", "RelayFidelity", "WhoAnswers"]

_CHILDREN: Final = "/children/"
_MACHINE: Final = "node_subscription"
_ACTIVE: Final = "active"


@final
class FanOutExact(Fold, claims=("I-M5",)):
    """A message is handed to all who subscribe to its target, but to its sender (I-M5).

    Children go back to their author, too; the node of another domain may be one more.
    """

    def __init__(self, process: Process) -> None:
        super().__init__(process)
        self._subscribers: defaultdict[str, set[str]] = defaultdict(set)
        self._sender: dict[str | None, str] = {}

    @on(steps(_MACHINE))
    def stepped(self, record: TraceLine) -> None:
        resource, _, runtime = (record.key or "").rpartition("|")
        row = self._subscribers[resource]
        (row.add if record.new == _ACTIVE else row.discard)(runtime)

    @on(any_msg(Op.ADMIT))
    def admitted(self, record: TraceLine) -> None:
        if record.by is not None:
            self._sender[record.mid] = record.by

    @on(any_msg(Op.PUBLISH))
    def published(self, record: TraceLine) -> None:
        by, to = self._sender.get(record.mid, ""), record.to or ""
        is_echoed = _CHILDREN in to and not is_node(by)
        subscribers = self._subscribers.get(to, set[str]())
        wanted = len(subscribers) - (by in subscribers and not is_echoed)
        if record.targets not in {wanted, wanted + 1}:
            self.broken(record, f"{wanted} to get it")


@final
class NoneAfterUnsubscribe(Fold, claims=("I-M7",)):
    """A session that has unsubscribed gets nothing that came after that, but its own (I-M7)."""

    def __init__(self, process: Process) -> None:
        super().__init__(process)
        self._came: dict[str | None, int] = {}
        self._peers: dict[str | None, str | None] = {}
        self._owners: dict[str | None, str | None] = {}
        self._left: dict[tuple[str, str], int] = {}

    @on(others(Kind.SESSION))
    def session(self, record: TraceLine) -> None:
        self._peers[record.link] = record.b

    @on(rows("alloc"))
    def allocated(self, record: TraceLine) -> None:
        self._owners[record.key] = record.val if record.op != Op.DEL else None

    @on(steps(_MACHINE))
    def stepped(self, record: TraceLine) -> None:
        resource, _, runtime = (record.key or "").rpartition("|")
        self._left.pop((resource, runtime), None)
        if record.new != _ACTIVE:
            self._left[resource, runtime] = record.ln

    @on(any_msg(Op.ADMIT))
    def admitted(self, record: TraceLine) -> None:
        self._came[record.mid] = record.ln

    @on(any_msg(Op.XMIT))
    def sent(self, record: TraceLine) -> None:
        if not self._left or is_answer(record):
            return
        if self._came.get(record.mid, 0) > self._left_since(record):
            self.broken(record, "nothing of what it unsubscribed")

    def _left_since(self, sent: TraceLine) -> float:
        """Return when the receiver left the target; never: it did not, or owns it."""
        peer, to = self._peers.get(sent.link), sent.to or ""
        if peer is None or is_below(to, peer) or self._owners.get(entity_of(to)) == peer:
            return math.inf
        return self._left.get((to, peer), math.inf)


@final
class RelayFidelity(Fold, claims=("I-M11",)):
    """A back end's answer is of a question, and there is one (I-M11)."""

    def __init__(self, process: Process) -> None:
        super().__init__(process)
        self._asked: set[Key] = set()

    @on(msg(Op.RELAY))
    def relayed(self, record: TraceLine) -> None:
        key = key_of(record)
        if record.direction == "out":
            self._asked.add(key)
        elif key not in self._asked:
            self.broken(record, "one question of a back end before its answer")
        else:
            self._asked.remove(key)


@final
class WhoAnswers(Fold, claims=("I-M13",), place=Place.NODE):
    """A part of a node answers from where it was asked (I-M13)."""

    def __init__(self, process: Process) -> None:
        super().__init__(process)
        self._parts: set[str | None] = set()
        self._asked: dict[str | None, str | None] = {}

    @on(rows("components"))
    def component(self, record: TraceLine) -> None:
        self._parts.add(record.key)

    @on(msg(Op.DELIVER))
    def delivered(self, record: TraceLine) -> None:
        if record.listener in self._parts:
            self._asked[record.mid] = record.listener

    @on(msg(Op.XMIT))
    def sent(self, record: TraceLine) -> None:
        if is_answer(record):
            listener = self._asked.get(record.ref)
            if listener is not None and record.from_ != listener:
                self.broken(record, f"an answer from {listener}")


@final
class OrderPerObject(Fold, claims=("I-M14",), place=Place.NODE):
    """Changes of one object leave by each link in the order they came (I-M14)."""

    def __init__(self, process: Process) -> None:
        super().__init__(process)
        self._came: dict[str | None, int] = {}
        self._last: defaultdict[tuple[str | None, str | None, str | None], int] = defaultdict(int)

    @on(msg(Op.ADMIT))
    def admitted(self, record: TraceLine) -> None:
        self._came[record.mid] = record.ln

    @on(msg(Op.XMIT))
    def sent(self, record: TraceLine) -> None:
        if record.mid not in self._came or not (record.to or "").endswith("/changes"):
            return
        at, came = (record.link, record.from_, record.to), self._came[record.mid]
        if came < self._last[at]:
            self.broken(record, "what came later to leave later")
        self._last[at] = max(self._last[at], came)
