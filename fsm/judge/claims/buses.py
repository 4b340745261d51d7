"""Judges of what a router gives to whom (I-B1..I-B7)."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, final

from fsm.judge.claims.finding import Finding
from fsm.judge.claims.told import BUS, Listeners, NodeTrace, Trace, is_answer, is_p2p_end, is_shared
from fsm.judge.trace_line import TraceLine
from specs.addresses.address import is_below
from specs.trace import Kind, Op

__all__ = [
    "callback_exclusive",
    "fifo",
    "full_fan_out",
    "no_wildcard",
    "order_of_listeners",
    "registered",
    "resolve_only_if_needed",
]

_CARRIED: Final[Mapping[str, int]] = {Op.XMIT: 1, Op.RCV: -1}
"""What a record adds to the copies of a message that are between two ends of a session."""

_ENDS: Final = frozenset({Op.SYNTH, Op.DROP})


def registered(node: NodeTrace) -> Iterator[Finding]:
    """Who gets a message listens at that time: to its target, or to the way there (I-B1)."""
    listeners = Listeners()
    for record in node.records:
        if listeners.take(record) or record.k != Kind.MSG or record.op != Op.DELIVER:
            continue
        router, one = record.actor, record.listener or ""
        if not listeners.knows(router):
            continue
        direct = listeners.of(router, record.to or "")
        known = one in direct or one in listeners.of_all(router)
        if not known and not listeners.has(router, one):
            yield node.finding("I-B1", record, f"{one} to be listening at {router}")


def full_fan_out(node: NodeTrace) -> Iterator[Finding]:
    """All who listen to the target when a message is admitted get it, but answers (I-B2)."""
    if node.home is None:
        return
    owed = _Owed()
    for record in node.records:
        if record.actor == BUS:
            owed.take(record)
    for admitted, left in owed.left.values():
        if node.end is not None:
            yield node.finding("I-B2", admitted, f"a delivery to {min(left)}, too")


@final
class _Owed:
    """To whom the Message BUS has still to give what it has admitted.

    Attributes:
        left: Each admitted message and who has not got it, by its instance.
    """

    def __init__(self) -> None:
        self.left: dict[str, tuple[TraceLine, set[str]]] = {}
        self._listeners = Listeners()

    def take(self, record: TraceLine) -> None:
        if self._listeners.take(record):
            if record.op == Op.DEL:
                self._gone(record)
        elif record.k == Kind.MSG and record.op == Op.ADMIT and not is_answer(record):
            wanted = set(self._listeners.of(BUS, record.to or ""))
            if wanted:
                self.left.setdefault(record.mid or "", (record, wanted))
        elif record.k == Kind.MSG:
            self._given(record)

    def _given(self, record: TraceLine) -> None:
        mid = record.mid or ""
        if record.op in _ENDS:
            self.left.pop(record.ref or mid, None)
        elif record.op == Op.DELIVER and mid in self.left:
            self._remove(mid, record.listener or "")

    def _gone(self, row: TraceLine) -> None:
        for mid in [mid for mid, (told, _) in self.left.items() if told.to == row.key]:
            self._remove(mid, row.val or "")

    def _remove(self, mid: str, listener: str) -> None:
        left = self.left[mid][1]
        left.discard(listener)
        if not left:
            del self.left[mid]


def order_of_listeners(node: NodeTrace) -> Iterator[Finding]:
    """Those who listen to one target get a message in the order they came (I-B3)."""
    listeners = Listeners()
    last: dict[str, tuple[str, int]] = {}
    for record in node.records:
        if listeners.take(record) or record.k != Kind.MSG or record.op != Op.DELIVER:
            continue
        known = listeners.of(record.actor, record.to or "")
        if len(known) < len(("one", "another")) or record.listener not in known:
            continue
        if not listeners.is_in_order(record.actor, record.to or ""):
            continue
        mid, before = record.mid or "", last.get(record.actor, ("", -1))
        after = before[1] if before[0] == mid else -1
        place = _place(known, record.listener or "", after)
        if place < after:
            yield node.finding("I-B3", record, f"{record.listener} to get it earlier")
        last[record.actor] = (mid, place)


def _place(known: Sequence[str], listener: str, after: int) -> int:
    """Return where a listener stands: the next time, if it is there more than once."""
    places = [place for place, one in enumerate(known) if one == listener]
    return next((place for place in places if place > after), places[0])


def callback_exclusive(node: NodeTrace) -> Iterator[Finding]:
    """An answer given to who waits for it goes to no listener as well (I-B4)."""
    ways: dict[str, str] = {}
    for record in node.at_bus:
        if record.op in {Op.CALLBACK, Op.DELIVER} and is_answer(record):
            way = ways.setdefault(record.mid or "", record.op or "")
            if way != record.op:
                yield node.finding("I-B4", record, "either who waits for it or a listener")


def no_wildcard(node: NodeTrace) -> Iterator[Finding]:
    """At a Message BUS nobody gets messages by listening to everything (I-B5)."""
    listeners = Listeners()
    for record in node.records:
        if listeners.take(record) or record.k != Kind.MSG or record.op != Op.DELIVER:
            continue
        one = record.listener or ""
        is_all = record.actor == BUS and one in listeners.of_all(BUS)
        if is_all and not listeners.has(BUS, one):
            yield node.finding("I-B5", record, "a listener of this very target")


def resolve_only_if_needed(node: NodeTrace) -> Iterator[Finding]:
    """No way is looked for to what is here (I-B6)."""
    listeners = Listeners()
    listened: dict[str, bool] = {}
    for record in node.records:
        if listeners.take(record) or node.home is None:
            continue
        to = record.to or ""
        if record.k == Kind.MSG and record.op == Op.ADMIT and record.actor == BUS:
            listened[to] = bool(listeners.of(BUS, to)) and not is_shared(to)
        elif record.k == Kind.RESOLVE and record.op == Op.BEGIN:
            if is_below(to, node.home):
                yield node.finding("I-B6", record, "no way to be looked for: it is this runtime's")
            elif listened.get(to, False) and listeners.of(BUS, to):
                yield node.finding("I-B6", record, "no way to be looked for: somebody listens here")


def fifo(trace: Trace) -> Iterator[Finding]:
    """What one component sends to one target reaches a listener in that order (I-B7).

    Whatever paths the messages took: those of another runtime are in the order in which
    its bus admitted them. A message that was admitted again may come as early as its first
    copy, and as late as its last. An answer of which the way by the node lost a copy may come
    at any time: unlike a late request it is not refused.
    """
    for node in trace.nodes:
        yield from _fifo_here(node)
    admitted = _Admitted(trace)
    for node in trace.nodes:
        yield from admitted.overtaken_at(node)


def _fifo_here(node: NodeTrace) -> Iterator[Finding]:
    places: dict[str, int] = {}
    reached: dict[tuple[str, str, str], int] = {}
    given: set[tuple[str, str]] = set()
    for record in node.at_bus:
        mid, one = record.mid or "", record.listener or ""
        if record.op == Op.ADMIT and not is_answer(record):
            places.setdefault(mid, record.ln)
        elif record.op == Op.DELIVER and mid in places and (mid, one) not in given:
            given.add((mid, one))
            path = (record.from_ or "", record.to or "", one)
            if places[mid] < reached.get(path, 0):
                yield node.finding("I-B7", record, "what was sent later to come later")
            reached[path] = max(places[mid], reached.get(path, 0))


@final
class _Admitted:
    """Which process admitted each message of its own, and where in its records."""

    def __init__(self, trace: Trace) -> None:
        self._places: dict[str, tuple[str, str, list[int]]] = {}
        self._under_way: Counter[str] = Counter()
        for node in trace.nodes:
            for record in node.messages:
                if is_answer(record) and not is_p2p_end(record.stub or ""):
                    self._under_way[record.mid or ""] += _CARRIED.get(record.op or "", 0)
            for record in node.at_bus:
                if record.op == Op.ADMIT and node.is_local(record):
                    mid = record.mid or ""
                    run, name, places = self._places.get(mid, ("", "", []))
                    if (run, name) != (node.run, node.node):
                        places = []
                    places.append(record.ln)
                    self._places[mid] = (node.run, node.node, places)

    def overtaken_at(self, node: NodeTrace) -> Iterator[Finding]:
        """Find what was given to a listener after what its sender sent later."""
        reached: dict[tuple[str, ...], int] = {}
        given: set[tuple[str, str]] = set()
        for record in node.at_bus:
            mid, one = record.mid or "", record.listener or ""
            run, home, places = self._places.get(mid, ("", node.node, []))
            is_given = record.op in {Op.DELIVER, Op.CALLBACK} and (mid, one) not in given
            if not is_given or home == node.node:
                continue
            given.add((mid, one))
            if self._under_way[mid] > 0:
                continue
            path = (run, home, record.from_ or "", record.to or "", one)
            last = reached.get(path, 0)
            # Which copy has come is not told: one that was sent again may be late.
            if places[-1] < last:
                yield node.finding("I-B7", record, "what was sent later to come later")
            reached[path] = max(places[0], last)
