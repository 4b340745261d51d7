"""The rules of the handler's ends (`fsm.p2p.handler`, `fsm.p2p.controller`)."""

from collections.abc import Iterator

from fsm.compositions.p2p_end import (
    UNTIMELY,
    announce,
    dial_on,
    give_up,
    leave,
    renewed,
    returned,
)
from fsm.compositions.p2p_scene import (
    DIALS,
    NO,
    YES,
    Dial,
    End,
    Scene,
    has_candidates,
    negotiation_of,
)
from fsm.machines.handler_controller import Condition
from fsm.machines.handler_controller import State as Does
from fsm.machines.handler_controller import Trigger as Act_
from fsm.machines.p2p_connection import State, Trigger
from fsm.product.compiled import target_of
from fsm.product.rule import (
    Act,
    Rule,
    act,
    after,
    begin,
    chain,
    got,
    happens,
    ignore,
    move,
    rules,
    send,
    wished,
)
from specs.trace import ABSENT

__all__ = ["handler_rules"]

_SETS_UP = f"{State.CREATED}|{State.IN_PROGRESS}"


def handler_rules(scene: Scene, own: str) -> Iterator[Rule]:
    """All rules of one runtime's handler but those about links."""
    other = scene.other(own)
    ends = scene.handlers(own)
    for requester in scene.requesters(other):
        came = got(requester.out, f"{requester.name} invites")
        yield from rules(came, _invited(scene, own, requester), "P2P-09, P2P-19, M-34")
    for end in ends:
        yield from _set_up(scene, end)
        for peer in scene.peers(end):
            yield from _about_peer(scene, end, peer)
        yield from _listeners(end)
        told = [*_ended(scene, end), ignore({end.var("over"): YES}, UNTIMELY)]
        yield from rules(got(end.down, f"{end.name} shall disconnect"), told, "M-12")
    if ends:
        nobody = ignore({end.var("over"): YES for end in ends}, "there is no such link")
        ended = [*(one for end in ends for one in _ended(scene, end)), nobody]
        yield from rules(got(ends[0].down, f"{own} hnd shall disconnect"), ended, "M-12")


def _invited(scene: Scene, own: str, requester: End) -> Iterator[Act]:
    """Close the older link of the same runtime, if there is one, and make a new end."""
    ends, gone = scene.handlers(own), f"{own} is gone"
    yield act({gone: YES}, send(ends[0].out, f"{requester.name} is refused"))
    idle = act({gone: NO} | {end.var("over"): YES for end in ends})
    for end in ends:
        older = [end_ for end_ in ends if end_.number < end.number]
        younger = {end_.name: ABSENT for end_ in ends if end_.number >= end.number}
        free = act({**younger, **{one.name: f"not {ABSENT}" for one in older}})
        new = chain([act({gone: NO})], [free], _begun(end, requester))
        yield from chain([idle], new)
        for one in older:
            yield from chain(_ended(scene, one), new)


def _begun(end: End, requester: End) -> list[Act]:
    first = act(
        {},
        begin(end.name, Trigger.STARTED),
        move(end.control, Act_.INVITED),
        sets={end.var("over"): NO, end.var("peer"): str(requester.number)},
    )
    return chain(
        [first],
        [announce(end, State.CREATED)],
        [act({}, send(end.up, f"{end.name} asks for the row"))],
    )


def _ended(scene: Scene, end: End) -> list[Act]:
    """Refuse the invitation, if it has no answer yet, and give up."""
    return chain(_refuses(scene, end), give_up(scene, end))


def _refuses(scene: Scene, end: End) -> Iterator[Act]:
    answered = end.var("answered")
    yield act({answered: YES})
    for peer in scene.peers(end):
        no = send(end.out, f"{peer.name} is refused")
        yield act({answered: NO, end.var("peer"): str(peer.number)}, no)


def _set_up(scene: Scene, end: End) -> Iterator[Rule]:
    for row in ("an own request", "no own request"):
        told = got(end.down, f"{end.name} is told of {row}")
        yield from rules(told, _row_told(scene, end, row), "P2P-18, P2P-27")
    asked = {end.var("over"): NO, end.control: Does.ANSWERING, end.name: State.CREATED}
    invites = [
        act(
            {end.var("peer"): str(peer.number)},
            send(end.out, f"{end.name} invites {peer.name}"),
        )
        for peer in scene.peers(end)
    ]
    done = chain([act(asked)], returned(scene, end), invites)
    yield from rules(happens(f"object of {end.name} is returned"), done, "3.1 t2, M-32, M-33")
    refused = chain([act(asked)], give_up(scene, end))
    yield from rules(wished("an object is refused"), refused, "3.1 t3")
    late = chain([act({end.control: f"{Does.OBSERVING}|{Does.ANSWERING}"})], _ended(scene, end))
    yield from rules(after(end.control, Act_.OVER), late, "C-16: T_p2p, seen by the controller")


