"""Judges of data objects: who writes, and what observers make of it (I-D1..I-D12).

An observer's copy is an entity `object|observer`.
"""

from collections.abc import Iterator
from typing import Final

from fsm.judge.claims.finding import Finding
from fsm.judge.claims.told import NodeTrace, is_p2p_end
from fsm.judge.trace_line import TraceLine
from specs.trace import ABSENT, Kind, Op

__all__ = ["monotone", "once", "single_writer", "snapshot_first", "unsubscribed_stops", "versions"]

_HAND_OVERS: Final = frozenset({"object_delegation", "object_take_over"})
_TAKEN: Final = "taken"
_PASSED: Final = "pass"
_GIVEN: Final = frozenset({"given", "lost"})
_COPY: Final = "observer_copy"
_SNAPSHOT: Final = "snapshot"


def single_writer(node: NodeTrace) -> Iterator[Finding]:
    """An object has one reporter at a time (I-D1).

    Connection objects are looked at by themselves. Where an object was given away nobody
    writes it any more, until it is taken over again.
    """
    writers: dict[str | None, str | None] = {}
    for record in node.records:
        if record.is_step and record.machine in _HAND_OVERS:
            _moved(record, writers)
        elif record.k == Kind.OBJ and record.op == Op.WRITE:
            writer = writers.setdefault(record.key, record.by)
            if writer != record.by and not is_p2p_end(record.by or ""):
                yield node.finding("I-D1", record, f"{writer or 'nobody here'} to write it")


def _moved(record: TraceLine, writers: dict[str | None, str | None]) -> None:
    """Note who may write an object that has changed hands."""
    url, to, *_ = f"{record.key}|".split("|")
    if record.cause == _PASSED or record.new == _TAKEN:
        writers[url] = to
    elif record.new in _GIVEN:
        writers[url] = None


def versions(node: NodeTrace) -> Iterator[Finding]:
    """The versions of an object rise by one (I-D2), beginning anew where it was taken over."""
    last: dict[str | None, int] = {}
    for record in node.records:
        if record.is_step and record.new == _TAKEN and record.machine in _HAND_OVERS:
            last.pop((record.key or "").partition("|")[0], None)
        elif record.k == Kind.OBJ and record.op == Op.WRITE:
            version = record.version or 0
            if version != last.get(record.key, version - 1) + 1:
                yield node.finding("I-D2", record, f"version {last[record.key] + 1}")
            last[record.key] = version


def monotone(node: NodeTrace) -> Iterator[Finding]:
    """An observer leaves no version out, but by reading the object anew (I-D3)."""
    for record, last in _applied(node):
        if last is not None and (record.version or 0) > last + 1:
            yield node.finding("I-D3", record, f"version {last + 1}, or the object read anew")


def once(node: NodeTrace) -> Iterator[Finding]:
    """An observer applies each version once (I-D12)."""
    for record, last in _applied(node):
        if last is not None and (record.version or 0) <= last:
            yield node.finding("I-D12", record, f"nothing up to version {last}")


def _applied(node: NodeTrace) -> Iterator[tuple[TraceLine, int | None]]:
    """Yield each application, and the version before; None: the object was read since.

    A copy that begins anew may begin with what was stored of one before it.
    """
    last: dict[tuple[str | None, str | None], int] = {}
    for record in node.records:
        is_copy = record.is_step and record.machine == _COPY
        if is_copy and (record.cause == _SNAPSHOT or record.old == ABSENT):
            address, _, observer = (record.key or "").partition("|")
            last.pop((address, observer), None)
        elif record.k == Kind.OBJ and record.op == Op.APPLY:
            at = (record.key, record.by)
            yield record, last.get(at)
            last[at] = record.version or 0


def snapshot_first(node: NodeTrace) -> Iterator[Finding]:
    """Nothing is applied before the object was read (I-D5)."""
    for record, state in _applied_in(node):
        if state == "syncing":
            yield node.finding("I-D5", record, "the object to be read first")


def unsubscribed_stops(node: NodeTrace) -> Iterator[Finding]:
    """Who observes no longer applies nothing (I-D7)."""
    for record, state in _applied_in(node):
        if state == "deleted":
            yield node.finding("I-D7", record, "nothing: it does not observe any more")


def _applied_in(node: NodeTrace) -> Iterator[tuple[TraceLine, str | None]]:
    """Yield each application, and the state the copy was in."""
    states: dict[str | None, str | None] = {}
    for record in node.records:
        if record.is_step and record.machine == _COPY:
            states[record.key] = record.new
        elif record.k == Kind.OBJ and record.op == Op.APPLY:
            yield record, states.get(f"{record.key}|{record.by}")
