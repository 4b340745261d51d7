"""The rules of a registry's entry for the other runtime (`fsm.registry.resolve.link_table`)."""

from collections.abc import Iterator
from typing import Final

from fsm.compositions.p2p_scene import NO, NONE, YES, End, Scene
from fsm.machines.p2p_connection import State
from fsm.machines.p2p_entry import Condition, Trigger
from fsm.machines.p2p_entry import State as State_
from fsm.product.compiled import target_of
from fsm.product.condition import Case
from fsm.product.rule import (
    Act,
    Rule,
    Send,
    act,
    after,
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

_NO_ENTRY: Final = f"{ABSENT}|{State_.REMOVED}"
_NO_REQUEST: Final = "no own request"
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
    yield from _too_late(own)
    yield from rules(wished(f"{own} goes"), _goes(scene, own), "M-12, t9")


class _Entry:
    """The names of what an entry is made of."""

    def __init__(self, own: str) -> None:
        self.part = f"{own} entry"
        self.of = f"{own} entry of"
        self.says = f"{own} entry says"
        self.tries = f"{own} tries"
        self.listens = f"{own} listens"
        self.beside = f"{own} entry beside"
        self.holds = f"{own} holds the row"
        self.gone = f"{own} is gone"

    def empty(self) -> dict[str, str]:
        return {
            self.of: NONE,
            self.says: "pending",
            self.tries: "0",
            self.listens: NO,
            self.beside: NONE,
        }


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
    yield from chain([act({entry.tries: str(scene.tries)})], _removed(scene, end))


def _removed(scene: Scene, end: End) -> Iterator[Act]:
    """Remove the entry with all that belongs to it (P2P-28), or go on with the link beside."""
    entry = _Entry(end.own)
    mine = {entry.of: end.name, entry.beside: NONE}
    ends, undeploys = move(entry.part, Trigger.ENDED), list[Send]()
    if end.is_requester:
        undeploys = [send(end.down, f"{end.name} shall disconnect")]
    yield act(mine, ends, *undeploys, sets=entry.empty())
    if end.is_requester:
        for new in scene.handlers(end.own):
            begins = begin(entry.part, Trigger.INVITED)
            after = {**entry.empty(), entry.of: new.name}
            yield act({**mine, entry.beside: new.name}, ends, *undeploys, begins, sets=after)
        return
    for own in scene.requesters(end.own):
        yield from chain([act({**mine, entry.beside: own.name})], _resumed(scene, own))


def _resumed(scene: Scene, own: End) -> list[Act]:
    """The link that our own request yields to has failed."""
    entry, known = _Entry(own.own), own.var("is known")
    goes_on = act({}, move(entry.part, Trigger.RESUMED), sets={**entry.empty(), entry.of: own.name})
    told = [
        act({known: YES}, send(own.down, f"{own.name} shall resume")),
        act({known: NO}, sets={own.var("yields due"): "0"}),
    ]
    return chain([goes_on], told, _released(scene, own.own, "an own request"))


def _released(scene: Scene, own: str, row: str) -> Iterator[Act]:
    """Answer the handler that waits for the row, if it does."""
    holds = _Entry(own).holds
    yield act({holds: NONE})
    for end in scene.handlers(own):
        yield act(
            {holds: end.name}, send(end.down, f"{end.name} is told of {row}"), sets={holds: NONE}
        )


def _too_late(own: str) -> tuple[Rule, ...]:
    """What its stubs never let come: they tell, and their own deadlines are shorter."""
    entry = _Entry(own)
    never = act({entry.gone: YES, entry.of: f"not {NONE}"}, move(entry.part, Trigger.ENDED))
    return rules(after(entry.part, Trigger.ENDED), [never], "C-16, P2P-14")


def _ended(scene: Scene, end: End) -> Iterator[Act]:
    yield from _removed(scene, end)
    yield from _beside_ended(scene, end)
    yield _other(end)


def _beside_ended(scene: Scene, end: End) -> list[Act]:
    """The link beside the entry's has ended."""
    entry = _Entry(end.own)
    gone = act({entry.beside: end.name}, sets={entry.beside: NONE})
    if not end.is_requester:
        return [gone]
    none_due = act({}, sets={end.var("yields due"): "0"})
    return chain([gone], [none_due], _released(scene, end.own, _NO_REQUEST))


def _other(end: End) -> Act:
    entry = _Entry(end.own)
    stray = {entry.of: f"not {end.name}", entry.beside: f"not {end.name}"}
    return ignore(stray, "the entry is of another link, or gone")


# --- the handler's side -------------------------------------------------------------------


def _handles(scene: Scene, end: End) -> Iterator[Rule]:
    entry, own = _Entry(end.own), end.own
    yield from rules(got(end.up, f"{end.name} is over"), _ended(scene, end), "I-P19")
    asks = got(end.up, f"{end.name} asks for the row")
    yield from rules(asks, _row_asked(scene, end), "P2P-18, P2P-27")
    stands = [
        *chain([act({entry.of: end.name, entry.says: _AWAY}, sets={entry.listens: YES})]),
        *chain(
            [act({entry.says: f"not {_AWAY}"}, sets={entry.listens: YES})], _goes_live(scene, end)
        ),
        *_takes_over(scene, end),
        _other(end),
    ]
    yield from rules(got(end.up, f"{end.name} has listeners"), stands, "I-P17, I-P18, SC-17")
    told = send(end.down, f"{end.name} shall disconnect")
    refused = [
        *chain([act({}, told)], [*_removed(scene, end), *_beside_ended(scene, end)]),
        _other(end),
    ]
    yield from rules(got(end.up, f"{end.name} has no listeners"), refused, "I-P18")
    away = act({entry.of: end.name, entry.says: "disconnected"}, told)
    waits = in_time(f"{own} registry waits no longer for {end.name}")
    yield from rules(waits, chain([away], _removed(scene, end)), "T_gc, P2P-28")


def _row_asked(scene: Scene, end: End) -> Iterator[Act]:
    """The row is of the handler's link, or of our own request; or it is not decided yet."""
    entry = _Entry(end.own)
    none = send(end.down, f"{end.name} is told of {_NO_REQUEST}")
    has_own = send(end.down, f"{end.name} is told of an own request")
    handlers = "|".join(one.name for one in scene.handlers(end.own))
    yield act({entry.of: f"{NONE}|{handlers}", entry.beside: f"{NONE}|{handlers}"}, none)
    yield act({entry.of: f"not {NONE}|{handlers}", entry.beside: NONE}, has_own)
    yield act({entry.of: f"not {NONE}|{handlers}", entry.beside: f"not {NONE}"}, none)
    for own in scene.requesters(end.own):
        yields, due = {entry.of: handlers, entry.beside: own.name}, own.var("yields due")
        yield act({**yields, due: "0"}, none)
        yield act({**yields, due: "not 0"}, sets={entry.holds: end.name})


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
        for says in (_IS_PENDING, State.LIVE, _AWAY):
            for state in (State_.PLACEHOLDER, State_.BOUND):
                is_so = {entry.of: rival.name, entry.says: says, entry.part: state}
                is_so[entry.beside] = NONE
                yield from chain([act(is_so)], _contested(scene, end, rival, (says, state)))


def _contested(scene: Scene, end: End, rival: End, at: tuple[str, State_]) -> list[Act]:
    says, state = at
    entry = _Entry(end.own)
    given = {Condition.OWN_SMALLER} if end.own == scene.runtimes[0] else set[Condition]()
    if rival.is_requester and says == _IS_PENDING:
        given |= {Condition.OWN_REQUEST}
    if says == State.LIVE:
        given |= {Condition.LINK_LIVE}
    step = act({}, move(entry.part, Trigger.INVITED, *given))
    takes = {**entry.empty(), entry.of: end.name}
    match target_of(scene.tables["p2p_entry"], state, Trigger.INVITED, given):
        case State_.PLACEHOLDER:
            # The handler is told so when it asks for the row.
            return [step]
        case State_.BOUND:
            return chain([step], [act({}, sets={entry.beside: end.name})])
        case State_.YIELDING:
            return chain([step], [act({}, sets=takes)], _yields(scene, rival))
        case _:
            ends = [send(rival.down, f"{rival.name} shall disconnect")] * rival.is_requester
            begins = begin(entry.part, Trigger.INVITED)
            return chain([step], [act({}, *ends)], [act({}, begins, sets=takes)])


def _yields(scene: Scene, own: End) -> Iterator[Act]:
    """Our own request waits beside; one that is not being deployed yet never will be."""
    entry, plan, known = _Entry(own.own), own.var("plan"), own.var("is known")
    yield act({plan: "path"})
    due, most = own.var("yields due"), len(scene.handlers(own.own))
    for count in range(most):
        waits = act({plan: "not path", due: str(count)}, sets={entry.beside: own.name})
        more = act({}, sets={due: str(count + 1)})
        order = send(own.down, f"{own.name} shall yield")
        yield from chain([waits], [more], [act({known: YES}, order), act({known: NO})])


# --- status events ------------------------------------------------------------------------


def _status(scene: Scene, end: End) -> Iterator[Rule]:
    told = _of_requester(scene, end) if end.is_requester else _of_handler(scene, end)
    for state, acts in told.items():
        yield from rules(got(end.up, f"{end.name} is {state}"), acts, "M-06, M-07, C-19")


def _of_requester(scene: Scene, end: End) -> dict[str, list[Act]]:
    entry, known = _Entry(end.own), end.var("is known")
    mine, beside = {entry.of: end.name}, {entry.beside: end.name}
    stray = {entry.of: f"not {end.name}", entry.beside: f"not {end.name}"}
    other, order = _other(end), send(end.down, f"{end.name} shall yield")
    # Its entry was given to another link while it was being deployed.
    late = send(end.down, f"{end.name} shall disconnect")
    begun = [
        act(mine, sets={known: YES}),
        act(beside, order, sets={known: YES}),
        act({**stray, entry.gone: NO}, late),
        ignore({entry.gone: YES}, "the registry takes no entries any more"),
    ]
    waits = ignore({**beside, known: YES}, "it yields")
    return {
        "created": begun,
        "in-progress": [*_in_progress(end), waits, other],
        "yielding": [*_is_yielding(scene, end), other],
        "live": [*_live(scene, end), *_swapped(scene, end), other],
        "disconnected": [
            *_disconnected(scene, end),
            act({**stray, entry.gone: NO}, late),
            ignore({**stray, entry.gone: YES}, "the registry takes no entries any more"),
        ],
        # Who failed is over: that its stub is removed is no news to it.
        "failed": [*_removed(scene, end), *_beside_ended(scene, end), other],
    }


def _of_handler(scene: Scene, end: End) -> dict[str, list[Act]]:
    entry = _Entry(end.own)
    mine, beside = {entry.of: end.name}, {entry.beside: end.name}
    begun = [
        ignore(mine, "the entry was written before"),
        ignore({entry.gone: YES}, "the registry takes no entries any more"),
        *_invited(scene, end),
    ]
    told = send(end.down, f"{end.name} shall disconnect")
    waits = ignore(beside, "the link that is there stays until this one is live")
    return {
        "created": begun,
        "in-progress": [*_in_progress(end), waits, *_without_entry(end)],
        "live": [*_live(scene, end), *_beside_live(scene, end), *_without_entry(end)],
        "disconnected": [
            *_disconnected(scene, end),
            act(beside, told, sets={entry.beside: NONE}),
            _other(end),
        ],
        "failed": [*_removed(scene, end), *_beside_ended(scene, end), _other(end)],
    }


def _in_progress(end: End) -> list[Act]:
    entry = _Entry(end.own)
    mine = {entry.of: end.name}
    return [
        ignore({**mine, entry.says: "pending|live"}, "its row says so"),
        act({**mine, entry.says: _AWAY}, sets={entry.says: _ANEW}),
    ]


def _is_yielding(scene: Scene, end: End) -> Iterator[Act]:
    """It has followed an order; with the last of them the handler may accept."""
    entry, due = _Entry(end.own), end.var("yields due")
    for count in range(len(scene.handlers(end.own))):
        less = act({due: str(count + 1)}, sets={due: str(count)})
        yield from chain([act({entry.of: end.name})], [less])
        released = [act({})] if count else _released(scene, end.own, _NO_REQUEST)
        yield from chain([act({entry.beside: end.name})], [less], released)


def _swapped(scene: Scene, end: End) -> Iterator[Act]:
    """It was live before it was told to yield: the other link may take its place."""
    entry = _Entry(end.own)
    live = {**entry.empty(), entry.of: end.name, entry.says: "live", end.var("yields due"): "0"}
    for new in scene.handlers(end.own):
        was = {entry.beside: end.name, entry.of: new.name}
        taken = act(was, move(entry.part, Trigger.LIVE), sets={**live, entry.beside: new.name})
        yield from chain([taken], _released(scene, end.own, _NO_REQUEST))


def _beside_live(scene: Scene, end: End) -> Iterator[Act]:
    if scene.is_brief:
        yield from _takes_over(scene, end)
    else:
        yield act({_Entry(end.own).beside: end.name}, send(end.down, f"{end.name} shall listen"))


def _takes_over(scene: Scene, end: End) -> Iterator[Act]:
    """The new link is live: now the one that was there goes."""
    entry = _Entry(end.own)
    sets = {**entry.empty(), entry.of: end.name, entry.says: "live", entry.listens: YES}
    for old in scene.requesters(end.own):
        goes = send(old.down, f"{old.name} shall disconnect")
        was = {entry.beside: end.name, entry.of: old.name}
        yield act(was, move(entry.part, Trigger.REPLACED), goes, sets=sets)


def _without_entry(end: End) -> Iterator[Act]:
    """It was refused by its row, and accepted because that has gone since."""
    entry = _Entry(end.own)
    none = {entry.of: NONE, entry.gone: NO}
    yield act(none, send(end.down, f"{end.name} shall disconnect"))
    yield ignore({entry.of: NONE, entry.gone: YES}, "the registry takes no entries any more")
    others = {entry.of: f"not {NONE}|{end.name}", entry.beside: f"not {end.name}"}
    yield ignore(others, "the entry is of another link")


def _live(scene: Scene, end: End) -> Iterator[Act]:
    entry = _Entry(end.own)
    if end.is_requester or scene.is_brief:
        yield from _goes_live(scene, end)
        return
    listen = send(end.down, f"{end.name} shall listen")
    waits = {entry.of: end.name, entry.listens: NO}
    yield act(waits, listen, sets={entry.says: "pending"})
    yield from chain([act({entry.listens: YES})], _goes_live(scene, end))


def _goes_live(scene: Scene, end: End) -> Iterator[Act]:
    entry = _Entry(end.own)
    sets = {entry.says: "live", entry.tries: "0"}
    mine, bound = {entry.of: end.name}, {entry.part: State_.BOUND}
    first = move(entry.part, Trigger.LIVE)
    for state in (State_.PLACEHOLDER, State_.YIELDING):
        alone = {**mine, entry.part: state, entry.beside: NONE}
        yield act(alone, first, sets=sets)
    for own in scene.requesters(end.own):
        # It has lost the simultaneous open for good.
        lost = {**mine, entry.part: State_.YIELDING, entry.beside: own.name}
        after = {**sets, entry.beside: NONE, own.var("yields due"): "0"}
        yield act(lost, first, send(own.down, f"{own.name} shall disconnect"), sets=after)
    away = {**mine, **bound, entry.says: "not live"}
    yield act(away, move(entry.part, Trigger.RESTORED), sets=sets)
    yield act({**mine, **bound, entry.says: "live"}, sets=sets)


def _disconnected(scene: Scene, end: End) -> list[Act]:
    entry = _Entry(end.own)
    mine, sets = {entry.of: end.name}, {entry.says: "disconnected"}
    stays = {entry.beside: NONE} if end.is_requester else {}
    routed = {entry.part: State_.BOUND, entry.says: "live"}
    not_bound = {entry.part: f"{State_.PLACEHOLDER}|{State_.YIELDING}"}
    kept = [
        act({**mine, **stays, **routed}, move(entry.part, Trigger.LOST), sets=sets),
        act({**mine, **stays, **not_bound}, sets=sets),
        act({**mine, **stays, entry.part: State_.BOUND, entry.says: "not live"}, sets=sets),
    ]
    if not end.is_requester:
        return kept
    return [*chain(kept, _reconnects(scene, end)), *_gives_way(scene, end, {**mine, **routed})]


def _gives_way(scene: Scene, end: End, live: Case) -> Iterator[Act]:
    """A live link is lost that an invited one waits for: that one takes its place at once."""
    entry = _Entry(end.own)
    given = {Condition.OWN_SMALLER} if end.own == scene.runtimes[0] else set[Condition]()
    for new in scene.handlers(end.own):
        steps = (
            move(entry.part, Trigger.LOST),
            move(entry.part, Trigger.INVITED, *given),
            send(end.down, f"{end.name} shall disconnect"),
            begin(entry.part, Trigger.INVITED),
        )
        yield act(
            {**live, entry.beside: new.name}, *steps, sets={**entry.empty(), entry.of: new.name}
        )


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
    return chain(left, _released(scene, own, _NO_REQUEST))
