"""The rules of a registry's entry for the other runtime (`fsm.cores.link_table`)."""

from collections.abc import Iterator
from typing import Final

from fsm.compositions.p2p_scene import NO, NONE, YES, End, Scene
from fsm.machines.p2p_entry import Condition, State, Trigger
from fsm.product.compiled import target_of
from fsm.product.rule import (
    Act,
    Rule,
    act,
    begin,
    chain,
    got,
    happens,
    ignore,
    in_time,
    move,
    rules,
    send,
    wished,
)
from specs.trace import ABSENT

__all__ = ["registry_rules"]

_NO_ENTRY: Final = f"{ABSENT}|{State.REMOVED}"
_IS_PENDING: Final = "pending"
_ANEW: Final = "negotiated anew"
_AWAY: Final = f"disconnected|{_ANEW}"


def registry_rules(scene: Scene, own: str) -> Iterator[Rule]:
    """All rules of one runtime's registry."""
    for end in scene.requesters(own):
        yield from _plans(scene, end)
        yield from _retries(scene, end)
        came = got(end.up, f"{end.name} is not there")
        yield from rules(came, _ended(scene, end), "M-11 410, I-P19")
    for end in scene.handlers(own):
        yield from _handles(scene, end)
    for end in scene.ends(own):
        yield from _status(scene, end)
    yield from rules(wished(f"{own} goes"), _goes(scene, own), "M-12, t9")


class _Entry:
    """The names of what an entry is made of."""

    def __init__(self, own: str) -> None:
        self.part = f"{own} entry"
        self.of = f"{own} entry of"
        self.says = f"{own} entry says"
        self.tries = f"{own} tries"
        self.listens = f"{own} listens"
        self.gone = f"{own} is gone"

    def empty(self) -> dict[str, str]:
        return {self.of: NONE, self.says: "pending", self.tries: "0", self.listens: NO}


# --- the requester's side -----------------------------------------------------------------


def _plans(scene: Scene, end: End) -> Iterator[Rule]:
    """One entry, one set-up; the requester is deployed when its path is set."""
    entry, plan = _Entry(end.own), end.var("plan")
    older = {
        one.var("plan"): "done" for one in scene.requesters(end.own) if one.number < end.number
    }
    none = {entry.gone: NO, entry.part: _NO_ENTRY, plan: "none", **older}
    sets = {**entry.empty(), entry.of: end.name, plan: "path"}
    begins = act(none, begin(entry.part, Trigger.PLANNED), sets=sets)
    yield from rules(wished(f"{end.own} asks for the other"), [begins], "RES-07, RES-08, I-P7")
    has_path = [
        act({plan: "path", entry.of: end.name}, sets={plan: "loading"}),
        act({plan: "path", entry.of: f"not {end.name}"}, sets={plan: "done"}),
    ]
    yield from rules(happens(f"path of {end.name} is set"), has_path, "M-03, P2P-05, I-P10")


def _retries(scene: Scene, end: End) -> Iterator[Rule]:
    entry = _Entry(end.own)
    away = act({entry.of: end.name, entry.says: "disconnected"})
    again = chain([away], _reconnects(scene, end))
    yield from rules(in_time(f"{end.own} registry tries again"), again, "P2P-16, STB-09")


def _reconnects(scene: Scene, end: End) -> Iterator[Act]:
    entry = _Entry(end.own)
    for tries in range(scene.tries):
        connect = send(end.down, f"{end.name} shall connect")
        yield act({entry.tries: str(tries)}, connect, sets={entry.tries: str(tries + 1)})
    yield from chain([act({entry.tries: str(scene.tries)})], [_removed(end)])


def _removed(end: End) -> Act:
    """Remove the entry with all that belongs to it (P2P-28)."""
    entry = _Entry(end.own)
    ends = move(entry.part, Trigger.ENDED)
    if end.is_requester:
        undeploy = send(end.down, f"{end.name} shall disconnect")
        return act({entry.of: end.name}, ends, undeploy, sets=entry.empty())
    return act({entry.of: end.name}, ends, sets=entry.empty())


