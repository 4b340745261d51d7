"""What traces do not tell: records, answers, and the traces of others that took part.

A verdict is `conformant` only if the traces tell everything. A process that took part
without a trace is known by what the others recorded of it:

* a runtime by the stubs in the `via` of messages (ours stamp what they carry, upstream's
  do not, so that no trace is expected of an upstream peer), and by direct links to it;
* a message node by the numbered messages that a runtime's stub exchanged with it (a stub
  that speaks an unknown protocol, in a sandbox, numbers nothing).

Of a runtime that was killed there is a trace without an end; it has taken part with one.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias, final

import attrs

from fsm.judge.claims.told import NodeTrace, Trace, is_p2p_end, is_p2p_link, split
from fsm.judge.claims.transactions import answers_missing
from fsm.judge.trace_line import Flaw, TraceLine
from specs.addresses.address import RUNTIME_SCHEME, domain_of, message_node, runtime_of, scheme_of
from specs.trace import Kind, Op

__all__ = ["Missing", "missing"]

_CROSSED: Final = frozenset({Op.XMIT, Op.RCV})

_Mentions: TypeAlias = dict[str, tuple[NodeTrace, TraceLine, str]]
"""By the address of a participant: where it is mentioned first, and as what."""


@final
@attrs.frozen(slots=True, order=True)
class Missing:
    """Something that the traces do not tell.

    Attributes:
        run: Of the trace that lacks it, or that mentions what has no trace.
        node: The same.
        ln: The record before it, or that mentions it; 0: none.
        reason: What is missing, as half a sentence.
        is_end: Whether it is the end of a trace: a process that still runs has none.
    """

    run: str
    node: str
    ln: int
    reason: str
    is_end: bool = False


def missing(trace: Trace, untraced: Collection[str] = ()) -> tuple[Missing, ...]:
    """Return what is missing.

    Args:
        trace: Of any number of processes and runs.
        untraced: Addresses or domains of participants that are known to keep no trace.
    """
    found = [one for node in trace.nodes for one in (*_records(node), *_answers(node))]
    return (*found, *_participants(trace, untraced))


def _records(node: NodeTrace) -> Iterator[Missing]:
    """Yield where the trace of one process has its flaws."""
    told, flaws = node.told, node.judgement.flaws

    def lacks(record: TraceLine, reason: str, *, is_end: bool = False) -> Missing:
        return Missing(node.run, node.node, record.ln, reason, is_end)

    if Flaw.NO_START in flaws:
        yield lacks(told[0], "it does not begin with its start")
    before = 0
    for record in told:
        if record.ln > before + 1:
            yield lacks(record, f"{_numbers(before + 1, record.ln - 1)} missing before this one")
        elif record.ln <= before:
            yield lacks(record, f"record {record.ln} is there twice")
        if record.k == Kind.DROPPED:
            yield lacks(record, "records were dropped: the disk was slower than the process")
        before = record.ln
    if Flaw.NO_END in flaws:
        reason = "it has no end: the process crashed, was killed, or still runs"
        yield lacks(told[-1], reason, is_end=True)


def _numbers(first: int, last: int) -> str:
    return f"record {first} is" if first == last else f"records {first}-{last} are"


def _answers(node: NodeTrace) -> Iterator[Missing]:
    """Yield requests without a final answer."""
    for asked in answers_missing(node):
        reason = f"the final answer to {asked.mid} is not told, nor that there was none"
        yield Missing(node.run, node.node, asked.ln, reason)


def _participants(trace: Trace, untraced: Collection[str]) -> Iterator[Missing]:
    """Yield who took part without a trace."""
    traced = {who for node in trace.nodes for who in _self(node)}
    mentions: _Mentions = {}
    for node in trace.nodes:
        for who, (record, what) in _mentioned(node).items():
            mentions.setdefault(who, (node, record, what))
    for who, (node, record, what) in sorted(mentions.items(), key=lambda one: one[0]):
        if who not in traced and not {who, domain_of(who)} & set(untraced):
            reason = f"there is no trace of {who}, {what} here"
            yield Missing(node.run, node.node, record.ln, reason)


def _self(node: NodeTrace) -> Iterator[str]:
    """Yield the addresses of the process that wrote a trace."""
    if node.home is not None:
        yield node.home
    yield from {one.a for one in node.told if one.k in {Kind.LINK, Kind.SESSION} and one.a}


def _mentioned(node: NodeTrace) -> Mapping[str, tuple[TraceLine, str]]:
    """Return who took part in what one process recorded, where and as what."""
    found: dict[str, tuple[TraceLine, str]] = {}
    known: set[str | None] = {None}
    stubs = _node_stubs(node.told)
    for record in node.told:
        if is_p2p_link(record) and record.b is not None:
            found.setdefault(record.b, (record, "which a direct link led to"))
        if record.k != Kind.MSG:
            continue
        if record.via not in known:
            known.add(record.via)
            for who in _stamped(split(record.via)):
                found.setdefault(who, (record, "whose stub carried a message"))
        if record.op in _CROSSED and record.seq is not None and record.stub in stubs:
            found.setdefault(stubs[record.stub], (record, "which exchanged messages"))
    return found


def _stamped(via: Iterable[str]) -> Iterator[str]:
    for stub in via:
        if scheme_of(stub) == RUNTIME_SCHEME:
            yield runtime_of(stub)


def _node_stubs(told: Sequence[TraceLine]) -> Mapping[str | None, str]:
    """Return the message node behind each stub of a runtime, by the stub."""
    rows = (one for one in told if one.k == Kind.TABLE and one.table == "stubs" and one.val)
    found: dict[str | None, str] = {}
    for row in rows:
        stub = (row.val or "").split(" ")[0]
        if not is_p2p_end(stub):
            found[stub] = message_node(row.key or "")
    return found
