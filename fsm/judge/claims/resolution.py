"""Judges of a runtime's registry: the routes it finds and the changes it announces.

Claims I-R1..I-R9, I-C1 and I-C5. A row of `stubs` is the address of a stub and its state. A
row of `p2p` is the state of a link, the address of its stub, and the address bound to it.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Final

from fsm.intent import Intent
from fsm.judge.claims.finding import Finding
from fsm.judge.claims.told import (
    BUS,
    LINK_MACHINE,
    LISTENERS,
    LIVE,
    SLACK,
    Key,
    NodeTrace,
    Rows,
    is_answer,
    is_final,
    is_p2p_end,
    is_shared,
    key_of,
    split,
)
from fsm.judge.trace_line import TraceLine
from fsm.sync.subscriptions.subscriptions import entity_of
from specs.addresses.address import domain_of, is_backend, last_segment
from specs.limits.protocol import REPLY_TIMEOUT
from specs.reply_code import LAST_SUCCESS
from specs.trace import Kind, Op

__all__ = [
    "backend",
    "fallback_keeps",
    "live_only",
    "preference",
    "right_node_stub",
    "set_up_goes_on",
    "single_flight",
    "termination",
    "torn_down",
    "window",
]

_CHANGES: Final = "/registry/changes"
_REGISTRY: Final = "registry"


def window(node: NodeTrace) -> Iterator[Finding]:
    """Another registry's changes come between asking for them and the end of that (I-C1)."""
    asked: dict[Key, str | None] = {}
    followed: set[str | None] = set()
    for record in node.at_bus:
        key = key_of(record)
        if record.op == Op.SUBMIT and record.from_ == f"{node.home}/{_REGISTRY}":
            asked[key] = record.type
        elif record.op == Op.CALLBACK and is_final(record) and key in asked:
            verb = asked[key] if (record.code or 0) <= LAST_SUCCESS else None
            if verb == "subscribe":
                followed.add(record.from_)
            elif verb == "unsubscribe":
                followed.discard(record.from_)
        elif _is_foreign_change(record, node) and record.from_ not in followed:
            yield node.finding("I-C1", record, f"{record.from_} to have been asked for changes")


def _is_foreign_change(record: TraceLine, node: NodeTrace) -> bool:
    is_change = record.op == Op.DELIVER and record.to == f"{record.from_}/changes"
    is_own = record.from_ == f"{node.home}/{_REGISTRY}"
    return is_change and not is_own and last_segment(record.from_ or "") == _REGISTRY


def torn_down(node: NodeTrace) -> Iterator[Finding]:
    """With the last link nobody follows changes of a registry any more (I-C5)."""
    links, rows = Rows("p2p"), dict[tuple[str | None, str | None], TraceLine]()
    alone_since: float | None = None
    for record in node.records:
        if links.take(record):
            alone_since = None if list(links.all()) else record.t
        elif _is_row(record):
            at = (record.key, record.val)
            if record.op == Op.DEL:
                rows.pop(at, None)
            else:
                rows[at] = record
    if alone_since is not None and node.is_over_since(alone_since + SLACK):
        for row in rows.values():
            yield node.finding("I-C5", row, "this listener to go with the last link")


def _is_row(record: TraceLine) -> bool:
    is_listener = record.k == Kind.TABLE and record.table == LISTENERS and record.actor == BUS
    return is_listener and (record.key or "").endswith(_CHANGES)


_BY_ANY_WAY: Final = frozenset({Intent.REACH.value, Intent.KNOWN.value})
_BY_A_LINK: Final = Intent.DIRECT.value
_DEPLOYING: Final = "deploying"


def backend(node: NodeTrace) -> Iterator[Finding]:
    """Services are reached by a node, never by a peer (I-R1)."""
    for record in node.records:
        if _is_done(record) and is_backend(record.to or "") and is_p2p_end(record.result or ""):
            yield node.finding("I-R1", record, "a node's stub")


def live_only(node: NodeTrace) -> Iterator[Finding]:
    """A direct link is a way only while it is live (I-R2): by its row, or by its own steps.

    The row may be told a little later than the step that it is written for.
    """
    links = Rows("p2p")
    ends: dict[str, str | None] = {}
    for record in node.records:
        if record.is_step and record.machine == LINK_MACHINE:
            ends[split(record.key)[-1]] = record.new
        elif not links.take(record) and _is_done(record) and is_p2p_end(record.result or ""):
            end = record.result or ""
            is_known = ends.get(end) == LIVE or any(_is_live(row, end) for _, row in links.all())
            if not is_known and not is_backend(record.to or ""):
                yield node.finding("I-R2", record, f"{end} to be live")


def _is_live(row: list[str], url: str) -> bool:
    return row[:2] == [LIVE, url]