def _ended(scene: Scene, end: End) -> Iterator[Act]:
    entry = _Entry(end.own)
    del scene
    yield _removed(end)
    yield ignore({entry.of: f"not {end.name}"}, "the entry is of another link, or gone")


# --- the handler's side -------------------------------------------------------------------


def _handles(scene: Scene, end: End) -> Iterator[Rule]:
    entry, own = _Entry(end.own), end.own
    yield from rules(got(end.up, f"{end.name} is over"), _ended(scene, end), "I-P19")
    others = "|".join([NONE, *(one.name for one in scene.handlers(own))])
    none = send(end.down, f"{end.name} is told of no own request")
    has_own = send(end.down, f"{end.name} is told of an own request")
    rows = [act({entry.of: others}, none), act({entry.of: f"not {others}"}, has_own)]
    yield from rules(got(end.up, f"{end.name} asks for the row"), rows, "P2P-18")
    stands = [
        *chain([act({entry.of: end.name, entry.says: _AWAY}, sets={entry.listens: YES})]),
        *chain([act({entry.says: f"not {_AWAY}"}, sets={entry.listens: YES})], _goes_live(end)),
        ignore({entry.of: f"not {end.name}"}, "the entry is of another link, or gone"),
    ]
    yield from rules(got(end.up, f"{end.name} has listeners"), stands, "I-P17, I-P18, SC-17")
    told = send(end.down, f"{own} hnd shall disconnect")
    refused = [
        *chain([act({}, told)], [_removed(end)]),
        ignore({entry.of: f"not {end.name}"}, "the entry is of another link, or gone"),
    ]
    yield from rules(got(end.up, f"{end.name} has no listeners"), refused, "I-P18")
    away = act({entry.of: end.name, entry.says: "disconnected"}, told)
    waits = in_time(f"{own} registry waits no longer for {end.name}")
    yield from rules(waits, chain([away], [_removed(end)]), "T_gc, P2P-28")


def _invited(scene: Scene, end: End) -> Iterator[Act]:
    """A new link asks for the entry's place: what is there gives way or wins, by its table."""
    entry = _Entry(end.own)
    new = act(
        {},
        begin(entry.part, Trigger.INVITED),
        sets={**entry.empty(), entry.of: end.name},
    )
    yield from chain([act({entry.gone: NO, entry.part: _NO_ENTRY})], [new])
    for rival in scene.ends(end.own):
        if rival == end:
            continue
        for says in (_IS_PENDING, f"not {_IS_PENDING}"):
            for state in (State.PLACEHOLDER, State.BOUND):
                is_so = {entry.of: rival.name, entry.says: says, entry.part: state}
                yield from chain([act(is_so)], _contested(scene, end, rival, (says, state)))


def _contested(scene: Scene, end: End, rival: End, at: tuple[str, State]) -> Iterator[Act]:
    says, state = at
    entry = _Entry(end.own)
    given = {Condition.OWN_SMALLER} if end.own == scene.runtimes[0] else set[Condition]()
    if rival.is_requester and says == _IS_PENDING:
        given |= {Condition.OWN_REQUEST}
    step = move(entry.part, Trigger.INVITED, *given)
    if target_of(scene.tables["p2p_entry"], state, Trigger.INVITED, given) != State.REMOVED:
        # The handler is told so when it asks for the row.
        yield act({}, step)
        return
    replaced = act({}, step)
    if rival.is_requester:
        replaced = act({}, step, send(rival.down, f"{rival.name} shall disconnect"))
    begins = begin(entry.part, Trigger.INVITED)
    yield from chain([replaced], [act({}, begins, sets={**entry.empty(), entry.of: end.name})])


# --- status events ------------------------------------------------------------------------


