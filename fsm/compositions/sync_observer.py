"""What the observer's end does: `fsm.sync.copy`."""

from collections.abc import Iterator
from typing import Final

from fsm.compositions.sync_terms import (
    ASKS,
    CHANGES,
    EARLY,
    INVITES,
    LEAVE,
    OBSERVE,
    TOLD,
    VERSIONS,
)
from fsm.machines.observer_copy import Condition, Trigger
from fsm.product.rule import (
    Act,
    Move,
    Rule,
    Send,
    act,
    after,
    begin,
    got,
    ignore,
    in_time,
    move,
    rules,
    send,
    wished,
)

__all__ = ["observer_rules"]

_THERE: Final = {"copy": "syncing|live|stale"}
_NOT_THERE: Final = {"copy": "[*]|deleted"}
_OVER: Final = ignore(_NOT_THERE, "there is no copy any more")
_READ: Final = send(ASKS, "read")
_CHANGED: Final = move("copy", Trigger.CHANGED)
_NOTHING: Final = {"kept": "nothing"}


def observer_rules() -> Iterator[Rule]:
    """All rules of the observer's end."""
    begins = act({"copy": "[*]"}, begin("copy", Trigger.OBSERVE), send(ASKS, "subscribe"))
    yield from rules(wished(OBSERVE), (begins,), "SYN-06, SYN-10")
    for version in VERSIONS:
        for answer in ("granted", "value"):
            synced = (*_snapshot(version), _OVER)
            yield from rules(got(TOLD, f"{answer} {version}"), synced, "SYN-12, SYN-17")
    for version in VERSIONS[1:]:
        yield from rules(got(CHANGES, f"changed {version}"), (*_change(version), _OVER), "SYN-16")
    again = act({"copy": "stale", ASKS: "empty"}, move("copy", Trigger.READ_FAILED), _READ)
    yield from rules(after("copy", Trigger.READ_FAILED), (again,), "SYN-17")
    quiet = act({"copy": "live", "object": "deleted", ASKS: "empty", CHANGES: "empty"}, _READ)
    yield from rules(in_time("a copy that hears nothing reads"), (quiet,), "I-D4")
    yield from _invited()
    yield from _ended()


def _invited() -> Iterator[Rule]:
    answers = (
        act({}, send(ASKS, "accepted")),
        act({}, send(ASKS, "declined")),
        act({}, send(ASKS, "trying"), send(ASKS, "accepted")),
    )
    yield from rules(got(INVITES, "invite"), answers, "SYN-05")


def _ended() -> Iterator[Rule]:
    given_up = move("copy", Trigger.GIVEN_UP)
    leaves = act(_THERE, given_up, send(ASKS, "unsubscribe"), sets=_NOTHING)
    yield from rules(wished(LEAVE), (leaves,), "SYN-20")
    silent = act({"copy": "syncing"}, given_up, send(ASKS, "unsubscribe"), sets=_NOTHING)
    yield from rules(after("copy", Trigger.GIVEN_UP), (silent,), "SYN-10")
    denied = (
        act({"copy": "syncing"}, given_up, sets=_NOTHING),
        ignore({"copy": "not syncing"}, "the subscription was answered already"),
    )
    yield from rules(got(TOLD, "denied"), denied, "SYN-11")
    unreadable = (
        act({"copy": "live|stale"}, given_up, sets=_NOTHING),
        ignore({"copy": "not live|stale"}, "there is no copy that could have read"),
    )
    yield from rules(got(TOLD, "unreadable"), unreadable, "SYN-19")
    deleted = act(_THERE, move("copy", Trigger.DELETED), sets=_NOTHING)
    yield from rules(got(CHANGES, "deleted"), (deleted, _OVER), "SYN-22")


# --- versions -----------------------------------------------------------------------------


def _change(version: str) -> Iterator[Act]:
    """A change: applied, passed over, or kept because something is missing before it."""
    new = int(version)
    for have in range(len(VERSIONS) + 1):
        at = {"have": str(have)}
        for kept in EARLY:
            waits = {**at, "kept": kept, "copy": "syncing|stale"}
            yield act(waits, _CHANGED, sets={"kept": _with(kept, version) if new > have else kept})
        yield _taken({**at, "copy": "live"}, have, new)


def _taken(when: dict[str, str], have: int, new: int) -> Act:
    if new > have + 1:
        return act(when, _gap(), _READ, sets={"kept": str(new)})
    return act(when, _CHANGED, sets={"have": str(max(have, new))})


def _gap() -> Move:
    return move("copy", Trigger.CHANGED, Condition.GAP)


def _snapshot(version: str) -> Iterator[Act]:
    """The whole object: then what was kept, of which something may be missing again."""
    for have in range(len(VERSIONS) + 1):
        for kept in EARLY:
            when = {**_THERE, "have": str(have), "kept": kept}
            now = max(have, int(version))
            newer = [int(one) for one in VERSIONS if one in kept and int(one) > now]
            does, reached = _applied(now, newer)
            left = [one for one in newer if one > reached]
            sets = {"have": str(reached), "kept": "".join(map(str, left)) or "nothing"}
            yield act(when, move("copy", Trigger.SNAPSHOT), *does, sets=sets)


def _applied(have: int, newer: list[int]) -> tuple[list[Move | Send], int]:
    """What is done with kept changes, and the version reached."""
    does: list[Move | Send] = []
    is_stale = False
    for one in newer:
        is_gap = one > have + 1 and not is_stale
        does += [_gap(), _READ] if is_gap else [_CHANGED]
        is_stale = is_stale or is_gap
        have = have if is_stale else one
    return does, have


def _with(kept: str, version: str) -> str:
    return "".join(sorted({*kept.replace("nothing", ""), version}))
