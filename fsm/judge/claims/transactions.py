"""Claims on transactions: requests of a runtime's own components, and their answers (I-T1..I-T10).

A request is identified by sender, receiver and id. The same request may be made again after it has
ended; then the transition of its state machine leaves `[*]`.
"""

from collections import Counter, defaultdict
from functools import lru_cache
from itertools import chain
from typing import Final

from typing_extensions import override

from fsm.judge.claims import fold, records
from fsm.judge.trace_line import TraceLine
from specs.addresses.address import canonical
from specs.errors import BadUrlError
from specs.limits.bus import MAX_ATTEMPTS
from specs.limits.protocol import REPLY_TIMEOUT
from specs.message import MessageType
from specs.reply_code import FIRST_CODE, LAST_CODE, Code, DropReason
from specs.trace import ABSENT, Op

_VERBS: Final = frozenset(MessageType)
_BEGINS: Final = fold.steps("transaction")


class Match(fold.ProcessClaim, claims=("I-T1",), place=fold.Place.RUNTIME):
    """An answer that is delivered belongs to a request that was submitted before (I-T1)."""

    _asked: records.Lasting[records.Key, None]

    @fold.on(fold.at_bus(Op.SUBMIT))
    def take_submission(self, record: TraceLine) -> None:
        if not records.is_answer(record):
            self._asked[records.key_of(record)] = None

    @fold.on(fold.at_bus(Op.CALLBACK, Op.DELIVER))
    def take_delivery(self, record: TraceLine) -> None:
        if records.is_answer(record) and records.key_of(record) not in self._asked:
            self.report_break(record, "an earlier request with this id and these ends")


class Unanswered(fold.ProcessClaim, claims=("I-T3",), place=fold.Place.RUNTIME):
    """A request made in this runtime gets a final answer within the time limit (I-T3).

    Each attempt has its own time limit, and at most `MAX_ATTEMPTS` are made. A request that its
    requester gives up gets none.

    Attributes:
        refused: Requests that the process refused when it ended: the requester is gone by then.
    """

    refused: set[records.Key]
    _waiting: dict[records.Key, tuple[TraceLine, float]]
    _repeats: Counter[records.Key]

    @fold.on(fold.at_bus(Op.SUBMIT))
    def take_submission(self, record: TraceLine) -> None:
        if records.expects_answer(record) and self.process.is_local(record):
            self._waiting.setdefault(records.key_of(record), (record, record.t))

    @fold.on(fold.at_bus(Op.CALLBACK, Op.DELIVER, Op.SYNTH, Op.DROP))
    def take_answer(self, record: TraceLine) -> None:
        if not records.is_answer(record):
            if record.op == Op.DROP:
                self._waiting.pop(records.key_of(record), None)
            return
        # The requester may have left when the answer comes.
        if record.op == Op.DROP and record.reason != DropReason.NO_TARGET:
            return
        key = records.key_of(record)
        if key not in self._waiting:
            return
        if records.is_final(record):
            del self._waiting[key]
            self._repeats.pop(key, None)
        else:
            self._waiting[key] = (self._waiting[key][0], record.t)

    @fold.on(fold.steps("transaction"))
    def take_step(self, record: TraceLine) -> None:
        key = _key_of_step(record)
        if record.cause == "refused":
            self.refused.add(key)
        elif record.cause == "given-up":
            # Its requester no longer waits.
            self._waiting.pop(key, None)
            self._repeats.pop(key, None)
        elif record.cause == "repeated" and key in self._waiting:
            self._repeats[key] += 1
            if self._repeats[key] < MAX_ATTEMPTS:
                self._waiting[key] = (self._waiting[key][0], record.t)

    @override
    def end(self) -> None:
        for request, since in self._waiting.values():
            if self.process.is_over_since(since + REPLY_TIMEOUT + records.SLACK):
                self.report_break(request, f"a final answer within {REPLY_TIMEOUT:g} s")

    def answers_missing(self) -> list[TraceLine]:
        """Return requests without a recorded final answer, though the process ended normally."""
        if self.process.end is None:
            return []
        requests = (request for request, _ in self._waiting.values())
        return [request for request in requests if records.key_of(request) not in self.refused]


