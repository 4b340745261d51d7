"""Judges of circles: what a message has crossed, and where it may not go again (I-L1..I-L5)."""

from collections import Counter
from collections.abc import Iterator

from fsm.judge.claims.finding import Finding
from fsm.judge.claims.told import NodeTrace, Trace, split
from fsm.judge.trace_line import TraceLine
from specs.limits.protocol import HOP_LIMIT
from specs.trace import Op

__all__ = ["append_only", "hop_bound", "no_echo", "no_reentry", "via_is_a_set"]


def via_is_a_set(node: NodeTrace) -> Iterator[Finding]:
    """No stub stands twice in what an admitted message has crossed (I-L1)."""
    for record in node.messages:
        via = _via(record)
        if record.op == Op.ADMIT and len(set(via)) != len(via):
            yield node.finding("I-L1", record, "each stub once in via")


def no_reentry(node: NodeTrace) -> Iterator[Finding]:
    """A stub sends nothing that it had carried before: it stamps, once, at the end (I-L2)."""
    for record in node.messages:
        if record.op == Op.XMIT and record.stub in _via(record)[:-1]:
            yield node.finding("I-L2", record, f"{record.stub} not to have carried it before")


def append_only(trace: Trace) -> Iterator[Finding]:
    """At each crossing via is as it was, and the stub behind it (I-L3)."""
    for node in trace.nodes:
        came: dict[str, set[tuple[str, ...]]] = {}
        for record in node.messages:
            via, mid = _via(record), record.mid or ""
            if record.op in {Op.RCV, Op.SUBMIT, Op.SYNTH}:
                came.setdefault(mid, set()).add(via)
            if record.op != Op.XMIT or record.stub is None:
                continue
            if via[-1:] != (record.stub,):
                yield node.finding("I-L3", record, f"{record.stub} at the end of via")
            elif mid in came and via[:-1] not in came[mid]:
                yield node.finding("I-L3", record, "via as it came, and one stub more")


def hop_bound(node: NodeTrace) -> Iterator[Finding]:
    """Neither via nor the sendings of one message exceed the limit (I-L4).

    Sendings are counted by link; a message that comes again may be sent again.
    """
    came: Counter[str | None] = Counter()
    sent: Counter[tuple[str | None, ...]] = Counter()
    for record in node.messages:
        if record.op in {Op.ADMIT, Op.XMIT} and len(_via(record)) > HOP_LIMIT:
            yield node.finding("I-L4", record, f"at most {HOP_LIMIT} stubs in via")
        if record.op in {Op.RCV, Op.SUBMIT}:
            came[record.mid] += 1
        elif record.op == Op.XMIT:
            way = (record.mid, record.to, record.link)
            sent[way] += 1
            if sent[way] > HOP_LIMIT * max(1, came[record.mid]):
                yield node.finding("I-L4", record, f"at most {HOP_LIMIT} sendings over one link")


def no_echo(node: NodeTrace) -> Iterator[Finding]:
    """What came by a link does not go back on it, but children to their author (I-L5)."""
    came: set[tuple[str, str]] = set()
    for record in node.messages:
        at = (record.link or "", record.mid or "")
        if record.op == Op.RCV:
            came.add(at)
        elif record.op == Op.XMIT and at in came and "/children/" not in (record.to or ""):
            yield node.finding("I-L5", record, "it not to go back by the link it came from")


def _via(record: TraceLine) -> tuple[str, ...]:
    return tuple(split(record.via)) if record.via else ()
