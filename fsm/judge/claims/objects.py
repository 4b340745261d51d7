"""Claims on data objects: writers, contents, children and observers (I-D1..I-D12).

The copy of an observer is an entity with key `object|observer`, and so is its subscription at the
reporter. Observers that the reporter admits without asking are rows of the table `guests`: the
object, the observer or `public`, and the owner of the row.
"""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import Final, TypeAlias

from fsm.judge.claims import fold, records
from fsm.judge.trace_line import TraceLine
from specs.message import MessageType
from specs.reply_code import Code
from specs.trace import ABSENT, Kind, Op

_ACCEPT: Final = "accept"
_CHANGES: Final = "/changes"
_SUBSCRIPTION: Final = "/subscription"
_PUBLIC: Final = "public"
_INVITED: Final = "invited"
_FIRST: Final = 1
"""First version of an object; if it is recorded, this process recorded all versions."""

_MACHINE: Final = "object_subscription"
_ACTIVE: Final = "active"
_COPY: Final = "observer_copy"
_SNAPSHOT: Final = "snapshot"

_Row: TypeAlias = tuple[str | None, str | None]
_WRITTEN: Final = fold.others(Kind.OBJ, Op.WRITE)
_WRITING: Final = frozenset({MessageType.CREATE, MessageType.UPDATE, MessageType.DELETE})
"""Types of requests to a sync manager that write an object, or delete an attribute of it."""


def _take_row(table: set[_Row], record: TraceLine) -> None:
    row = record.key, record.val
    (table.discard if record.op == Op.DEL else table.add)(row)


def _is_accepted(record: TraceLine) -> bool:
    is_ours = record.actor == records.MANAGER and record.cause == _ACCEPT
    return is_ours and record.new == _ACTIVE


class NoLostWindow(fold.ProcessClaim, claims=("I-D6",), place=fold.Place.RUNTIME):
    """An observer is subscribed to changes before it gets the object (I-D6).

    So no change is lost in between: the reporter's runtime adds the observer before it answers, and
    the observer's runtime has the listener before it sends the request.
    """

    _observers: set[_Row]
    _listeners: Counter[str | None]
    _rows: set[_Row]

    @fold.on(fold.rows("observers"))
    def take_observer(self, record: TraceLine) -> None:
        _take_row(self._observers, record)

    @fold.on(fold.rows(records.LISTENERS))
    def take_listener(self, record: TraceLine) -> None:
        row = record.key, record.val
        if (row in self._rows) == (record.op == Op.DEL):
            self._listeners[record.key] += -1 if record.op == Op.DEL else 1
            _take_row(self._rows, record)

    @fold.on(fold.steps(_MACHINE))
    def take_step(self, record: TraceLine) -> None:
        if _is_accepted(record):
            address, observer = records.split(record.key)
            if (address, observer) not in self._observers:
                self.report_break(record, "the observer to be added first")

    @fold.on(fold.any_msg(Op.SUBMIT))
    def take_submission(self, record: TraceLine) -> None:
        if record.type != MessageType.SUBSCRIBE or record.from_ != self.process.part(
            records.MANAGER
        ):
            return
        to = record.to or ""
        if to.endswith(_SUBSCRIPTION):
            changes = to.removesuffix(_SUBSCRIPTION) + _CHANGES
            if not self._listeners[changes]:
                self.report_break(record, f"a listener at {changes} first")


class Guests(fold.ProcessClaim, claims=("I-D9", "I-D11"), place=fold.Place.RUNTIME):
    """No hyperty observes without the reporter's consent (I-D9), or without invitation (I-D11).

    Decisions of a reporter from before this process began are unknown: an object whose first
    version is not recorded is not judged. No record says which observer a consent is about, so
    consents are counted.
    """

    _reporters: dict[str | None, str | None]
    _rows: set[_Row]
    _answers: records.Lasting[tuple[str | None, str | None], None]
    _asked: records.Lasting[str | None, str | None]
    _yes: Counter[str | None]

    @fold.on(_WRITTEN)
    def take_write(self, record: TraceLine) -> None:
        if record.version == _FIRST:
            self._reporters[record.key] = record.by

    @fold.on(fold.rows("guests"))
    def take_guest(self, record: TraceLine) -> None:
        _take_row(self._rows, record)
        if record.op != Op.DEL:
            reporter = self._reporters.get(record.key)
            if reporter is not None and record.writer != reporter:
                self._rows.discard((record.key, record.val))

    @fold.on(fold.any_msg())
    def take_message(self, record: TraceLine) -> None:
        if record.type == MessageType.FORWARD and record.op == Op.SUBMIT:
            self._asked[record.mid] = record.from_
        elif self._asked and record.code == Code.OK and record.ref in self._asked:
            answer = record.ref, record.mid
            if answer not in self._answers:
                self._answers[answer] = None
                self._yes[self._asked[record.ref]] += 1

    @fold.on(fold.any_msg(Op.SUBMIT))
    def take_submission(self, record: TraceLine) -> None:
        if record.type != MessageType.CREATE or not (record.from_ or "").endswith(_SUBSCRIPTION):
            return
        url = (record.from_ or "").removesuffix(_SUBSCRIPTION)
        if url in self._reporters and (url, record.to or "") not in self._rows:
            self.report_break(record, "its reporter to have asked for it", claim="I-D11")

    @fold.on(fold.steps(_MACHINE))
    def take_step(self, record: TraceLine) -> None:
        if _is_accepted(record):
            url, observer = records.split(record.key)
            if url in self._reporters and not self._may_observe(url, observer, record.why):
                self.report_break(record, "the reporter to have let it in", claim="I-D9")

    def _may_observe(self, url: str, observer: str, why: str | None) -> bool:
        """Return whether an observer may be accepted; each consent of the reporter counts once."""
        if why == _INVITED:
            return (url, observer) in self._rows
        if why == _PUBLIC:
            return (url, _PUBLIC) in self._rows
        self._yes[url] -= 1
        return self._yes[url] >= 0


