"""Judges of data objects: writers, contents, children and observers (I-D1..I-D12).

The copy of an observer is an entity `object|observer`, and so is its subscription at the
reporter. Observers that the reporter admits without a question are rows of `guests`: the
object, the observer or `public`, and the owner of the row.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Final, final

from fsm.judge.claims.finding import Finding
from fsm.judge.claims.told import LISTENERS, MANAGER, NodeTrace, Trace, is_p2p_end, split
from fsm.judge.trace_line import TraceLine
from specs.message import MessageType
from specs.reply_code import Code
from specs.trace import ABSENT, Kind, Op

__all__ = [
    "agreement",
    "authorised",
    "child_owner",
    "invited_by_reporter",
    "monotone",
    "no_lost_window",
    "nothing_after_delete",
    "once",
    "single_writer",
    "snapshot_first",
    "unsubscribed_stops",
    "versions",
]

_ACCEPT: Final = "accept"
_CHANGES: Final = "/changes"
_SUBSCRIPTION: Final = "/subscription"
_PUBLIC: Final = "public"
_INVITED: Final = "invited"
_FIRST: Final = 1
"""Version of an object whose whole story is in this process."""


def no_lost_window(node: NodeTrace) -> Iterator[Finding]:
    """Who observes hears changes before it has the object (I-D6).

    So nothing falls between: at the reporter's end the observer is added before it is
    answered, at its own the listener is there before it asks.
    """
    rows: defaultdict[str, set[tuple[str | None, str | None]]] = defaultdict(set)
    for record in node.records if node.home is not None else ():
        if record.k == Kind.TABLE:
            _take_row(rows[record.table or ""], record)
        elif _is_accepted(record):
            address, observer = split(record.key)
            if (address, observer) not in rows["observers"]:
                yield node.finding("I-D6", record, "the observer to be added first")
        elif _is_subscribing(record, node.home):
            changes = (record.to or "").removesuffix(_SUBSCRIPTION) + _CHANGES
            if changes not in {key for key, _ in rows[LISTENERS]}:
                yield node.finding("I-D6", record, f"a listener at {changes} first")


def _take_row(table: set[tuple[str | None, str | None]], record: TraceLine) -> None:
    row = record.key, record.val
    (table.discard if record.op == Op.DEL else table.add)(row)


def _is_accepted(record: TraceLine) -> bool:
    is_ours = record.is_step and record.machine == _MACHINE and record.actor == MANAGER
    return is_ours and record.cause == _ACCEPT and record.new == _ACTIVE


def _is_subscribing(record: TraceLine, home: str | None) -> bool:
    is_asked = record.type == MessageType.SUBSCRIBE and record.op == Op.SUBMIT
    return is_asked and record.from_ == f"{home}/sm" and (record.to or "").endswith(_SUBSCRIPTION)


@final
class _Guests:
    """What is known of the objects that are reported here from their first version on."""

    def __init__(self) -> None:
        self.reporters: dict[str | None, str | None] = {}
        self._rows: set[tuple[str | None, str | None]] = set()
        self._answers: set[tuple[str | None, str | None]] = set()
        self._asked: dict[str | None, str | None] = {}
        self._yes: Counter[str | None] = Counter()

    def take(self, record: TraceLine) -> None:
        if record.k == Kind.OBJ and record.op == Op.WRITE and record.version == _FIRST:
            self.reporters[record.key] = record.by
        elif record.table == "guests":
            _take_row(self._rows, record)
            if record.op != Op.DEL:
                self._said(record)
        elif record.type == MessageType.FORWARD and record.op == Op.SUBMIT:
            self._asked[record.mid] = record.from_
        elif record.code == Code.OK and record.ref in self._asked:
            answer = record.ref, record.mid
            if answer not in self._answers:
                self._answers.add(answer)
                self._yes[self._asked[record.ref]] += 1

    def _said(self, record: TraceLine) -> None:
        reporter = self.reporters.get(record.key)
        if reporter is not None and record.writer != reporter:
            self._rows.discard((record.key, record.val))

    def is_guest(self, url: str, observer: str) -> bool:
        """Whether the reporter has let it in by name."""
        return (url, observer) in self._rows

    def let_in(self, url: str, observer: str, why: str | None) -> bool:
        """Whether an observer that is accepted may be; a yes of the reporter counts once."""
        if why == _INVITED:
            return self.is_guest(url, observer)
        if why == _PUBLIC:
            return (url, _PUBLIC) in self._rows
        self._yes[url] -= 1
        return self._yes[url] >= 0


def authorised(node: NodeTrace) -> Iterator[Finding]:
    """Nobody observes but by the reporter's leave (I-D9).

    What a reporter has said before this process began is not known: of an object whose first
    version is not told nothing is said. Whom a yes is about is in no record: they are counted.
    """
    guests = _Guests()
    for record in node.records if node.home is not None else ():
        guests.take(record)
        if _is_accepted(record):
            url, observer = split(record.key)
            is_known = url in guests.reporters
            if is_known and not guests.let_in(url, observer, record.why):
                yield node.finding("I-D9", record, "the reporter to have let it in")


def invited_by_reporter(node: NodeTrace) -> Iterator[Finding]:
    """Whoever is invited to observe an object is invited by its reporter (I-D11)."""
    guests = _Guests()
    for record in node.records if node.home is not None else ():
        guests.take(record)
        url = (record.from_ or "").removesuffix(_SUBSCRIPTION)
        is_asked = record.type == MessageType.CREATE and record.op == Op.SUBMIT
        is_invited = is_asked and url != record.from_ and url in guests.reporters
        if is_invited and not guests.is_guest(url, record.to or ""):
            yield node.finding("I-D11", record, "its reporter to have asked for it")


_MACHINE: Final = "object_subscription"
_ACTIVE: Final = "active"


def agreement(trace: Trace) -> Iterator[Finding]:
    """At one version an observer holds what the reporter held (I-D4).

    Processes have clocks of their own, so when all was quiet is not judged.
    """
    written: dict[tuple[str | None, int | None], TraceLine] = {}
    for node in trace.nodes:
        for record in _told(node, Op.WRITE):
            same = written.setdefault((record.key, record.version), record)
            if same.digest != record.digest:
                yield node.finding("I-D4", record, f"{same.digest} at version {same.version}")
    for node in trace.nodes:
        for record in _told(node, Op.APPLY):
            there = written.get((record.key, record.version))
            if there is not None and there.digest != record.digest:
                yield node.finding("I-D4", record, f"{there.digest} at version {there.version}")


def _told(node: NodeTrace, op: Op) -> Iterator[TraceLine]:
    """Yield what is told of objects with their values, which is while hops are."""
    return (
        one for one in node.records if one.k == Kind.OBJ and one.op == op and one.digest is not None
    )


def nothing_after_delete(node: NodeTrace) -> Iterator[Finding]:
    """An object that is deleted changes no more, and nobody comes to observe it (I-D8)."""
    gone: set[str | None] = set()
    for record in node.records:
        if record.k == Kind.OBJ and record.op == Op.DEL:
            gone.add(record.key)
        elif _changed(record) in gone or _observed(record) in gone:
            yield node.finding("I-D8", record, "nothing: the object is deleted")


def _changed(record: TraceLine) -> str:
    """Return the object that is changed, or whose change is published; empty: none is."""
    if record.k == Kind.OBJ and record.op == Op.WRITE:
        return record.key or ""
    is_update = record.type == MessageType.UPDATE and record.op == Op.SUBMIT
    is_published = is_update and record.to == f"{record.from_}/changes"
    return (record.from_ or "") if is_published else ""


def _observed(record: TraceLine) -> str:
    is_ours = record.is_step and record.machine == _MACHINE and record.actor == MANAGER
    return split(record.key)[0] if is_ours and record.new == _ACTIVE else ""


def child_owner(node: NodeTrace) -> Iterator[Finding]:
    """A child is its creator's: he alone touches it, and numbers his own (I-D10).

    A child is `object|creator#number`, as its name is at the reporter's end.
    """
    last: dict[tuple[str, str], int] = {}
    for record in node.records:
        parts = split(record.key)
        is_child = record.k == Kind.OBJ and len(parts) == 2 and "#" in parts[1]  # noqa: PLR2004
        if not is_child:
            continue
        creator, _, number = parts[1].rpartition("#")
        if record.by != creator:
            yield node.finding("I-D10", record, f"{creator}, whose it is")
        elif record.op == Op.ADD:
            before = last.get((parts[0], creator), -1)
            if not number.isdecimal() or int(number) <= before:
                yield node.finding("I-D10", record, f"a number above {before}")
            last[parts[0], creator] = int(number) if number.isdecimal() else before


_HAND_OVERS: Final = frozenset({"object_delegation", "object_take_over"})
_TAKEN: Final = "taken"
_PASSED: Final = "pass"
_GIVEN: Final = frozenset({"given", "lost"})
_COPY: Final = "observer_copy"
_SNAPSHOT: Final = "snapshot"


def single_writer(node: NodeTrace) -> Iterator[Finding]:
    """An object has one reporter at a time (I-D1).

    Connection objects are looked at by themselves. Where an object was given away nobody
    writes it any more, until it is taken over again.
    """
    writers: dict[str | None, str | None] = {}
    for record in node.records:
        if record.is_step and record.machine in _HAND_OVERS:
            _moved(record, writers)
        elif record.k == Kind.OBJ and record.op == Op.WRITE:
            writer = writers.setdefault(record.key, record.by)
            if writer != record.by and not is_p2p_end(record.by or ""):
                yield node.finding("I-D1", record, f"{writer or 'nobody here'} to write it")


def _moved(record: TraceLine, writers: dict[str | None, str | None]) -> None:
    """Note who may write an object that has changed hands."""
    url, to, *_ = f"{record.key}|".split("|")
    if record.cause == _PASSED or record.new == _TAKEN:
        writers[url] = to
    elif record.new in _GIVEN:
        writers[url] = None


def versions(node: NodeTrace) -> Iterator[Finding]:
    """The versions of an object rise by one (I-D2), beginning anew where it was taken over."""
    last: dict[str | None, int] = {}
    for record in node.records:
        if record.is_step and record.new == _TAKEN and record.machine in _HAND_OVERS:
            last.pop((record.key or "").partition("|")[0], None)
        elif record.k == Kind.OBJ and record.op == Op.WRITE:
            version = record.version or 0
            if version != last.get(record.key, version - 1) + 1:
                yield node.finding("I-D2", record, f"version {last[record.key] + 1}")
            last[record.key] = version


def monotone(node: NodeTrace) -> Iterator[Finding]:
    """An observer leaves no version out, but by reading the object anew (I-D3)."""
    for record, last in _applied(node):
        if last is not None and (record.version or 0) > last + 1:
            yield node.finding("I-D3", record, f"version {last + 1}, or the object read anew")


def once(node: NodeTrace) -> Iterator[Finding]:
    """An observer applies each version once (I-D12)."""
    for record, last in _applied(node):
        if last is not None and (record.version or 0) <= last:
            yield node.finding("I-D12", record, f"nothing up to version {last}")


def _applied(node: NodeTrace) -> Iterator[tuple[TraceLine, int | None]]:
    """Yield each application, and the version before; None: the object was read since.

    A copy that begins anew may begin with what was stored of one before it.
    """
    last: dict[tuple[str | None, str | None], int] = {}
    for record in node.records:
        is_copy = record.is_step and record.machine == _COPY
        if is_copy and (record.cause == _SNAPSHOT or record.old == ABSENT):
            address, _, observer = (record.key or "").partition("|")
            last.pop((address, observer), None)
        elif record.k == Kind.OBJ and record.op == Op.APPLY:
            at = (record.key, record.by)
            yield record, last.get(at)
            last[at] = record.version or 0


def snapshot_first(node: NodeTrace) -> Iterator[Finding]:
    """Nothing is applied before the object was read (I-D5)."""
    for record, state in _applied_in(node):
        if state == "syncing":
            yield node.finding("I-D5", record, "the object to be read first")


def unsubscribed_stops(node: NodeTrace) -> Iterator[Finding]:
    """Who observes no longer applies nothing (I-D7)."""
    for record, state in _applied_in(node):
        if state == "deleted":
            yield node.finding("I-D7", record, "nothing: it does not observe any more")


def _applied_in(node: NodeTrace) -> Iterator[tuple[TraceLine, str | None]]:
    """Yield each application, and the state the copy was in."""
    states: dict[str | None, str | None] = {}
    for record in node.records:
        if record.is_step and record.machine == _COPY:
            states[record.key] = record.new
        elif record.k == Kind.OBJ and record.op == Op.APPLY:
            yield record, states.get(f"{record.key}|{record.by}")
