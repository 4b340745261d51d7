"""Claims on the deliveries of a router, such as the Message BUS of a runtime (I-B1..I-B7)."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Final

from typing_extensions import override

from fsm.judge.claims import fold, records
from fsm.judge.trace_line import TraceLine
from specs.addresses.address import is_below
from specs.reply_code import Code
from specs.trace import Kind, Op

_CARRIED: Final[Mapping[str | None, int]] = {Op.XMIT: 1, Op.RCV: -1}
"""Change of the number of copies of a message that are under way between processes."""

_REFUSED: Final = "refused"

_GIVEN: Final = frozenset({Op.CALLBACK, Op.DELIVER})
"""Operations by which a message reaches a component.

Evidence of these names the listener, all other evidence the runtime that recorded it.
"""


@fold.check("I-B1", on=fold.any_msg(Op.DELIVER))
def check_receiver_listens(process: fold.Process, record: TraceLine) -> None:
    """Check that the receiver listens to the target, or to its route, at delivery (I-B1)."""
    listeners, router, listener = process.listeners, record.actor, record.listener or ""
    if not listeners.knows(router) or listener in listeners.of(router, record.to or ""):
        return
    if listener not in listeners.of_all(router) and not listeners.has(router, listener):
        process.report_break("I-B1", record, f"{listener} to be listening at {router}")


class FullFanOut(fold.ProcessClaim, claims=("I-B2",), place=fold.Place.RUNTIME):
    """All listeners that a message's target has at its admission get the message (I-B2).

    Messages of creators about children that come over links are for some listeners only
    (`heard_by`). A listener that is removed needs no further message, unless it got a message that
    was admitted later. A message that is admitted again is for the listeners that have not got it.
    """

    _left: dict[str, tuple[TraceLine, set[str]]]
    _targets: defaultdict[str, dict[str, None]]
    _overtaken: set[tuple[str, str]]
    _known: records.Recent[str, None]

    @fold.on(fold.rows(records.LISTENERS))
    def take_removal(self, row: TraceLine) -> None:
        if row.op != Op.DEL or row.actor != records.BUS:
            return
        listener = row.val or ""
        for mid in list(self._targets.get(row.key or "", ())):
            if (mid, listener) in self._overtaken and listener in self._left[mid][1]:
                self._lacks(self._left[mid][0], listener)
            self._remove(mid, listener)

    @fold.on(fold.any_msg(Op.ADMIT))
    def take_admission(self, record: TraceLine) -> None:
        if record.actor == records.BUS and not records.is_answer(record):
            wanted = records.heard_by(
                record, self.process.listeners.of(records.BUS, record.to or "")
            )
            mid = record.mid or ""
            if wanted and self._known.add(mid, None):
                self._left[mid] = record, wanted
                self._targets[record.to or ""][mid] = None

    @fold.on(fold.any_msg(Op.DELIVER))
    def take_delivery(self, record: TraceLine) -> None:
        listener = record.listener or ""
        if record.actor != records.BUS or record.mid not in self._left:
            return
        for earlier in takewhile(record.mid.__ne__, self._targets[record.to or ""]):
            if listener in self._left[earlier][1]:
                self._overtaken.add((earlier, listener))
        self._remove(record.mid, listener)

    @fold.on(fold.any_msg(Op.SYNTH, Op.DROP))
    def take_end(self, record: TraceLine) -> None:
        mid = record.ref or record.mid or ""
        if record.actor == records.BUS and mid in self._left:
            self._forget(mid)

    def _remove(self, mid: str, listener: str) -> None:
        left = self._left[mid][1]
        left.discard(listener)
        self._overtaken.discard((mid, listener))
        if not left:
            self._forget(mid)

    def _forget(self, mid: str) -> None:
        admitted, lacking = self._left.pop(mid)
        self._overtaken.difference_update((mid, listener) for listener in lacking)
        row = self._targets[admitted.to or ""]
        del row[mid]
        if not row:
            del self._targets[admitted.to or ""]

    @override
    def end(self) -> None:
        for admitted, lacking in self._left.values() if self.process.end is not None else ():
            self._lacks(admitted, min(lacking))

    def _lacks(self, admitted: TraceLine, listener: str) -> None:
        self.report_break(admitted, f"a delivery to {listener}, too")


class OrderOfListeners(fold.ProcessClaim, claims=("I-B3",)):
    """Listeners of one target get a message in the order of their registration (I-B3)."""

    _last: dict[str, tuple[str, int]]

    @fold.on(fold.any_msg(Op.DELIVER))
    def take_delivery(self, record: TraceLine) -> None:
        listeners = self.process.listeners
        known = listeners.of(record.actor, record.to or "")
        if len(known) < len(("first", "second")) or record.listener not in known:
            return
        if not listeners.is_in_order(record.actor, record.to or ""):
            return
        mid, previous = record.mid or "", self._last.get(record.actor, ("", -1))
        after = previous[1] if previous[0] == mid else -1
        place = _place(known, record.listener or "", after)
        if place < after:
            self.report_break(record, f"{record.listener} to get it earlier")
        self._last[record.actor] = (mid, place)


def _place(known: Sequence[str], listener: str, previous: int) -> int:
    """Return the index of a listener after another index, if it is listed more than once."""
    indices = [index for index, name in enumerate(known) if name == listener]
    return next((index for index in indices if index > previous), indices[0])


class CallbackExclusive(fold.ProcessClaim, claims=("I-B4",), place=fold.Place.RUNTIME):
    """An answer that goes to the waiting component is not delivered to a listener, too (I-B4)."""

    _operations: records.Recent[str, str]

    @fold.on(fold.at_bus(Op.CALLBACK, Op.DELIVER))
    def take_delivery(self, record: TraceLine) -> None:
        if records.is_answer(record):
            operation = self._operations.setdefault(record.mid or "", record.op or "")
            if operation != record.op:
                self.report_break(record, "either its requester or a listener")


@fold.check("I-B5", on=fold.any_msg(Op.DELIVER))
def check_no_wildcard(process: fold.Process, record: TraceLine) -> None:
    """Check that no component gets a message only by listening to all addresses (I-B5)."""
    if record.actor != records.BUS:
        return
    listeners, listener = process.listeners, record.listener or ""
    if listener in listeners.of_all(records.BUS) and not listeners.has(records.BUS, listener):
        process.report_break("I-B5", record, "a listener of this very target")


class ResolveOnlyIfNeeded(fold.ProcessClaim, claims=("I-B6",), place=fold.Place.RUNTIME):
    """No route is searched for if a target is in the runtime itself (I-B6)."""

    _listened: records.Recent[str, bool]

    @fold.on(fold.any_msg(Op.ADMIT))
    def take_admission(self, record: TraceLine) -> None:
        if record.actor == records.BUS:
            to = record.to or ""
            self._listened[to] = bool(
                self.process.listeners.of(records.BUS, to)
            ) and not records.is_shared(to)

    @fold.on(fold.others(Kind.RESOLVE, Op.BEGIN))
    def take_begin(self, record: TraceLine) -> None:
        to = record.to or ""
        if is_below(to, self.process.home or ""):
            self.report_break(record, "a route is searched without need: it is this runtime's")
        elif self._listened.get(to, False) and self.process.listeners.of(records.BUS, to):
            self.report_break(record, "a route is searched without need: a local component listens")


@fold.run_claim("I-B7", key=fold.GroupKey.PAIR)
def judge_overtaking(items: Sequence[fold.Evidence], whole: fold.Whole) -> Iterator[fold.Finding]:
    """Check that a component's messages to one target reach a listener in order (I-B7).

    Messages from another runtime must arrive in the order in which its bus admitted them, by
    whatever route. A message that was admitted again may arrive at any time between its first and
    its last copy. A message that several runs or processes admitted as their own is not judged: no
    record says which was delivered. An answer may come at any time if a copy was lost on its route
    over the node: unlike a late request, it is not refused. So may a durable message that was
    refused to its sender since nobody knew whether a log contains it.

    A process whose trace is incomplete may have admitted or sent further copies of a message:
    messages that such a process has sent on are not judged.
    """
    places: defaultdict[str, dict[tuple[str, str], list[int]]] = defaultdict(dict)
    under_way = Counter[str]()
    ambiguous = set[str]()
    deliveries: list[tuple[fold.Evidence, str, fold.Datum]] = []
    for item in items:
        op, instance, process, *admitted = item.data
        mid = str(instance)
        if op == _REFUSED or (op not in _GIVEN and (process or None) not in whole):
            ambiguous.add(mid)
        if op in _CARRIED:
            under_way[mid] += _CARRIED[str(op)]
        elif op == Op.ADMIT:
            of_process = places[mid].setdefault((item.run, item.node), [])
            of_process += [int(ln) for ln in admitted if ln is not None]
        elif op != _REFUSED:
            deliveries.append((item, mid, process))
    reached: dict[tuple[fold.Datum, ...], int] = {}
    seen = set[tuple[fold.Datum, ...]]()
    for item, mid, listener in deliveries:
        homes, copy = places[mid], (item.run, item.node, mid, listener)
        if len(homes) != 1 or copy in seen:
            continue
        ((home, admissions),) = homes.items()
        seen.add(copy)
        if home[1] == item.node or under_way[mid] > 0 or mid in ambiguous:
            continue
        path = (item.run, item.node, *home, listener)
        latest = reached.get(path, 0)
        # No record says which copy arrived: a copy that was sent again may be late.
        if admissions[-1] < latest:
            yield item.breaks("I-B7", "what was sent later to come later")
        reached[path] = max(admissions[0], latest)


class Fifo(fold.ProcessClaim, claims=("I-B7",), across=(judge_overtaking,)):
    """A component's messages to one target reach a listener in order, within a process (I-B7).

    Judges the order within one process; `judge_overtaking` judges messages between processes. A
    message that is sent and received in one process is no evidence for the latter. Durable
    messages, which a log may keep for a day, have an order of their own.
    """

    _places: records.Recent[str, int]
    _own: records.Recent[str | None, list[int]]
    _alone: dict[str | None, TraceLine]
    _sent: records.Recent[str, None]
    _kept: records.Lasting[str | None, str]
    _reached: dict[tuple[str, str, str, str], int]
    _given: records.Recent[tuple[str, str], None]

    @fold.on(fold.msg(Op.XMIT, Op.RCV))
    def take_crossing(self, record: TraceLine) -> None:
        if records.is_answer(record) and not records.is_p2p_end(record.stub or ""):
            self._cross(record)

    @fold.on(fold.msg(Op.XMIT))
    def take_sending(self, record: TraceLine) -> None:
        mid = record.mid or ""
        self._sent[mid] = None
        self._alone.pop(mid, None)
        admitted = self._own.get(mid)
        if admitted:
            self._cross(record, Op.ADMIT, *admitted)
            admitted.clear()

    @fold.on(fold.at_bus(Op.ADMIT))
    def take_admission(self, record: TraceLine) -> None:
        if self.process.home is None:
            return
        mid = record.mid or ""
        if not records.is_answer(record):
            self._places.setdefault(mid, record.ln)
        if not self.process.is_local(record):
            return
        if record.kind is not None:
            self._kept[mid] = _pair(record)
        if mid in self._sent:
            self._own.setdefault(mid, [])
            self._cross(record, Op.ADMIT, record.ln)
        else:
            self._own.setdefault(mid, []).append(record.ln)
            self._alone.setdefault(mid, record)

    @fold.on(fold.at_bus(Op.CALLBACK))
    def take_callback(self, record: TraceLine) -> None:
        if self.process.home is None:
            return
        self._given_here(record)
        if record.ref in self._kept and record.code not in {Code.OK, Code.ACCEPTED}:
            pair = self._kept[record.ref]
            self.process.hand_over(
                judge_overtaking, pair, record, _REFUSED, record.ref, self.process.home
            )

    @fold.on(fold.at_bus(Op.DELIVER))
    def take_delivery(self, record: TraceLine) -> None:
        if self.process.home is None:
            return
        mid, listener = record.mid or "", record.listener or ""
        self._given_here(record)
        if mid not in self._places or (mid, listener) in self._given:
            return
        self._given[mid, listener] = None
        path = (record.from_ or "", record.to or "", listener, record.kind or "")
        place, reached = self._places[mid], self._reached.get(path, 0)
        if place < reached:
            self.report_break(record, "what was sent later to come later")
        self._reached[path] = max(place, reached)

    def _given_here(self, record: TraceLine) -> None:
        if record.mid not in self._own:
            self._cross(record)
        elif record.op == Op.CALLBACK or self._is_target(record):
            self._alone.pop(record.mid, None)

    def _is_target(self, record: TraceLine) -> bool:
        """Return whether a message is delivered to a listener of its target address itself."""
        return record.listener in self.process.listeners.of(records.BUS, record.to or "")

    @override
    def end(self) -> None:
        # A stub that records nothing may have sent these messages: only the receiver shows that.
        for mid, record in self._alone.items():
            self._cross(record, Op.ADMIT, *self._own.get(mid, ()))

    def _cross(self, record: TraceLine, op: Op | None = None, *admitted: int) -> None:
        process = record.listener if record.op in _GIVEN else self.process.home
        data = op or record.op, record.mid or "", process or "", *admitted
        self.process.hand_over(judge_overtaking, _pair(record), record, *data)


def _pair(record: TraceLine) -> str:
    return f"{record.from_} {record.to} {record.kind or ''}".rstrip()
