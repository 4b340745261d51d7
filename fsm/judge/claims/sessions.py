"""Judges of the sessions of a node (I-M1..I-M4, I-M12) and of what it lets through (I-M8, I-K4).

A session is an entity `MN|R`, and `MN|R|n` the n-th time; which link it has, a record of
the session says.
"""

from collections.abc import Iterator
from typing import Final

from fsm.judge.claims.finding import Finding
from fsm.judge.claims.told import SLACK, TOLERANCE, NodeTrace, split
from fsm.judge.trace_line import TraceLine
from specs.limits.protocol import SESSION_IDLE, WRITE_TIMEOUT
from specs.trace import Kind, Op

__all__ = [
    "expiry_timing",
    "fail_closed",
    "nothing_after_close",
    "one_per_runtime",
    "policy_once",
    "runtime_of_session",
    "session_first",
    "state_survives",
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