def preference(node: NodeTrace) -> Iterator[Finding]:
    """What is bound to a live link goes by it, if the sender does not want the node (I-R3)."""
    links = Rows("p2p")
    for record in node.records:
        if links.take(record) or not _is_done(record) or record.kind not in _BY_ANY_WAY:
            continue
        entity = entity_of(record.to or "")
        lives = [row[1] for _, row in links.all() if row[0] == LIVE and entity in row[2:]]
        if lives and record.result not in lives:
            yield node.finding("I-R3", record, f"the way by {lives[0]}")


def set_up_goes_on(node: NodeTrace) -> Iterator[Finding]:
    """While a link is not live, messages go by the node that is there (I-R4).

    But for those whose sender wants the link or nothing, and goes by the node itself else.
    """
    links, stubs = Rows("p2p"), Rows("stubs")
    for record in node.records:
        if links.take(record) or stubs.take(record) or not _is_done(record) or record.result:
            continue
        if record.kind == _BY_A_LINK:
            continue
        to = record.to or ""
        is_near = stubs.words(domain_of(to))[1:] == [LIVE]
        bound = [row for _, row in links.all() if entity_of(to) in row[2:]]
        if is_near and any(row[0] != LIVE for row in bound):
            yield node.finding("I-R4", record, "the way by the node")


def right_node_stub(node: NodeTrace) -> Iterator[Finding]:
    """The stub chosen leads to the target's domain, or to the own (I-R5)."""
    home: dict[str, str] = {}
    for record in node.records:
        if record.k == Kind.TABLE and record.table == "stubs" and record.op != Op.DEL:
            home[(record.val or "").partition(" ")[0]] = record.key or ""
        elif _is_done(record) and record.result in home and node.home is not None:
            domain = home[record.result]
            if domain not in {domain_of(record.to or ""), domain_of(node.home)}:
                yield node.finding("I-R5", record, f"a stub for {domain_of(record.to or '')}")


def single_flight(node: NodeTrace) -> Iterator[Finding]:
    """For one domain no second stub is deployed while the first still is (I-R6)."""
    flying: dict[str, str] = {}
    stubs = Rows("stubs")
    for record in node.records:
        domain, before = record.key or "", stubs.words(record.key or "")
        if record.is_step and record.machine == "stub_deployment":
            flying[domain] = record.new or ""
        elif stubs.take(record):
            after = stubs.words(domain)
            is_other = bool(before and after) and before[0] != after[0]
            if is_other and flying.get(before[0]) == _DEPLOYING:
                yield node.finding("I-R6", record, f"{before[0]} to be deployed first")


def termination(node: NodeTrace) -> Iterator[Finding]:
    """Who looks for a way finds one, or that there is none, in time (I-R7)."""
    looking: dict[str, TraceLine] = {}
    for record in node.records:
        if record.k == Kind.RESOLVE and record.op == Op.BEGIN:
            looking.setdefault(record.to or "", record)
        elif _is_done(record):
            looking.pop(record.to or "", None)
    for begun in looking.values():
        if node.is_over_since(begun.t + REPLY_TIMEOUT + SLACK):
            yield node.finding("I-R7", begun, f"an end within {REPLY_TIMEOUT:g} s")


def fallback_keeps(node: NodeTrace) -> Iterator[Finding]:
    """What could not go by a link goes by the node, once for each time it is asked for (I-R9).

    What is said to all who follow an object goes by the node and by links, so each of those
    links may have the node carry it once more.
    """
    sent: dict[str | None, Counter[tuple[str | None, ...]]] = {}
    branches: dict[str | None, set[str]] = {}
    for record in node.messages:
        mid, one = record.mid, (record.listener or "").removeprefix("minibus:")
        if record.op == Op.SUBMIT:
            sent.pop(mid, None)
            branches.pop(mid, None)
        elif record.op == Op.DELIVER and is_p2p_end(one) and is_shared(record.to or ""):
            branches.setdefault(mid, set()).add(one)
        elif _is_asked_of_node(record):
            way = (record.stub, record.link, record.to)
            ways = sent.setdefault(mid, Counter())
            ways[way] += 1
            if ways[way] > 1 + len(branches.get(mid, ())):
                yield node.finding("I-R9", record, "it to be sent once over one link")


def _is_asked_of_node(record: TraceLine) -> bool:
    """Say whether a stub sends what is no answer; who asks again is answered again."""
    is_sent = record.op == Op.XMIT and record.seq is not None and not is_answer(record)
    return is_sent and not is_p2p_end(record.stub or "")


def _is_done(record: TraceLine) -> bool:
    return record.k == Kind.RESOLVE and record.op == Op.DONE
