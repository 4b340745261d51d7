"""Judges of a node: its sessions, its addresses, and what it admits.

Claims I-M1..I-M4, I-M8, I-M12, I-K4, I-A1..I-A7 and I-X2.

A session is an entity `node|runtime`, and `node|runtime|n` the n-th time. A record of the
session names its link. The tables of a node are empty at the end (I-X2).
"""

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from fsm.judge.claims.finding import Finding
from fsm.judge.claims.told import SLACK, TOLERANCE, NodeTrace, is_answer, split
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
from specs.limits.protocol import SESSION_IDLE, WRITE_TIMEOUT
from specs.trace import ABSENT, Kind, Op

__all__ = [
    "clean_at_rest",
    "expiry_timing",
    "fail_closed",
    "fresh",
    "nothing_after_close",
    "one_per_runtime",
    "owner",
    "policy_once",
    "runtime_of_session",
    "session_end",
    "session_first",
    "state_survives",
    "used_while_allocated",
]

_MACHINE: Final = "session"
_OVER: Final = frozenset({"closed", "expired"})
_PERMIT: Final = "permit"


def runtime_of_session(step: TraceLine) -> str:
    """Return whose session made a step."""
    _, runtime, *_ = [*split(step.key), ""]
    return runtime


def session_first(node: NodeTrace) -> Iterator[Finding]:
    """Nothing that came by a link is let in before the link has a session (I-M1)."""
    sessions: set[str | None] = set()
    came: dict[str | None, str | None] = {}
    opened: set[str | None] = set()
    for record in node.records:
        if _is_session(record):
            sessions.add(record.link)
        elif record.k == Kind.LINK and record.op == Op.OPEN:
            opened.add(record.link)
        elif record.op == Op.RCV and record.stub is None:
            came[record.mid] = record.link
        elif record.op == Op.ADMIT and came.get(record.mid) in opened - sessions:
            yield node.finding("I-M1", record, "an open session on its link")


def one_per_runtime(node: NodeTrace) -> Iterator[Finding]:
    """A runtime's session has one open link: an older one is let go (I-M2)."""
    states: dict[str | None, str | None] = {}
    for record in node.records:
        if record.is_step and record.machine == _MACHINE:
            states[runtime_of_session(record)] = record.new
        elif _is_session(record) and states.get(record.b, "open") != "open":
            yield node.finding("I-M2", record, f"an open session of {record.b}", record.b or "")
    for older, record, closed_at in _replaced(node):
        if closed_at - record.t > WRITE_TIMEOUT + SLACK:
            yield node.finding("I-M2", record, f"{older} to be closed", record.b or "")


def _replaced(node: NodeTrace) -> Iterator[tuple[str | None, TraceLine, float]]:
    """Yield each link that lost its session to a newer one, that one's record, and its end."""
    links: dict[str | None, str | None] = {}
    left: dict[str | None, TraceLine] = {}
    for record in node.records:
        if _is_session(record):
            older = links.get(record.b, record.link)
            links[record.b] = record.link
            if older != record.link:
                left[older] = record
        elif record.k == Kind.LINK and record.op == Op.CLOSE:
            links = {runtime: link for runtime, link in links.items() if link != record.link}
            if record.link in left:
                yield record.link, left.pop(record.link), record.t
    for older, record in left.items():
        yield older, record, record.t if node.end is None else node.end.t


def state_survives(node: NodeTrace) -> Iterator[Finding]:
    """While a runtime is away it keeps what it owns (I-M3)."""
    away: set[str | None] = set()
    for record in node.records:
        if record.is_step and record.machine == _MACHINE:
            runtime = runtime_of_session(record)
            (away.add if record.new == "detached" else away.discard)(runtime)
        elif record.table == "alloc" and record.op == Op.DEL and record.val in away:
            yield node.finding("I-M3", record, f"{record.val} to keep it while it is away")


def nothing_after_close(node: NodeTrace) -> Iterator[Finding]:
    """What a session had goes silent with it (I-M4)."""
    owner: dict[str | None, str | None] = {}
    over: set[str | None] = set()
    for record in node.records:
        if record.is_step and record.machine == _MACHINE:
            runtime = runtime_of_session(record)
            (over.add if record.new in _OVER else over.discard)(runtime)
        elif _is_session(record):
            owner[record.link] = record.b
        elif record.op == Op.XMIT and owner.get(record.link) in over:
            yield node.finding("I-M4", record, "nothing to go to a session that is over")


def policy_once(node: NodeTrace) -> Iterator[Finding]:
    """A node decides once about each message that comes (I-M8).

    What sessions say of themselves is not told when it comes, so it is not counted.
    """
    decisions: dict[str | None, int] = {}
    for record in node.records if node.home is None else ():
        if record.op == Op.RCV:
            decisions[record.mid] = 0
        elif record.k == Kind.AUTHZ and record.mid in decisions:
            decisions[record.mid] += 1
            if decisions[record.mid] > 1:
                yield node.finding("I-M8", record, "one decision")


def expiry_timing(node: NodeTrace) -> Iterator[Finding]:
    """A session expires when its runtime was away for so long: not before, not later (I-M12)."""
    left: dict[str | None, TraceLine] = {}
    for step in node.steps(_MACHINE):
        away = left.pop(step.key, step)
        if step.new == "detached":
            left[step.key] = step
        elif step.new == "expired" and step.t - away.t < SESSION_IDLE - TOLERANCE:
            yield node.finding("I-M12", step, f"{SESSION_IDLE:g} s away before it expires")
        elif step.t - away.t > SESSION_IDLE + SLACK:
            yield node.finding("I-M12", step, f"an end after {SESSION_IDLE:g} s away")
    for away in left.values():
        if node.is_over_since(away.t + SESSION_IDLE + SLACK):
            yield node.finding("I-M12", away, f"an end after {SESSION_IDLE:g} s away")


def fail_closed(node: NodeTrace) -> Iterator[Finding]:
    """What is not permitted is not let in (I-K4)."""
    decisions: dict[str | None, str | None] = {}
    for record in node.records:
        if record.k == Kind.AUTHZ:
            decisions[record.mid] = record.decision
        elif record.op == Op.ADMIT and decisions.get(record.mid, _PERMIT) != _PERMIT:
            yield node.finding("I-K4", record, "permission")


def _is_session(record: TraceLine) -> bool:
    return record.k == Kind.SESSION and record.link is not None


_ALLOC: Final = "alloc"
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