class GivenAnswers(
    fold.ProcessClaim, claims=("I-T2", "I-T4"), place=fold.Place.RUNTIME, is_forgetful=True
):
    """A request gets only one final answer, or one from each receiver (I-T2).

    No provisional answer follows a final one (I-T4).
    """

    _given: records.Recent[records.Key, set[str]]

    @fold.on(_BEGINS)
    def take_begin(self, record: TraceLine) -> None:
        if _begins(record):
            self._given.pop(_key_of_step(record), None)

    @fold.on(fold.at_bus(Op.CALLBACK))
    def take_callback(self, record: TraceLine) -> None:
        key, mid = records.key_of(record), record.mid or ""
        if not records.is_final(record):
            if key in self._given:
                expected = "no provisional answer after the final one"
                self.report_break(record, expected, claim="I-T4")
            return
        mids = self._given.setdefault(key, set())
        if mids:
            name_receivers = all("@" in each.rpartition("!")[2] for each in (*mids, mid))
            if mid in mids or not name_receivers:
                self.report_break(record, "no second final answer", claim="I-T2")
        mids.add(mid)


class Timeouts(fold.ProcessClaim, claims=("I-T5", "I-T6"), place=fold.Place.RUNTIME):
    """The router answers 408 only after a whole waiting time without any answer (I-T6).

    An answer after the 408 is not delivered (I-T5).
    """

    _over: records.Recent[records.Key, str | None]
    _signs: records.Lasting[records.Key, float]

    @fold.on(_BEGINS)
    def take_begin(self, record: TraceLine) -> None:
        if _begins(record):
            self._over.pop(_key_of_step(record), None)
            self._signs[_key_of_step(record)] = record.t

    @fold.on(fold.at_bus(Op.CALLBACK, Op.DELIVER))
    def take_delivery(self, record: TraceLine) -> None:
        if not records.is_answer(record):
            return
        key = records.key_of(record)
        if self._over.get(key, record.mid) != record.mid:
            expected = "this answer to be dropped: it came after the 408"
            self.report_break(record, expected, claim="I-T5")
        if records.is_final(record):
            if record.op == Op.CALLBACK:
                self._signs.pop(key, None)
        elif key in self._signs:
            # A provisional answer announces another one.
            self._signs[key] = record.t

    @fold.on(fold.at_bus(Op.SYNTH))
    def take_refusal(self, record: TraceLine) -> None:
        if record.code != Code.TIMEOUT:
            return
        key = records.key_of(record)
        self._over[key] = record.mid
        since = self._signs.get(key)
        if since is None or not records.has_waited(record.t - since, REPLY_TIMEOUT):
            expected = f"{REPLY_TIMEOUT:g} s of silence on an open request before the 408"
            self.report_break(record, expected, claim="I-T6")


class IdMonotone(fold.ProcessClaim, claims=("I-T7",), place=fold.Place.RUNTIME):
    """The ids of the messages of one component rise; an equal id repeats the message (I-T7)."""

    _last: dict[str, int]
    _seen: records.Lasting[str, None]

    @fold.on(fold.at_bus(Op.SUBMIT))
    def take_submission(self, record: TraceLine) -> None:
        if records.is_answer(record) or not self.process.is_local(record):
            return
        sender, number, mid = record.from_ or "", record.id or 0, record.mid or ""
        last = self._last.get(sender, 0)
        if number <= last and mid not in self._seen:
            self.report_break(record, f"an id above {last}")
        self._seen[mid] = None
        self._last[sender] = max(number, last)