@fold.run_claim("I-D2", "I-D4", key=fold.GroupKey.OBJECT)
def judge_values(items: Sequence[fold.Evidence], whole: fold.Whole) -> Iterator[fold.Finding]:
    """Check that observers have the reporter's versions (I-D2), with their values (I-D4).

    If an observer has two successive versions, the reporter wrote the versions between them.
    Versions before the first write in the reporter's traces are unknown.

    If two processes write one version differently, their order is unknown, since the names of their
    runs are times of different clocks: the write of the smaller node is taken as right.
    """
    values: dict[fold.Datum, fold.Datum] = {}
    written = [item for item in items if item.data[0] != Op.APPLY]
    applied = [item for item in items if item.data[0] == Op.APPLY]
    # The sort keeps the order of the records of one node, as they came.
    for item in sorted(written, key=lambda item: item.node) + applied:
        op, version, digest, _ = item.data
        if digest is None:
            continue
        if op != Op.APPLY:
            values.setdefault(version, digest)
        if values.get(version, digest) != digest:
            yield item.breaks("I-D4", f"{values[version]} at version {version}")
    if {item.data[-1] for item in written} <= whole - {None}:
        yield from _unwritten({_version(item) for item in written}, applied)


def _unwritten(
    written: AbstractSet[int], applied: Sequence[fold.Evidence]
) -> Iterator[fold.Finding]:
    first = min(written, default=math.inf)
    latest: dict[tuple[str, str, fold.Datum], int] = {}
    for item in applied:
        version, observer = _version(item), (item.run, item.node, item.data[-1])
        expected = latest.get(observer, version - 1) + 1
        latest[observer] = version
        for needed in (expected, version):
            if first <= needed <= version and needed not in written:
                yield item.breaks("I-D2", f"version {needed} to be written by the reporter")
                break


def _version(item: fold.Evidence) -> int:
    return int(item.data[1] or 0)


@fold.check("I-D2", "I-D4", on=fold.others(Kind.OBJ, Op.WRITE, Op.APPLY), across=(judge_values,))
def report_value(process: fold.Process, record: TraceLine) -> None:
    """Provide a version and value of an object as evidence about all copies (I-D2, I-D4).

    The time at which all copies are equal is not judged, as each process has its own clock.
    """
    writer = process.home if record.op == Op.WRITE else record.by
    data = record.op, record.version, record.digest, writer
    process.hand_over(judge_values, record.key, record, *data)


class NothingAfterDelete(fold.ProcessClaim, claims=("I-D8",)):
    """A deleted object does not change any more and gets no observers (I-D8).

    A busy bus may be late to process messages that were submitted before the object was deleted.
    """

    _gone: dict[str | None, float]

    @fold.on(fold.others(Kind.OBJ, Op.DEL))
    def take_deletion(self, record: TraceLine) -> None:
        self._gone.setdefault(record.key, record.t)

    @fold.on(_WRITTEN)
    def take_write(self, record: TraceLine) -> None:
        self._check_touch(record.key or "", record)

    @fold.on(fold.any_msg(Op.SUBMIT))
    def take_publication(self, record: TraceLine) -> None:
        is_update = bool(self._gone) and record.type == MessageType.UPDATE
        if is_update and record.to == f"{record.from_}/changes":
            self._check_touch(record.from_ or "", record, records.SLACK)

    @fold.on(fold.steps(_MACHINE))
    def take_observation(self, record: TraceLine) -> None:
        if record.actor == records.MANAGER and record.new == _ACTIVE:
            self._check_touch(records.split(record.key)[0], record)

    def _check_touch(self, address: str, record: TraceLine, slack: float = 0.0) -> None:
        if address in self._gone and record.t >= self._gone[address] + slack:
            self.report_break(record, "nothing: the object is deleted")


