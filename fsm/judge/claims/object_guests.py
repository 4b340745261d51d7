"""Judges of who observes a data object, and by whose leave (I-D6, I-D9, I-D11).

A subscription is an entity `object|observer` at the reporter's end. Whom the reporter lets
in unasked stands in rows `guests`: the object, the observer or `public`, and who said so.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Final, final

from fsm.judge.claims.finding import Finding
from fsm.judge.claims.told import LISTENERS, MANAGER, NodeTrace, split
from fsm.judge.trace_line import TraceLine
from specs.message import MessageType
from specs.reply_code import Code
from specs.trace import Kind, Op

__all__ = ["authorised", "invited_by_reporter", "no_lost_window"]

_MACHINE: Final = "object_subscription"
_ACTIVE: Final = "active"
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
