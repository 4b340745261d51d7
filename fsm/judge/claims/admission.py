"""Judges of what is let in, and what becomes of the rest (I-B8..I-B12)."""

from collections.abc import Iterator
from typing import Final, final

from fsm.judge.claims.finding import Finding
from fsm.judge.claims.told import BUS, SLACK, NodeTrace, expects_answer, is_answer
from fsm.judge.trace_line import TraceLine
from specs.addresses.address import is_below, last_segment, runtime_of, status_of
from specs.child import parent_of
from specs.trace import Kind, Op

__all__ = [
    "authorise_first",
    "denied_is_dead",
    "sandbox_isolation",
    "source_authenticity",
    "undeliverable_answered",
]

_OUT: Final = frozenset({Op.DELIVER, Op.XMIT, Op.PUBLISH})
_ENDS: Final = frozenset({Op.SYNTH, Op.DROP})
_PERMIT: Final = "permit"
_LOCAL: Final = "local"
_P2P: Final = "p2p-stub"
_CHANGES: Final = "changes"


def authorise_first(node: NodeTrace) -> Iterator[Finding]:
    """Nothing goes on before it is permitted or found to need no permission (I-B8)."""
    permitted: set[str] = set()
    for record in node.records:
        if record.k == Kind.AUTHZ and record.decision == _PERMIT:
            permitted.add(record.mid or "")
        elif record.op == Op.ADMIT and record.mid not in permitted and not _is_exempt(record, node):
            yield node.finding("I-B8", record, "permission before it is let in")
    yield from _let_in_first(node) if node.home is not None else _passed_first(node)


def _let_in_first(node: NodeTrace) -> Iterator[Finding]:
    """What a runtime delivers was let in, or is its own word; so it is with ways looked for."""
    let_in: set[str] = set()
    targets: set[str] = set()
    for record in node.records:
        if record.k == Kind.RESOLVE and record.op == Op.BEGIN and record.to not in targets:
            yield node.finding("I-B8", record, "a message that may go there, before")
        if record.k != Kind.MSG or record.actor != BUS:
            continue
        if record.op in {Op.ADMIT, Op.SYNTH}:
            let_in.add(record.mid or "")
            targets.add(record.to or "")
        elif record.op == Op.DELIVER and record.mid not in let_in:
            yield node.finding("I-B8", record, "to be let in before it is delivered")


def _passed_first(node: NodeTrace) -> Iterator[Finding]:
    """What came to a node by a link was let in before it goes anywhere."""
    came: set[str | None] = set()
    for record in node.messages:
        if record.actor != BUS:
            continue
        if record.op == Op.RCV:
            came.add(record.mid)
        elif record.op == Op.ADMIT:
            came.discard(record.mid)
        elif record.op in {Op.DELIVER, Op.PUBLISH, Op.XMIT} and record.mid in came:
            yield node.finding("I-B8", record, "to be let in before it goes on")


def _is_exempt(record: TraceLine, node: NodeTrace) -> bool:
    """Answers, own status events and what goes between the runtime's own parts (BUS-13)."""
    from_, to = record.from_ or "", record.to or ""
    if node.home is None:
        return False
    is_own = is_below(from_, node.home)
    return is_answer(record) or (is_own and (to == status_of(from_) or is_below(to, node.home)))


def denied_is_dead(node: NodeTrace) -> Iterator[Finding]:
    """What is denied goes nowhere, and who asked is told (I-B9)."""
    denied: dict[tuple[str, str | None], str | None] = {}
    for record in node.messages:
        at = (record.actor, record.mid)
        if record.op == Op.DENY:
            denied[at] = record.digest
        elif record.op == Op.ADMIT:
            denied.pop(at, None)
        elif record.op in _OUT and at in denied and denied[at] == record.digest:
            yield node.finding("I-B9", record, "a denied message to go nowhere")
    yield from _denied_silently(node)


def _denied_silently(node: NodeTrace) -> Iterator[Finding]:
    unanswered: dict[str | None, TraceLine] = {}
    for record in node.messages:
        if record.op == Op.DENY and record.code and expects_answer(record):
            unanswered[record.mid] = record
        elif is_answer(record):
            unanswered.pop(record.ref, None)
    for left in unanswered.values() if node.end is not None else ():
        yield node.finding("I-B9", left, "a refusal to be answered")