class RetryIdentity(fold.ProcessClaim, claims=("I-T8",)):
    """A request that a component sends again has the same content (I-T8)."""

    _known: records.Recent[records.Key, str]

    @fold.on(fold.msg(Op.SUBMIT))
    def take_submission(self, record: TraceLine) -> None:
        if record.digest is None or records.is_answer(record):
            return
        same = self._known.setdefault(records.key_of(record), record.digest) == record.digest
        if not same and self.process.is_local(record):
            self.report_break(record, "the same content under the same id")


class Conservation(fold.ProcessClaim, claims=("I-T9",)):
    """An admitted message is delivered, sent, answered, or dropped with a reason (I-T9).

    A queued message is released, answered or dropped, and none is released twice.
    """

    _admitted: dict[str, TraceLine]
    # A message that came twice may wait twice: only the receiver recognises the duplicate.
    # A queue does not see the answer to its request, so it may still release the request.
    _queued: defaultdict[tuple[str | None, str], list[TraceLine]]
    _settled: records.Lasting[str | None, None]

    @fold.on(fold.msg(Op.ADMIT))
    def take_admission(self, record: TraceLine) -> None:
        self._admitted.setdefault(record.mid or "", record)

    @fold.on(
        fold.msg(
            Op.DELIVER, Op.CALLBACK, Op.XMIT, Op.RELAY, Op.QUEUE, Op.SYNTH, Op.DROP, Op.PUBLISH
        )
    )
    def take_passage(self, record: TraceLine) -> None:
        admitted = self._admitted
        if admitted:
            admitted.pop(record.mid or "", None)
            admitted.pop(record.ref or "", None)

    @fold.on(fold.msg(Op.QUEUE))
    def take_queueing(self, record: TraceLine) -> None:
        self._queued[record.mid, record.actor].append(record)

    @fold.on(fold.msg(Op.FLUSH, Op.SYNTH, Op.DROP))
    def take_departure(self, record: TraceLine) -> None:
        queue = record.mid, record.actor
        entries = self._queued.get(queue)
        if entries and record.op != Op.SYNTH:
            entries.pop(0)
            if not entries:
                del self._queued[queue]
        elif record.op == Op.FLUSH:
            self.report_break(record, "no second release of what was queued once")
        else:
            self._settled[record.mid] = self._settled[record.ref] = None

    @override
    def end(self) -> None:
        wait = REPLY_TIMEOUT + records.SLACK
        for record in self.process.overdue(self._admitted.values(), wait):
            self.report_break(record, "a delivery, an answer, or a drop with a reason")
        for record in self.process.overdue(chain.from_iterable(self._queued.values()), wait):
            if record.mid not in self._settled:
                self.report_break(record, "what waits to be released, answered or dropped")


@fold.check("I-T10", on=fold.msg(Op.ADMIT, Op.XMIT))
def check_normal_form(process: fold.Process, record: TraceLine) -> None:
    """Check that an admitted or sent message is in normal form (I-T10)."""
    if flaw := _flaw(record):
        process.report_break("I-T10", record, flaw)


def _flaw(record: TraceLine) -> str:
    if record.type not in _VERBS:
        return f"one of the nine verbs, not {record.type!r}"
    if (record.id or 0) < 1:
        return "an id above 0"
    for address in (record.from_ or "", record.to or ""):
        if not _is_canonical(address):
            return f"a canonical address, not {address!r}"
    if records.is_answer(record) != (FIRST_CODE <= (record.code or 0) <= LAST_CODE):
        return "a code in an answer, and only there"
    return ""


@lru_cache(maxsize=4096)
def _is_canonical(address: str) -> bool:
    try:
        return canonical(address) == address
    except BadUrlError:
        return False


def _begins(record: TraceLine) -> bool:
    return record.actor == records.BUS and record.old == ABSENT


def _key_of_step(record: TraceLine) -> records.Key:
    *ends, number = (record.key or "").rsplit("|", 2)
    from_, to = ends if len(ends) == len(("from", "to")) else ("", "")
    return from_, to, int(number) if number.isdecimal() else 0