def _status(scene: Scene, end: End) -> Iterator[Rule]:
    entry = _Entry(end.own)
    mine, stray = {entry.of: end.name}, {entry.of: f"not {end.name}"}
    other = ignore(stray, "the entry is of another link, or gone")
    begun = [
        ignore(mine, "the entry was written before"),
        ignore({entry.gone: YES}, "the registry takes no entries any more"),
    ]
    if end.is_requester:
        # Its entry was given to another link while it was being deployed.
        late = send(end.down, f"{end.name} shall disconnect")
        begun.append(act({**stray, entry.gone: NO}, late))
        goes_on = [other]
        ends = [
            act({**stray, entry.gone: NO}, late),
            ignore({**stray, entry.gone: YES}, "the registry takes no entries any more"),
        ]
    else:
        begun += _invited(scene, end)
        goes_on = [*_without_entry(end)]
        ends = [other]
    for state, acts in {
        "created": begun,
        "in-progress": [
            ignore({**mine, entry.says: "pending|live"}, "its row says so"),
            act({**mine, entry.says: _AWAY}, sets={entry.says: _ANEW}),
            *goes_on,
        ],
        "live": [*_live(scene, end), *goes_on],
        "disconnected": [*_disconnected(scene, end), *ends],
        # Who failed is over: that its stub is removed is no news to it.
        "failed": [_removed(end), other],
    }.items():
        yield from rules(got(end.up, f"{end.name} is {state}"), acts, "M-06, M-07, C-19")


def _without_entry(end: End) -> Iterator[Act]:
    """It was refused by its row, and accepted because that has gone since."""
    entry = _Entry(end.own)
    none = {entry.of: NONE, entry.gone: NO}
    yield act(none, send(end.down, f"{end.own} hnd shall disconnect"))
    yield ignore({entry.of: NONE, entry.gone: YES}, "the registry takes no entries any more")
    yield ignore({entry.of: f"not {NONE}|{end.name}"}, "the entry is of another link")


def _live(scene: Scene, end: End) -> Iterator[Act]:
    entry = _Entry(end.own)
    if end.is_requester or scene.is_brief:
        yield from _goes_live(end)
        return
    listen = send(end.down, f"{end.name} shall listen")
    waits = {entry.of: end.name, entry.listens: NO}
    yield act(waits, listen, sets={entry.says: "pending"})
    yield from chain([act({entry.listens: YES})], _goes_live(end))


def _goes_live(end: End) -> Iterator[Act]:
    entry = _Entry(end.own)
    sets = {entry.says: "live", entry.tries: "0"}
    mine, bound = {entry.of: end.name}, {entry.part: State.BOUND}
    yield act({**mine, entry.part: State.PLACEHOLDER}, move(entry.part, Trigger.LIVE), sets=sets)
    away = {**mine, **bound, entry.says: "not live"}
    yield act(away, move(entry.part, Trigger.RESTORED), sets=sets)
    yield act({**mine, **bound, entry.says: "live"}, sets=sets)


def _disconnected(scene: Scene, end: End) -> list[Act]:
    entry = _Entry(end.own)
    mine, sets = {entry.of: end.name}, {entry.says: "disconnected"}
    routed = {entry.part: State.BOUND, entry.says: "live"}
    kept = [
        act({**mine, **routed}, move(entry.part, Trigger.LOST), sets=sets),
        act({**mine, entry.part: State.PLACEHOLDER}, sets=sets),
        act({**mine, entry.part: State.BOUND, entry.says: "not live"}, sets=sets),
    ]
    return chain(kept, _reconnects(scene, end)) if end.is_requester else kept


# --- the end ------------------------------------------------------------------------------


def _goes(scene: Scene, own: str) -> list[Act]:
    """The runtime goes: it takes no links any more and ends those it has."""
    entry = _Entry(own)
    gone = {**entry.empty(), entry.gone: YES}
    left = [
        act({entry.gone: NO, entry.part: _NO_ENTRY}, sets=gone),
        act(
            {entry.gone: NO, entry.part: f"not {_NO_ENTRY}"},
            move(entry.part, Trigger.ENDED),
            sets=gone,
        ),
    ]
    for end in scene.requesters(own):
        plan, told = end.var("plan"), send(end.down, f"{end.name} shall disconnect")
        stops = [
            act({plan: "none"}),
            act({plan: "path|loading"}, sets={plan: "done"}),
            act({plan: "done"}, told),
        ]
        left = chain(left, stops)
    if scene.handlers(own):
        down = scene.handlers(own)[0].down
        left = chain(left, [act({}, send(down, f"{own} hnd shall disconnect"))])
    return left
