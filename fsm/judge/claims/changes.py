"""Judges of what registries tell each other over a link (I-C1, I-C5)."""

from collections.abc import Iterator
from typing import Final

from fsm.judge.claims.finding import Finding
from fsm.judge.claims.rows import Rows
from fsm.judge.claims.told import BUS, LISTENERS, SLACK, Key, NodeTrace, is_final, key_of
from fsm.judge.trace_line import TraceLine
from specs.addresses.address import last_segment
from specs.reply_code import LAST_SUCCESS
from specs.trace import Kind, Op

__all__ = ["torn_down", "window"]

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