def source_authenticity(node: NodeTrace) -> Iterator[Finding]:
    """Who submits a message owns the address it is from (I-B10)."""
    owners = _Owners(node.home)
    for record in node.records if node.home is not None else ():
        if record.k == Kind.TABLE and record.table == "components" and record.actor == BUS:
            owners.take(record)
        elif record.op == Op.ADMIT and record.actor == BUS and not owners.may(record):
            yield node.finding("I-B10", record, f"a sender that is {record.by}'s")


@final
class _Owners:
    """Who may send as what, as the bus tells: a row is an address, whose, and who that is.

    What a node stub brings is of somebody who is not here. What a peer sends over a link is
    from its runtime, or from what a registry says is that runtime's: a row for each. Answers
    may come from addresses that several listen to (C-81).
    """

    def __init__(self, home: str | None) -> None:
        self._home = home or ""
        self._granted: dict[str, set[str]] = {}
        self._stubs: set[str] = set()
        self._links: set[str] = set()

    def take(self, record: TraceLine) -> None:
        owner, address = record.val or "", record.key or ""
        if record.writer == _P2P:
            self._links.add(owner)
        elif record.writer != _LOCAL:
            self._stubs.add(owner)
        granted = self._granted.setdefault(owner, set())
        (granted.discard if record.op == Op.DEL else granted.add)(address)

    def may(self, record: TraceLine) -> bool:
        from_, by = record.from_ or "", record.by or ""
        owner = self._owner(by)
        if owner is None:
            # What the bus itself repeats is said to be submitted by its sender.
            granted = [one for several in self._granted.values() for one in several]
            return not granted or (by == from_ and any(is_below(by, one) for one in granted))
        if owner in self._links:
            return self._may_by_link(record, self._granted[owner])
        if any(is_below(from_, one) for one in self._granted[owner]):
            return True
        return owner in self._stubs and (is_answer(record) or not is_below(from_, self._home))

    def _may_by_link(self, record: TraceLine, granted: set[str]) -> bool:
        """Say so of a P2P stub: it stamps what its peer has sent, and nothing else."""
        from_ = record.from_ or ""
        is_here = is_below(from_, self._home)
        is_theirs = from_ in granted or runtime_of(from_) in granted
        if (record.via or "").rpartition("|")[2] == record.by:
            is_shared = last_segment(from_) == _CHANGES or parent_of(from_) is not None
            return (is_theirs and not is_here) or (is_answer(record) and is_shared)
        return is_here or is_theirs or is_answer(record)

    def _owner(self, by: str) -> str | None:
        while by not in self._granted and "/" in by:
            by = by.rpartition("/")[0]
        return by if by in self._granted else None


def sandbox_isolation(node: NodeTrace) -> Iterator[Finding]:
    """What reaches a sandbox came from the bus (I-B11)."""
    sent: set[tuple[str, str]] = set()
    for record in node.messages:
        if node.home is None or record.op != Op.DELIVER:
            continue
        mid = record.mid or ""
        if record.actor == BUS:
            sent.add((record.listener or "", mid))
        elif record.actor.startswith("minibus:") and (record.actor, mid) not in sent:
            yield node.finding("I-B11", record, "the bus to have given it to this sandbox")


def undeliverable_answered(node: NodeTrace) -> Iterator[Finding]:
    """Who asks somebody to whom no way leads is told so; anything else is counted (I-B12)."""
    if node.home is None or node.end is None:
        return
    waiting: dict[str, TraceLine] = {}
    for record in node.at_bus:
        if record.op == Op.ADMIT:
            waiting[record.mid or ""] = record
        elif record.op in {*_OUT, *_ENDS, Op.CALLBACK}:
            waiting.pop(record.mid or "", None)
            waiting.pop(record.ref or "", None)
    lost = {one.to: one.ln for one in node.records if _is_lost(one)}
    for left in waiting.values():
        if lost.get(left.to, 0) > left.ln and node.is_over_since(left.t + SLACK):
            yield node.finding("I-B12", left, "a refusal, or a drop that is counted")


def _is_lost(record: TraceLine) -> bool:
    return record.k == Kind.RESOLVE and record.op == Op.DONE and record.result is None
