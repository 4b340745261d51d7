"""Judges of transactions: requests of a runtime's own components, and their answers (I-T1..I-T10).

A request is known by its ends and its id. The same request may be made again after it
has ended; the step of its transaction out of nothing says so.
"""

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from fsm.judge.claims.finding import Finding
from fsm.judge.claims.told import (
    BUS,
    SLACK,
    TOLERANCE,
    Key,
    NodeTrace,
    expects_answer,
    is_answer,
    is_final,
    key_of,
)
from fsm.judge.trace_line import TraceLine
from specs.addresses.address import canonical
from specs.errors import BadUrlError
from specs.limits.protocol import REPLY_TIMEOUT
from specs.message import MessageType
from specs.reply_code import FIRST_CODE, LAST_CODE, Code, DropReason
from specs.trace import ABSENT, Kind, Op

__all__ = [
    "answers_missing",
    "conservation",
    "eventual_final",
    "id_monotone",
    "late_dropped",
    "match",
    "no_late_provisional",
    "normal_form",
    "one_final",
    "retry_identity",
    "timeout_justified",
]

_GIVEN: Final = frozenset({Op.CALLBACK, Op.DELIVER})
_GOES_ON: Final = frozenset(
    {Op.DELIVER, Op.CALLBACK, Op.XMIT, Op.RELAY, Op.QUEUE, Op.SYNTH, Op.DROP, Op.PUBLISH}
)
_ENDS: Final = frozenset({Op.SYNTH, Op.DROP})
_VERBS: Final = frozenset(MessageType)


def match(node: NodeTrace) -> Iterator[Finding]:
    """An answer that is given belongs to a request that was submitted before (I-T1)."""
    asked: set[Key] = set()
    for record in node.at_bus:
        if record.op == Op.SUBMIT and not is_answer(record):
            asked.add(key_of(record))
        elif record.op in _GIVEN and is_answer(record) and key_of(record) not in asked:
            yield node.finding("I-T1", record, "an earlier request with this id and these ends")


def one_final(node: NodeTrace) -> Iterator[Finding]:
    """A request gets one final answer, or one from each who answers for itself (I-T2)."""
    given: dict[Key, set[str]] = {}
    for record in _transactions(node):
        key = key_of(record)
        if _begins(record):
            given.pop(_key_of_step(record), None)
        elif record.op == Op.CALLBACK and is_final(record):
            before, mid = given.setdefault(key, set()), record.mid or ""
            several = all("@" in one.rpartition("!")[2] for one in (*before, mid))
            if before and (mid in before or not several):
                yield node.finding("I-T2", record, "no second final answer")
            before.add(mid)


def eventual_final(node: NodeTrace) -> Iterator[Finding]:
    """A request made here gets a final answer before the wait for it is over (I-T3)."""
    for asked, since in _unanswered(node):
        if node.is_over_since(since + REPLY_TIMEOUT + SLACK):
            expected = f"a final answer within {REPLY_TIMEOUT:g} s"
            yield node.finding("I-T3", asked, expected)


def answers_missing(node: NodeTrace) -> Iterator[TraceLine]:
    """Yield requests whose final answer is not told, though the process ended orderly.

    A runtime that ends refuses what is open; whoever asked is gone by then.
    """
    if node.end is None:
        return
    refused = {_key_of_step(one) for one in node.steps("transaction") if one.cause == "refused"}
    for asked, _ in _unanswered(node):
        if key_of(asked) not in refused:
            yield asked


def _unanswered(node: NodeTrace) -> Iterator[tuple[TraceLine, float]]:
    """Yield requests made here that got no final answer, and since when each waits."""
    waiting: dict[Key, tuple[TraceLine, float]] = {}
    for record in node.at_bus:
        key = key_of(record)
        if record.op == Op.SUBMIT and expects_answer(record) and node.is_local(record):
            waiting.setdefault(key, (record, record.t))
        elif record.op == Op.DROP and not is_answer(record):
            waiting.pop(key, None)
        elif key in waiting and _is_answered(record):
            if is_final(record):
                del waiting[key]
            else:
                waiting[key] = (waiting[key][0], record.t)
    yield from waiting.values()


def _is_answered(record: TraceLine) -> bool:
    """Say whether an answer came; who asked may be gone by then."""
    is_for_nobody = record.op == Op.DROP and record.reason == DropReason.NO_TARGET
    return is_answer(record) and (record.op in {*_GIVEN, Op.SYNTH} or is_for_nobody)


def no_late_provisional(node: NodeTrace) -> Iterator[Finding]:
    """After the final answer no provisional one is given (I-T4)."""
    ended: set[Key] = set()
    for record in _transactions(node):
        if _begins(record):
            ended.discard(_key_of_step(record))
        elif record.op == Op.CALLBACK and is_final(record):
            ended.add(key_of(record))
        elif record.op == Op.CALLBACK and key_of(record) in ended:
            yield node.finding("I-T4", record, "no provisional answer after the final one")


def late_dropped(node: NodeTrace) -> Iterator[Finding]:
    """What answers a request after the router's own 408 is given to nobody (I-T5)."""
    over: dict[Key, str | None] = {}
    for record in _transactions(node):
        key = key_of(record)
        if _begins(record):
            over.pop(_key_of_step(record), None)
        elif record.op == Op.SYNTH and record.code == Code.TIMEOUT:
            over[key] = record.mid
        elif record.op in _GIVEN and is_answer(record) and over.get(key, record.mid) != record.mid:
            yield node.finding("I-T5", record, "this answer to be dropped: it came after the 408")


