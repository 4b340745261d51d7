"""Judges of the addresses of a node's domain (I-A1..I-A7), and of tables at the end (I-X2)."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from fsm.judge.claims.finding import Finding
from fsm.judge.claims.sessions import runtime_of_session
from fsm.judge.claims.told import SLACK, NodeTrace, is_answer, split
from fsm.judge.trace_line import TraceLine
from fsm.machines.registration import REGISTRATION, State
from fsm.registry.records import KEPT
from fsm.session.node_session_io import PeerForm
from fsm.sync.subscriptions.subscriptions import entity_of
from specs.addresses.address import (
    RUNTIME_SCHEME,
    domain_of,
    is_backend,
    is_below,
    runtime_of,
    scheme_of,
)
from specs.trace import ABSENT, Kind, Op

__all__ = ["clean_at_rest", "fresh", "owner", "session_end", "used_while_allocated"]

_ALLOC: Final = "alloc"
_OVER: Final = frozenset({"closed", "expired"})
_EMPTY_AT_REST: Final = frozenset({_ALLOC, "subs"})


def fresh(node: NodeTrace) -> Iterator[Finding]:
    """An address is given once (I-A1)."""
    given: set[str | None] = set()
    for step in node.steps("address"):
        if step.old == ABSENT and step.key in given:
            yield node.finding("I-A1", step, "an address that was never given")
        given.add(step.key)


def used_while_allocated(node: NodeTrace) -> Iterator[Finding]:
    """Who speaks as an address of the domain speaks as one that is allocated (I-A2)."""
    for record, holder in _spoken(node):
        if holder is None:
            yield node.finding("I-A2", record, f"{record.from_} to be allocated")


def owner(node: NodeTrace) -> Iterator[Finding]:
    """Who speaks as an address is the one who owns it (I-A3)."""
    for record, holder in _spoken(node):
        if holder is not None and holder != record.by:
            yield node.finding("I-A3", record, f"{record.from_} to be used by {holder}")


def _spoken(node: NodeTrace) -> Iterator[tuple[TraceLine, str | None]]:
    """Yield what was let in as of an address of the domain, and who owns that then."""
    domain = _domain(node)
    owners: dict[str | None, str | None] = {}
    for record in node.records if domain is not None else ():
        if record.k == Kind.TABLE and record.table == _ALLOC:
            owners[record.key] = record.val if record.op != Op.DEL else None
        elif record.op == Op.ADMIT and record.by is not None and not is_answer(record):
            from_ = record.from_ or ""
            is_allocated = scheme_of(from_) != RUNTIME_SCHEME and not is_backend(from_)
            if is_allocated and domain_of(from_) == domain and not is_below(from_, record.by):
                yield record, owners.get(from_) or owners.get(entity_of(from_))


def _domain(node: NodeTrace) -> str | None:
    """Return the domain of a node; None: it is none."""
    rows = (row.key for row in node.rows("components") if node.home is None)
    return next((domain_of(key) for key in rows if key is not None), None)


def session_end(node: NodeTrace) -> Iterator[Finding]:
    """With a session all it owned is released, soon (I-A7); what never is, is left over.

    A record that outlives it was registered in upstream's form; any other is left live, which
    is no place to end in (`fsm.machines.registration`).
    """
    yield from _late_releases(node)
    yield from _false_lasting(node)


def _late_releases(node: NodeTrace) -> Iterator[Finding]:
    ended: dict[str | None, float] = {}
    for record in node.records:
        if record.is_step and record.machine == "session":
            runtime = runtime_of_session(record)
            ended.pop(runtime, None)
            if record.new in _OVER:
                ended[runtime] = record.t
        elif _is_release(record) and record.t - ended.get(record.val, record.t) > SLACK:
            yield node.finding("I-A7", record, f"a release soon after {record.val} had left")


def _is_release(record: TraceLine) -> bool:
    return record.table == _ALLOC and record.op == Op.DEL


def _begins_to_last(record: TraceLine) -> bool:
    is_registered = record.is_step and record.machine == REGISTRATION.name
    return is_registered and record.new == State.LASTING and record.why != KEPT


def _false_lasting(node: NodeTrace) -> Iterator[Finding]:
    """Yield each record that lasts although nobody who had its address speaks upstream's form.

    Of a record that was kept from before the node started it is not told who registered it.
    """
    upstream: set[str | None] = set()
    owners: defaultdict[str | None, set[str | None]] = defaultdict(set)
    for record in node.records:
        if record.k == Kind.SESSION and record.kind == PeerForm.UPSTREAM.value:
            upstream.add(record.b)
        elif record.k == Kind.TABLE and record.table == _ALLOC and record.op != Op.DEL:
            owners[record.key].add(record.val)
        elif _begins_to_last(record):
            url, *_ = split(record.key)
            own = {runtime_of(url)} if scheme_of(url) == RUNTIME_SCHEME else set()
            known = owners[url] or own
            if known and not known & upstream:
                yield node.finding("I-A7", record, "upstream's form of whoever registers it")


def clean_at_rest(node: NodeTrace) -> Iterator[Finding]:
    """When a node has ended, nobody owns or subscribes to anything there (I-X2)."""
    rows: dict[tuple[str | None, ...], TraceLine] = {}
    for record in node.records if node.home is None and node.end is not None else ():
        if record.k != Kind.TABLE or record.table not in _EMPTY_AT_REST:
            continue
        at = (record.table, record.key, record.val)
        if record.op == Op.DEL:
            rows.pop(at, None)
        else:
            rows[at] = record
    for row in rows.values():
        yield node.finding("I-X2", row, f"this row of {row.table} to go with its session")
