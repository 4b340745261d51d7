"""Judges of what data objects hold, and of their ends and children (I-D4, I-D8, I-D10)."""

from collections.abc import Iterator
from typing import Final

from fsm.judge.claims.finding import Finding
from fsm.judge.claims.told import MANAGER, NodeTrace, Trace, split
from fsm.judge.trace_line import TraceLine
from specs.message import MessageType
from specs.trace import Kind, Op

__all__ = ["agreement", "child_owner", "nothing_after_delete"]

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
