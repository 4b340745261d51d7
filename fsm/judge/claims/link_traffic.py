"""Judges of what direct links carry (I-P13..I-P16, I-P21, I-P22)."""

from collections import defaultdict
from collections.abc import Iterator
from typing import TypeAlias

from fsm.judge.claims.finding import Finding
from fsm.judge.claims.listeners import Listeners
from fsm.judge.claims.told import (
    BUS,
    LINK_MACHINE,
    LIVE,
    NodeTrace,
    Trace,
    expects_answer,
    is_p2p_end,
    is_p2p_link,
    split,
)
from fsm.judge.trace_line import TraceLine
from specs.addresses.address import is_below, scheme_of
from specs.trace import Kind, Op

__all__ = [
    "exactly_once",
    "fifo",
    "integrity",
    "signalling_off_link",
    "silent_after_close",
    "transmit_when_live",
]


_Sending: TypeAlias = tuple[str | None, int | None, str | None]
"""A message on a link: the link, the number there, and the runtime it is sent to."""


def signalling_off_link(node: NodeTrace) -> Iterator[Finding]:
    """What sets a link up does not go over it before it is live (I-P13)."""
    for record in _sent_early(node):
        if _is_signalling(record):
            yield node.finding("I-P13", record, "signalling by the node")


def transmit_when_live(node: NodeTrace) -> Iterator[Finding]:
    """A link carries messages only while it is live (I-P14)."""
    for record in _sent_early(node):
        if not _is_signalling(record):
            yield node.finding("I-P14", record, f"{record.stub} to be live")


def _sent_early(node: NodeTrace) -> Iterator[TraceLine]:
    states: dict[str, str] = {}
    for record in node.records:
        if record.is_step and record.machine == LINK_MACHINE:
            states[split(record.key)[-1]] = record.new or ""
        elif record.op == Op.XMIT and states.get(record.stub or "", LIVE) != LIVE:
            yield record


def _is_signalling(record: TraceLine) -> bool:
    ends = (record.from_ or "", record.to or "")
    return any(is_p2p_end(end) or scheme_of(end) == "connection" for end in ends)


def fifo(trace: Trace) -> Iterator[Finding]:
    """Each direction of a link brings what was sent, in order, once (I-P15)."""
    sent = _sent(trace)
    for node in trace.nodes:
        last: dict[tuple[str | None, str | None], int] = defaultdict(int)
        for record in node.messages:
            if record.seq is None or not is_p2p_end(record.stub or ""):
                continue
            at = (record.link, record.op)
            if record.seq != last[at] + 1:
                yield node.finding("I-P15", record, f"{last[at] + 1} as its number")
            last[at] = record.seq
        for record, sending in _came(node):
            told = sent.get(sending, record)
            if is_p2p_end(record.stub or "") and told.mid != record.mid:
                yield node.finding("I-P15", record, f"{told.mid}, as it was sent")


def integrity(trace: Trace) -> Iterator[Finding]:
    """What arrives is what was sent (I-P16)."""
    sent = _sent(trace)
    digests = {
        record.mid: record.digest
        for node in trace.nodes
        for record in node.messages
        if record.op == Op.XMIT
    }
    for node in trace.nodes:
        for record, sending in _came(node):
            told = sent.get(sending)
            digest = digests.get(record.mid) if told is None else told.digest
            is_same = told is None or told.mid == record.mid
            if is_same and digest is not None and digest != record.digest:
                yield node.finding("I-P16", record, "the content that was sent")


def _sent(trace: Trace) -> dict[_Sending, TraceLine]:
    """Return what was sent over links."""
    sent: dict[_Sending, TraceLine] = {}
    for node in trace.nodes:
        remote = {one.link: one.b for one in node.records if is_p2p_link(one)}
        for record in node.messages:
            if record.op == Op.XMIT and record.link in remote:
                sent[record.link, record.seq, remote[record.link]] = record
    return sent


def _came(node: NodeTrace) -> Iterator[tuple[TraceLine, _Sending]]:
    """Yield what came over links, and as what it was sent."""
    own = {one.link: one.a for one in node.records if is_p2p_link(one)}
    for record in node.messages:
        if record.op == Op.RCV:
            yield record, (record.link, record.seq, own.get(record.link, ""))


def silent_after_close(node: NodeTrace) -> Iterator[Finding]:
    """Nothing comes over a link that is closed (I-P21)."""
    closed: set[str | None] = set()
    for record in node.records:
        if record.k == Kind.LINK:
            (closed.discard if record.op == Op.OPEN else closed.add)(record.link)
        elif record.op == Op.RCV and record.link in closed:
            yield node.finding("I-P21", record, "nothing after the link was closed")


def exactly_once(node: NodeTrace) -> Iterator[Finding]:
    """A request is given to who it is for once, whatever ways it was sent (I-P22).

    What goes to all who observe an object goes to the stub of its links once for each link.
    """
    given: set[tuple[str, str]] = set()
    listeners = Listeners()
    for record in node.records:
        if listeners.take(record) or record.op != Op.DELIVER or record.actor != BUS:
            continue
        at = (record.mid or "", record.listener or "")
        if not expects_answer(record) or at[1] not in listeners.of(BUS, record.to or ""):
            continue
        if at in given and not _is_carried(record):
            yield node.finding("I-P22", record, "no second delivery")
        given.add(at)


def _is_carried(record: TraceLine) -> bool:
    """Whether a message is given to a stub of direct links for others."""
    stub = (record.listener or "").removeprefix("minibus:")
    return is_p2p_end(stub) and not is_below(record.to or "", stub)