class ChildOwner(fold.ProcessClaim, claims=("I-D10",)):
    """A child belongs to its creator, which alone changes and numbers its children (I-D10).

    The object itself may delete it: the child leaves its window, or its reporter wants it.

    Records name a child `object|creator#number`. A message that a creator sends over a direct link
    is delivered only to the sync manager, which knows the observers; if a message came over a node
    before, its repetition over a link is not delivered.
    """

    _last: dict[tuple[str, str], int]
    _by_link: records.Recent[str | None, None]
    _otherwise: records.Recent[str | None, None]

    @fold.on(fold.at_bus(Op.ADMIT))
    def take_admission(self, record: TraceLine) -> None:
        if not records.of_creator(record):
            return
        if not records.is_p2p_end(record.by or ""):
            self._otherwise[record.mid] = None
        elif record.mid not in self._otherwise:
            self._by_link[record.mid] = None

    @fold.on(fold.at_bus(Op.DELIVER))
    def take_delivery(self, record: TraceLine) -> None:
        if record.mid in self._by_link and record.listener not in records.SYNC_MANAGERS:
            self.report_break(
                record, "the sync manager, which knows the observers, to get it alone"
            )

    @fold.on(fold.others(Kind.OBJ))
    def take_object(self, record: TraceLine) -> None:
        parts = records.split(record.key)
        if len(parts) != len(("object", "child")) or "#" not in parts[1]:
            return
        creator, _, number = parts[1].rpartition("#")
        if record.op == Op.DEL and record.by == parts[0]:
            return
        if record.by != creator:
            self.report_break(record, f"{creator}, whose it is")
        elif record.op == Op.ADD:
            previous = self._last.get((parts[0], creator), -1)
            if not number.isdecimal() or int(number) <= previous:
                self.report_break(record, f"a number above {previous}")
            self._last[parts[0], creator] = int(number) if number.isdecimal() else previous


class AskedWrites(fold.ProcessClaim, claims=("I-D1", "I-D2"), place=fold.Place.RUNTIME):
    """An object is written only while a request of its reporter to write is open (I-D1).

    A request is open from its delivery to the sync manager until the sync manager has answered it.
    Requests are recorded only in a trace with message records: then a write has a digest. Versions
    rise by one (I-D2), also for an object without observers.
    """

    _open: dict[str | None, str | None]
    _last: dict[str | None, int]

    @fold.on(fold.at_bus(Op.DELIVER))
    def take_request(self, record: TraceLine) -> None:
        is_writing = record.type in _WRITING
        if is_writing and record.to == self.process.part(records.MANAGER):
            self._open[record.mid] = record.from_

    @fold.on(fold.at_bus(Op.SUBMIT))
    def take_answer(self, record: TraceLine) -> None:
        if records.is_final(record):
            self._open.pop(record.ref, None)

    @fold.on(_WRITTEN)
    def take_write(self, record: TraceLine) -> None:
        if record.digest is not None and record.by not in self._open.values():
            expected = f"an open request of {record.by} to the sync manager"
            self.report_break(record, expected, claim="I-D1")
        version = record.version or 0
        if version != self._last.get(record.key, version - 1) + 1:
            self.report_break(record, f"version {self._last[record.key] + 1}", claim="I-D2")
        self._last[record.key] = version


class Applied(fold.ProcessClaim, claims=("I-D3", "I-D12", "I-D5", "I-D7")):
    """An observer applies every version (I-D3), once (I-D12), while it observes (I-D5, I-D7).

    A version is left out only by reading the object again. A copy that begins again may begin with
    the stored value of an earlier copy.
    """

    _last: dict[tuple[str | None, str | None], int]
    _states: dict[str | None, str | None]

    @fold.on(fold.steps(_COPY))
    def take_step(self, record: TraceLine) -> None:
        self._states[record.key] = record.new
        if record.cause == _SNAPSHOT or record.old == ABSENT:
            address, _, observer = (record.key or "").partition("|")
            self._last.pop((address, observer), None)

    @fold.on(fold.others(Kind.OBJ, Op.APPLY))
    def take_version(self, record: TraceLine) -> None:
        copy, version = (record.key, record.by), record.version or 0
        last = self._last.get(copy)
        self._last[copy] = version
        if last is not None and version > last + 1:
            self.report_break(record, f"version {last + 1}, or the object read anew", claim="I-D3")
        elif last is not None and version <= last:
            self.report_break(record, f"nothing up to version {last}", claim="I-D12")
        state = self._states.get(f"{record.key}|{record.by}")
        if state == "syncing":
            self.report_break(record, "the object to be read first", claim="I-D5")
        elif state == "deleted":
            self.report_break(record, "nothing: it does not observe any more", claim="I-D7")
