"""Judges of what goes along with the steps of stubs; the machines judge these (I-S3..I-S9)."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from fsm.judge.claims.finding import Finding
from fsm.judge.claims.told import BUS, LINK_MACHINE, LISTENERS, LIVE, SLACK, NodeTrace, split
from fsm.judge.trace_line import TraceLine
from specs.addresses.address import last_segment, status_of
from specs.limits.protocol import STUB_QUEUE
from specs.trace import ABSENT, Kind, Op

__all__ = [
    "deploy_before_run",
    "event_for_change",
    "queue_order",
    "status_shape",
    "table_agrees",
    "transmit_when_live",
    "unique",
]

_CONNECTION: Final = "stub_connection"
_DEPLOYMENT: Final = "stub_deployment"
_STATUS: Final = "status"
_NOT_OF_A_CONNECTION: Final = frozenset({"deploying", "deployment-failed", "undeployed"})


def status_shape(node: NodeTrace) -> Iterator[Finding]:
    """A status is told by its owner, to its own place (I-S3)."""
    for record in node.at_bus:
        place = status_of(record.from_ or "")
        is_status = record.op == Op.ADMIT and last_segment(record.to or "") == _STATUS
        if is_status and record.to != place:
            yield node.finding("I-S3", record, f"{place} as its place")


def event_for_change(node: NodeTrace) -> Iterator[Finding]:
    """Each change of a stub is told once, and nothing else is (I-S4)."""
    steps: dict[str, list[TraceLine]] = defaultdict(list)
    events: dict[str, int] = defaultdict(int)
    for record in node.records:
        stub, from_ = _stepped(record), record.from_ or ""
        if stub is not None:
            steps[stub].append(record)
        elif _is_event(record) and from_ in steps:
            events[from_] += 1
            if events[from_] > len(steps[from_]):
                yield node.finding("I-S4", record, "a step of the stub before each of its events")
    for stub, changes in steps.items():
        untold = changes[events[stub] :]
        if untold and node.is_over_since(untold[0].t + SLACK) and node.home is not None:
            yield node.finding("I-S4", untold[0], "an event of this step")


def _is_event(record: TraceLine) -> bool:
    is_own = record.actor == BUS and record.op == Op.SUBMIT
    return is_own and record.to == status_of(record.from_ or "")


def _stepped(record: TraceLine) -> str | None:
    """Return whose status a step changes: a stub's, or of a link its end's."""
    if not record.is_step:
        return None
    if record.machine == _CONNECTION:
        return record.key
    # A handler tells of all its links under its own address.
    return split(record.key)[-1].partition("/conn/")[0] if record.machine == LINK_MACHINE else None


def table_agrees(node: NodeTrace) -> Iterator[Finding]:
    """The registry has each stub as its events say, in their order (I-S5)."""
    states: dict[str, list[str]] = defaultdict(list)
    reached: dict[str, int] = defaultdict(int)
    for record in node.records:
        if record.is_step and record.machine == _CONNECTION:
            states[record.key or ""].append(record.new or "")
        elif record.k == Kind.TABLE and record.table == "stubs" and record.op != Op.DEL:
            stub, _, status = (record.val or "").partition(" ")
            if stub not in states or status in _NOT_OF_A_CONNECTION:
                continue
            known, since = states[stub], reached[stub]
            if status not in known[since:]:
                yield node.finding("I-S5", record, f"{stub} as it was last told")
            else:
                reached[stub] = known.index(status, since)


def unique(node: NodeTrace) -> Iterator[Finding]:
    """The address of a stub is never given to another (I-S6)."""
    known: set[str] = set()
    for step in node.steps(_DEPLOYMENT):
        if step.old == ABSENT:
            if step.key in known:
                yield node.finding("I-S6", step, "another address for another stub")
            known.add(step.key or "")


def deploy_before_run(node: NodeTrace) -> Iterator[Finding]:
    """A stub is deployed, and its status listened to, before it begins (I-S7)."""
    deployment: dict[str, str] = {}
    heard: set[str] = set()
    for record in node.records if node.home is not None else ():
        stub = record.key or ""
        if record.k == Kind.TABLE and record.table == LISTENERS and record.actor == BUS:
            heard.add(stub)
        elif record.is_step and record.machine == _DEPLOYMENT:
            deployment[stub] = record.new or ""
        elif record.is_step and record.machine == _CONNECTION and record.old == ABSENT:
            if deployment.get(stub) != "deploying":
                yield node.finding("I-S7", record, "a stub that is being deployed")
            elif status_of(stub) not in heard:
                yield node.finding("I-S7", record, f"a listener of {status_of(stub)} before")


def transmit_when_live(node: NodeTrace) -> Iterator[Finding]:
    """A node's stub sends only over an open session (I-S8)."""
    states: dict[str | None, str | None] = {}
    for record in node.records:
        if record.is_step and record.machine == _CONNECTION:
            states[record.key] = record.new
        elif record.op == Op.XMIT and states.get(record.stub, LIVE) != LIVE:
            yield node.finding("I-S8", record, f"{record.stub} to be live")


def queue_order(node: NodeTrace) -> Iterator[Finding]:
    """What waits for a stub leaves in the order it came, and not too much waits (I-S9)."""
    waiting: dict[str, dict[str, None]] = defaultdict(dict)
    for record in node.messages:
        if not record.actor.startswith("stub:"):
            continue
        queue, mid = waiting[record.actor], record.mid or ""
        if record.op == Op.QUEUE:
            queue[mid] = None
            if len(queue) > STUB_QUEUE:
                yield node.finding("I-S9", record, f"at most {STUB_QUEUE} to wait")
        elif record.op == Op.FLUSH and mid in queue:
            if next(iter(queue)) != mid:
                yield node.finding("I-S9", record, f"{next(iter(queue))} to leave first")
            del queue[mid]
        elif record.op in {Op.SYNTH, Op.DROP}:
            queue.pop(mid, None)
            queue.pop(record.ref or "", None)