def _row_told(scene: Scene, end: End, row: str) -> Iterator[Act]:
    """Accept the invitation or refuse it, as the controller's table says."""
    control, runs = end.control, {end.var("over"): NO, end.var("answered"): NO}
    given = {Condition.OWN_REQUEST} if row == "an own request" else set[Condition]()
    if end.own == scene.runtimes[0]:
        given |= {Condition.OWN_SMALLER}
    step = move(control, Act_.ROW_TOLD, *given)
    table = scene.tables["handler_controller"]
    if target_of(table, Does.OBSERVING, Act_.ROW_TOLD, given) == Does.CLOSED:
        over = act({}, send(end.up, f"{end.name} is over"))
        yield from chain([act(runs, step)], _refuses(scene, end), leave(scene, end), [over])
    else:
        for peer in scene.peers(end):
            yes = send(end.out, f"{peer.name} is accepted")
            observes = send(end.out, f"{end.name} observes {peer.name}")
            accepted = {**runs, end.var("peer"): str(peer.number)}
            yield act(accepted, step, yes, observes, sets={end.var("answered"): YES})
    yield ignore({**runs, end.var("answered"): YES}, "the invitation is answered")
    yield ignore({end.var("over"): YES}, UNTIMELY)


def _about_peer(scene: Scene, end: End, peer: End) -> Iterator[Rule]:
    inwards = peer.out
    setting_up = act({end.name: _SETS_UP})
    stands = ignore({end.name: f"not {_SETS_UP}"}, "the link stands without it, or is over")
    refused = [*chain([setting_up], give_up(scene, end)), stands]
    if peer.number == 1:
        accepted = [ignore({}, "it will observe")]
        yield from rules(got(inwards, f"{end.name} is accepted"), accepted, "M-35")
        yield from rules(got(inwards, f"{end.name} is refused"), refused, "M-35, 3.1 t3, t5")
    yield from rules(got(inwards, f"{peer.name} is hidden from {end.name}"), refused, "M-37 404")
    deleted = [*give_up(scene, end), ignore({end.var("over"): YES}, UNTIMELY)]
    yield from rules(got(inwards, f"{peer.name} is withdrawn for {end.name}"), deleted, "M-47, t5")
    for offers in scene.offers:
        for plea in scene.pleas:
            for word in ("shows", "changes to"):
                news = got(inwards, f"{peer.name} {word} {offers} {plea} for {end.name}")
                cite = "M-37" if word == "shows" else "M-40, P2P-12"
                yield from rules(news, _seen(scene, end, offers, plea), cite)


def _seen(scene: Scene, end: End, offers: str, plea: str) -> Iterator[Act]:
    number = negotiation_of(offers)
    known = scene.offers_of(*range(number, scene.negotiations + 1))
    saw, runs = end.var("saw plea"), {end.var("over"): NO, end.var("offers"): known}
    answers = [
        act({end.control: Does.OBSERVING}, move(end.control, Act_.ANSWER)),
        act({end.control: f"not {Does.OBSERVING}"}),
    ]
    noted = [act(runs, sets={saw: plea})]
    for dial in DIALS:
        known = Dial.FRESH if has_candidates(offers) and dial is Dial.BLANK else dial
        before = [act({end.var("dial"): dial})]
        for is_heard in _hearings(end, plea):
            again = {Dial.TRIED: Dial.FRESH, Dial.DIALLING: Dial.AGAIN}.get(known, known)
            # The plea itself allows to dial: there is nothing to be pleaded back yet.
            goes_on = dial_on(scene, end, again)
            may = [act({}, sets={end.var("may dial"): YES})]
            yield from chain(before, [is_heard], answers, noted, may, goes_on)
        for is_not in _deafness(end, plea):
            yield from chain(before, [is_not], answers, noted, _if_allowed(scene, end, known))
    yield from _renewed(scene, end, offers, plea)
    yield ignore({end.var("over"): YES}, UNTIMELY)


def _renewed(scene: Scene, end: End, offers: str, plea: str) -> Iterator[Act]:
    """The requester offers anew: so does this end, and it may be asked to dial at once."""
    number = negotiation_of(offers)
    older = {end.var("over"): NO, end.var("offers"): scene.offers_of(*range(1, number))}
    noted = act(older, sets={end.var("saw plea"): plea, end.var("may dial"): NO})
    learnt = [act({}, sets={end.var("dial"): Dial.FRESH if has_candidates(offers) else Dial.BLANK})]
    if plea != "0":
        may = [act({}, sets={end.var("may dial"): YES})]
        learnt = chain(learnt, may, dial_on(scene, end, learnt[0].sets[end.var("dial")]))
    if number > 1:
        yield from chain([noted], renewed(scene, end, number), learnt)


def _hearings(end: End, plea: str) -> Iterator[Act]:
    if plea != "0":
        yield act({end.var("saw plea"): f"not {plea}", end.name: f"not {State.LIVE}"})


def _deafness(end: End, plea: str) -> Iterator[Act]:
    """It does not plead, or not anew, or what it pleads for is there."""
    if plea == "0":
        yield act({})
        return
    yield act({end.var("saw plea"): plea})
    yield act({end.var("saw plea"): f"not {plea}", end.name: State.LIVE})


def _if_allowed(scene: Scene, end: End, dial: Dial) -> list[Act]:
    may = end.var("may dial")
    waits = act({may: NO}, sets={end.var("dial"): dial})
    return [waits, *chain([act({may: YES})], dial_on(scene, end, dial))]


def _listeners(end: End) -> Iterator[Rule]:
    runs, over = {end.var("over"): NO}, {end.var("over"): YES}
    acts = [
        act(runs, send(end.up, f"{end.name} has listeners")),
        act(over, send(end.up, f"{end.name} has no listeners")),
    ]
    yield from rules(got(end.down, f"{end.name} shall listen"), acts, "M-05, I-P17")
