"""Judges of direct links: their lives, their routes and their traffic (I-P4..I-P19, I-P21, I-P22).

An end of a link is an entity `own runtime|remote runtime|role|address of the end`. Its steps
are judged by the replay of its machine.
"""

import math
from collections import defaultdict
from collections.abc import Iterator
from typing import Final, TypeAlias

from fsm.judge.claims.finding import Finding
from fsm.judge.claims.told import (
    BUS,
    LINK_MACHINE,
    LIVE,
    SLACK,
    Listeners,
    NodeTrace,
    Rows,
    Trace,
    expects_answer,
    is_connection,
    is_p2p_end,
    is_p2p_link,
    split,
)
from fsm.judge.trace_line import TraceLine
from specs.addresses.address import is_below, scheme_of
from specs.limits.protocol import HANDSHAKE_TIMEOUT
from specs.trace import ABSENT, Kind, Op

__all__ = [
    "agreement",
    "exactly_once",
    "fifo",
    "glare",
    "integrity",
    "no_second_set_up",
    "object_per_requester",
    "one_entry",
    "registration_order",
    "route_needs_listener",
    "side_order",
    "signalling_off_link",
    "silent_after_close",
    "single_reporter",
    "transmit_when_live",
    "unbind",
    "unique_pair",
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


def registration_order(node: NodeTrace) -> Iterator[Finding]:
    """Live first, then the bus listens, then the handler's, then it is a way (I-P17)."""
    listeners, lived = Listeners(), set[str]()
    for record in node.records:
        if listeners.take(record):
            end = record.key or ""
            if record.op != Op.ADD or not is_connection(end):
                continue
            if record.actor == BUS and end not in lived:
                yield node.finding("I-P17", record, "the link to be live first")
            elif record.actor != BUS and not listeners.of(BUS, end):
                yield node.finding("I-P17", record, "the bus to listen first")
        elif record.is_step and record.machine == LINK_MACHINE and record.new == LIVE:
            lived.add(split(record.key)[-1])


def route_needs_listener(node: NodeTrace) -> Iterator[Finding]:
    """A handler's end is a way only if both routers know it (I-P18)."""
    listeners = Listeners()
    for record in node.records:
        if listeners.take(record) or record.k != Kind.RESOLVE or record.op != Op.DONE:
            continue
        end = record.result or ""
        if not is_connection(end):
            continue
        routers = [BUS, *listeners.of(BUS, end)]
        if len(routers) == 1 or not all(listeners.of(router, end) for router in routers):
            yield node.finding("I-P18", record, f"listeners of {end} at both routers")


def unbind(node: NodeTrace) -> Iterator[Finding]:
    """Of a link that is over no listener stays (I-P19)."""
    listeners, gone = Listeners(), dict[str, TraceLine]()
    links = Rows("p2p")
    for record in node.records:
        words = links.words(record.key or "")
        if listeners.take(record) or not links.take(record):
            continue
        if record.op == Op.DEL and len(words) > 1 and is_connection(words[1]):
            gone[words[1]] = record
    for end, record in gone.items():
        if node.is_over_since(record.t + SLACK) and listeners.of(BUS, end):
            yield node.finding("I-P19", record, f"no listener of {end}")


_OVER: Final = frozenset({"failed", "disconnected"})
_REQUESTER: Final = "requester"
_HANDLER: Final = "handler"


def agreement(trace: Trace) -> Iterator[Finding]:
    """A link that stays open at one end was opened at the other, too (I-P4).

    The end that is proven first is alone while the other waits for the last word of the proof.
    Processes have clocks of their own, so which end closed it first is not judged.
    """
    whole = _whole(trace)
    opened = {(node.home, link) for node in trace.nodes for link in _opened(node)}
    for node in trace.nodes:
        for link, (record, until) in _opened(node).items():
            is_alone = {node.home, record.b} <= whole and (record.b, link) not in opened
            if is_alone and until - record.t > HANDSHAKE_TIMEOUT + SLACK:
                yield node.finding("I-P4", record, f"{record.b} to have opened it, too")


def _whole(trace: Trace) -> set[str | None]:
    """Return the runtimes of whose lives, however often they began anew, all is told."""
    cut_off = {node.home for node in trace.nodes if node.end is None}
    return {node.home for node in trace.nodes if node.home not in cut_off}


def _opened(node: NodeTrace) -> dict[str | None, tuple[TraceLine, float]]:
    """Return by link when it was opened, and until when it stayed so."""
    opened: dict[str | None, tuple[TraceLine, float]] = {}
    for record in node.records:
        if is_p2p_link(record) and record.op == Op.OPEN:
            opened[record.link] = (record, math.inf)
        elif is_p2p_link(record) and record.link in opened:
            opened[record.link] = (opened[record.link][0], record.t)
    return opened


def side_order(trace: Trace) -> Iterator[Finding]:
    """A handler's end is there because a requester's was created (I-P5)."""
    begun = [
        (node, step, split(step.key))
        for node in trace.nodes
        for step in node.steps(LINK_MACHINE)
        if step.old == ABSENT
    ]
    asked = {(key[0], key[1]) for _, step, key in begun if _role(step) == _REQUESTER}
    known = _whole(trace)
    for node, step, (own, remote, *_) in begun:
        if _role(step) == _HANDLER and remote in known and (remote, own) not in asked:
            yield node.finding("I-P5", step, f"{remote} to have asked for it")


def unique_pair(node: NodeTrace) -> Iterator[Finding]:
    """Two runtimes have one link open at a time (I-P6)."""
    opened: dict[str | None, str | None] = {}
    for record in node.records:
        if not is_p2p_link(record):
            continue
        if record.op == Op.CLOSE:
            if opened.get(record.b) == record.link:
                del opened[record.b]
        else:
            if record.b in opened:
                yield node.finding("I-P6", record, f"{opened[record.b]} to be closed first")
            opened[record.b] = record.link


def no_second_set_up(node: NodeTrace) -> Iterator[Finding]:
    """No requester is made for a runtime while another one is at it (I-P7)."""
    yield from _one_at_a_time(node, "I-P7", _REQUESTER)


def one_entry(node: NodeTrace) -> Iterator[Finding]:
    """A handler has one end for each remote runtime (I-P8)."""
    yield from _one_at_a_time(node, "I-P8", _HANDLER)


def _one_at_a_time(node: NodeTrace, claim: str, role: str) -> Iterator[Finding]:
    busy: dict[str, set[str]] = defaultdict(set)
    for step in node.steps(LINK_MACHINE):
        _, remote, its_role, *end = [*split(step.key), "", "", ""]
        if its_role != role:
            continue
        if step.old == ABSENT and busy[remote]:
            yield node.finding(claim, step, f"{min(busy[remote])} to be over first")
        if step.new in _OVER:
            busy[remote].discard(end[0])
        else:
            busy[remote].add(end[0])


def glare(node: NodeTrace) -> Iterator[Finding]:
    """If both runtimes ask for a link, that of the smaller one comes up (I-P20)."""
    at_it: dict[tuple[str, str], str] = {}
    losers: dict[str, str] = {}
    for step in node.steps(LINK_MACHINE):
        own, remote, role, end, *_ = [*split(step.key), "", "", ""]
        if step.old == ABSENT:
            at_it[remote, role] = end
            if (remote, _REQUESTER) in at_it and (remote, _HANDLER) in at_it:
                losers[at_it[remote, _HANDLER if own < remote else _REQUESTER]] = min(own, remote)
        elif step.new == LIVE and end in losers:
            yield node.finding("I-P20", step, f"the link that {losers[end]} asked for")
        elif step.new == LIVE or step.new in _OVER:
            at_it.pop((remote, role), None)


def single_reporter(node: NodeTrace) -> Iterator[Finding]:
    """A Connection object has one writer (I-P11)."""
    writers: dict[str, str] = {}
    for record in _writes(node):
        if writers.setdefault(record.key or "", record.by or "") != record.by:
            yield node.finding("I-P11", record, f"{writers[record.key or '']} as its one writer")


def object_per_requester(node: NodeTrace) -> Iterator[Finding]:
    """A requester reports one Connection object (I-P12)."""
    objects: dict[str, str] = {}
    for record in _writes(node):
        if "/p2prequester/" not in (record.by or ""):
            continue
        if objects.setdefault(record.by or "", record.key or "") != record.key:
            yield node.finding("I-P12", record, f"{objects[record.by or '']} as its one object")


def _writes(node: NodeTrace) -> Iterator[TraceLine]:
    for record in node.records:
        is_write = record.k == Kind.OBJ and record.op == Op.WRITE
        if is_write and record.by is not None and is_p2p_end(record.by):
            yield record


def _role(step: TraceLine) -> str:
    return [*split(step.key), "", "", ""][2]