def timeout_justified(node: NodeTrace) -> Iterator[Finding]:
    """The router says 408 only after a whole wait without a sign of life (I-T6)."""
    signs: dict[Key, float] = {}
    for record in _transactions(node):
        key = key_of(record)
        if _begins(record):
            signs[_key_of_step(record)] = record.t
        elif record.op == Op.CALLBACK and is_final(record):
            signs.pop(key, None)
        elif record.op in _GIVEN and _is_sign(record) and key in signs:
            signs[key] = record.t
        elif record.op == Op.SYNTH and record.code == Code.TIMEOUT:
            since = signs.get(key)
            if since is None or record.t - since < REPLY_TIMEOUT - TOLERANCE:
                expected = f"{REPLY_TIMEOUT:g} s of silence on an open request before the 408"
                yield node.finding("I-T6", record, expected)


def _is_sign(record: TraceLine) -> bool:
    """Whether an answer says that a better one follows: what another has answered does not."""
    return is_answer(record) and not is_final(record)


def id_monotone(node: NodeTrace) -> Iterator[Finding]:
    """The ids of what one component sends rise; a repetition is the same message (I-T7)."""
    last: dict[str, int] = {}
    seen: set[str] = set()
    for record in node.at_bus:
        if record.op != Op.SUBMIT or is_answer(record) or not node.is_local(record):
            continue
        sender, number, mid = record.from_ or "", record.id or 0, record.mid or ""
        if mid not in seen and number <= last.get(sender, 0):
            yield node.finding("I-T7", record, f"an id above {last[sender]}")
        seen.add(mid)
        last[sender] = max(number, last.get(sender, 0))


def retry_identity(node: NodeTrace) -> Iterator[Finding]:
    """Who sends the same request again sends the same content (I-T8)."""
    known: dict[Key, str] = {}
    for record in node.messages:
        if record.op != Op.SUBMIT or is_answer(record) or record.digest is None:
            continue
        same = known.setdefault(key_of(record), record.digest) == record.digest
        if not same and node.is_local(record):
            yield node.finding("I-T8", record, "the same content under the same id")


def conservation(node: NodeTrace) -> Iterator[Finding]:
    """What is admitted goes on, is answered, or is dropped with a reason (I-T9)."""
    admitted: dict[str, TraceLine] = {}
    for record in node.messages:
        if record.op == Op.ADMIT:
            admitted.setdefault(record.mid or "", record)
        elif record.op in _GOES_ON:
            admitted.pop(record.mid or "", None)
            admitted.pop(record.ref or "", None)
    for left in admitted.values():
        if node.is_over_since(left.t + REPLY_TIMEOUT + SLACK):
            yield node.finding("I-T9", left, "a delivery, an answer, or a drop with a reason")
    yield from _waiting(node)


def _waiting(node: NodeTrace) -> Iterator[Finding]:
    """What is queued is released, answered or dropped, and nothing is released twice."""
    # What came twice may wait twice: nobody but the receiver knows that it is the same.
    # And whoever queues a request does not hear of its answer, so it may release it still.
    queued: defaultdict[tuple[str | None, str], list[TraceLine]] = defaultdict(list)
    settled: set[str | None] = set()
    for record in node.messages:
        waiting = queued[record.mid, record.actor]
        if record.op == Op.QUEUE:
            waiting.append(record)
        elif record.op == Op.FLUSH and not waiting:
            yield node.finding("I-T9", record, "no second release of what was queued once")
        elif record.op == Op.FLUSH or (record.op == Op.DROP and waiting):
            waiting.pop(0)
        elif record.op in _ENDS:
            settled |= {record.mid, record.ref}
    for left in (one for several in queued.values() for one in several):
        if left.mid not in settled and node.is_over_since(left.t + REPLY_TIMEOUT + SLACK):
            yield node.finding("I-T9", left, "what waits to be released, answered or dropped")


def normal_form(node: NodeTrace) -> Iterator[Finding]:
    """What is admitted or sent is in normal form (I-T10)."""
    for record in node.messages:
        if record.op in {Op.ADMIT, Op.XMIT}:
            flaw = _flaw(record)
            if flaw:
                yield node.finding("I-T10", record, flaw)


def _flaw(record: TraceLine) -> str:
    if record.type not in _VERBS:
        return f"one of the nine verbs, not {record.type!r}"
    if (record.id or 0) < 1:
        return "an id above 0"
    for address in (record.from_ or "", record.to or ""):
        if not _is_canonical(address):
            return f"a canonical address, not {address!r}"
    code = record.code or 0
    if is_answer(record) != (FIRST_CODE <= code <= LAST_CODE):
        return "a code in an answer, and only there"
    return ""


def _is_canonical(address: str) -> bool:
    try:
        return canonical(address) == address
    except BadUrlError:
        return False


def _transactions(node: NodeTrace) -> Iterator[TraceLine]:
    """Yield what the bus did with messages, and each transaction's begin."""
    if node.home is None:
        return
    for record in node.records:
        if record.actor == BUS and (record.k == Kind.MSG or _begins(record)):
            yield record


def _begins(record: TraceLine) -> bool:
    return record.is_step and record.machine == "transaction" and record.old == ABSENT


def _key_of_step(record: TraceLine) -> Key:
    *ends, number = (record.key or "").rsplit("|", 2)
    from_, to = ends if len(ends) == len(("from", "to")) else ("", "")
    return from_, to, int(number) if number.isdecimal() else 0
