"""The rules of the requester's end (`fsm.p2p.requester`)."""

from collections.abc import Iterator

from fsm.compositions.p2p_end import UNTIMELY, announce, dial_on, give_up, renewed, returned
from fsm.compositions.p2p_scene import (
    DIALS,
    NO,
    NONE,
    YES,
    Dial,
    End,
    Scene,
    has_candidates,
    negotiation_of,
)
from fsm.machines.p2p_connection import State, Trigger
from fsm.product.rule import (
    Act,
    Rule,
    act,
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

__all__ = ["requester_rules", "seen"]

_SETS_UP = f"{State.CREATED}|{State.IN_PROGRESS}|{State.YIELDING}"
_MAY_DIAL = f"{State.CREATED}|{State.IN_PROGRESS}"


def requester_rules(scene: Scene, end: End) -> Iterator[Rule]:
    """All rules of one requester but those about links."""
    yield from _set_up(scene, end)
    for peer in scene.peers(end):
        yield from _about_peer(scene, end, peer)
    yield from _commands(scene, end)


def _set_up(scene: Scene, end: End) -> Iterator[Rule]:
    plan, over = end.var("plan"), end.var("over")
    started = [
        act({plan: "loading"}, begin(end.name, Trigger.STARTED), sets={plan: "done", over: NO})
    ]
    yield from rules(
        happens(f"{end.name} is deployed"),
        chain(started, [announce(end, State.CREATED)]),
        "3.1 t1, P2P-08",
    )
    invite = send(end.out, f"{end.name} invites")
    yield from rules(
        happens(f"object of {end.name} is returned"),
        chain([act({end.name: State.CREATED})], returned(scene, end), [act({}, invite)]),
        "3.1 t2, M-32, M-33",
    )
    created = [act({end.name: State.CREATED})]
    refused = chain(created, give_up(scene, end))
    yield from rules(wished("an object is refused"), refused, "3.1 t3, SC-23")


def _about_peer(scene: Scene, end: End, peer: End) -> Iterator[Rule]:
    inwards = peer.out
    yield from rules(
        got(inwards, f"{peer.name} invites {end.name}"), _invited(end, peer), "P2P-11, M-34"
    )
    for answer in ("accepted", "refused"):
        yield from _answered(scene, end, peer, answer)
    for offers in scene.offers:
        for plea in scene.pleas:
            for word in ("shows", "changes to"):
                news = got(inwards, f"{peer.name} {word} {offers} {plea} for {end.name}")
                cite = "M-37" if word == "shows" else "M-40, P2P-12"
                yield from rules(news, seen(scene, end, offers, plea), cite)
    hidden = [
        *chain([act({end.name: _SETS_UP})], give_up(scene, end)),
        ignore({end.name: f"not {_SETS_UP}"}, "the link stands without it, or is over"),
    ]
    yield from rules(got(inwards, f"{peer.name} is hidden from {end.name}"), hidden, "M-37 404")
    deleted = [*give_up(scene, end), ignore({end.var("over"): YES}, UNTIMELY)]
    yield from rules(got(inwards, f"{peer.name} is withdrawn for {end.name}"), deleted, "M-47, t5")


def _answered(scene: Scene, end: End, peer: End, answer: str) -> Iterator[Rule]:
    """The answer to the own invitation, by an end of the handler or by none of them."""
    if peer.number != 1:
        return
    came = got(peer.out, f"{end.name} is {answer}")
    if answer == "accepted":
        yield from rules(came, [ignore({}, "the answer object follows")], "M-35")
        return
    refused = [
        *chain([act({end.name: _SETS_UP})], give_up(scene, end)),
        ignore({end.name: f"not {_SETS_UP}"}, "the link stands without it, or is over"),
    ]
    yield from rules(came, refused, "M-35, 3.1 t3, t5")


def _invited(end: End, peer: End) -> Iterator[Act]:
    known, setting_up = end.var("peer"), {end.name: _SETS_UP}
    no = send(end.out, f"{peer.name} is refused")
    yes = [
        send(end.out, f"{peer.name} is accepted"),
        send(end.out, f"{end.name} observes {peer.name}"),
    ]
    yield act({**setting_up, known: NONE}, *yes, sets={known: str(peer.number)})
    yield act({**setting_up, known: f"not {NONE}"}, no)
    yield act({end.name: f"not {_SETS_UP}"}, no)


def seen(scene: Scene, end: End, offers: str, plea: str) -> Iterator[Act]:
    """The peer's object is seen: its candidates, and whether it pleads."""
    saw = end.var("saw plea")
    runs = {end.var("over"): NO, end.var("offers"): scene.offers_of(negotiation_of(offers))}
    noted = act({}, sets={saw: plea})
    setting_up = {**runs, end.name: _SETS_UP}
    is_new = {saw: f"not {plea}"} if plea != "0" else {saw: "not " + "|".join(scene.pleas)}
    is_old = {saw: plea} if plea != "0" else {}
    yield from chain([act({**setting_up, **is_new})], give_up(scene, end))
    for dial in DIALS:
        before = act({**runs, end.var("dial"): dial})
        after = Dial.FRESH if has_candidates(offers) and dial is Dial.BLANK else dial
        goes_on = dial_on(scene, end, after)
        going = list(goes_on)
        dialling = act({**setting_up, **is_old, end.name: _MAY_DIAL})
        yield from chain([before], [dialling], [noted], going)
        back = {end.name: State.DISCONNECTED, end.var("comes back"): YES}
        yield from chain([before], [act(back)], [noted], going)
        learnt = act({}, sets={end.var("dial"): after})
        waits = {**is_old, end.name: State.YIELDING}
        for rest in ({end.name: State.LIVE}, waits, {**back, end.var("comes back"): NO}):
            yield from chain([before], [act(rest)], [noted], [learnt])
    void = {end.var("over"): NO, end.var("offers"): f"not {runs[end.var('offers')]}"}
    yield ignore(void, "it answers an offer that is void")
    yield ignore({end.var("over"): YES}, UNTIMELY)


def _commands(scene: Scene, end: End) -> Iterator[Rule]:
    dial, over = end.var("dial"), end.var("over")
    gone = act({over: YES}, send(end.up, f"{end.name} is not there"))
    busy = f"{Dial.DIALLING}|{Dial.AGAIN}|{Dial.OPENING}"
    stands = {over: NO, end.name: f"not {State.DISCONNECTED}"}
    acts = [gone, ignore(stands, "there is no lost link"), *_reconnects(scene, end)]
    acts += _offers_anew(scene, end)
    acts.append(ignore({over: NO, end.name: State.DISCONNECTED, dial: busy}, "a dial is under way"))
    yield from rules(got(end.down, f"{end.name} shall connect"), acts, "M-11, P2P-16")
    ended = [*give_up(scene, end), ignore({over: YES}, "it is over, or not deployed yet")]
    yield from rules(got(end.down, f"{end.name} shall disconnect"), ended, "M-12, 3.1 t6")
    yield from _yields(scene, end)


def _yields(scene: Scene, end: End) -> Iterator[Rule]:
    """It waits for the link that wins a simultaneous open, and goes on if that one fails."""
    dial, stale, over = end.var("dial"), end.var("stale dial"), end.var("over")
    in_time = {end.name: State.IN_PROGRESS, end.var("offers"): scene.offers_of(1)}
    yields = act({over: NO, **in_time}, move(end.name, Trigger.YIELDED))
    restarted = [
        act({dial: f"{Dial.DIALLING}|{Dial.AGAIN}"}, sets={dial: Dial.FRESH, stale: YES}),
        act({dial: f"{Dial.OPENING}|{Dial.TRIED}"}, sets={dial: Dial.FRESH}),
        act({dial: f"{Dial.BLANK}|{Dial.FRESH}"}),
    ]
    acts = [
        *chain([yields], [announce(end, State.YIELDING)], restarted),
        *chain([act({end.name: State.CREATED})], give_up(scene, end)),
        ignore({over: NO, end.name: "not created|in-progress"}, "it yields, or is not set up"),
        ignore({over: YES}, UNTIMELY),
    ]
    if scene.negotiations > 1:
        later = {end.var("offers"): f"not {scene.offers_of(1)}"}
        acts.append(ignore({over: NO, **in_time, **later}, "the order is of another negotiation"))
    yield from rules(got(end.down, f"{end.name} shall yield"), acts, "P2P-27, I-P20")
    pleads = {end.var("has pleaded"): NO}
    resumes = act({end.name: State.YIELDING}, move(end.name, Trigger.RESUMED), sets=pleads)
    told = [announce(end, State.IN_PROGRESS)]
    acts = [
        *(
            one
            for known in (Dial.BLANK, Dial.FRESH)
            for one in chain([act({dial: known})], [resumes], told, dial_on(scene, end, known))
        ),
        ignore({over: NO, end.name: f"not {State.YIELDING}"}, "it does not yield"),
        act({over: YES}, send(end.up, f"{end.name} is not there")),
    ]
    yield from rules(got(end.down, f"{end.name} shall resume"), acts, "P2P-27")


def _offers_anew(scene: Scene, end: End) -> Iterator[Act]:
    """It may do so at any order; how many come before is left open (t8)."""
    saw, pleaded, back = (end.var(name) for name in ("saw plea", "has pleaded", "comes back"))
    for number in range(1, scene.negotiations):
        lost = {end.name: State.DISCONNECTED, end.var("offers"): scene.offers_of(number)}
        anew = act({end.var("over"): NO, **lost}, sets={saw: "0", pleaded: NO, back: NO})
        yield from chain([anew], renewed(scene, end, number + 1))


def _reconnects(scene: Scene, end: End) -> Iterator[Act]:
    lost = {end.var("over"): NO, end.name: State.DISCONNECTED}
    anew = act(lost, sets={end.var("comes back"): YES, end.var("has pleaded"): NO})
    for dial, after in (
        (Dial.BLANK, Dial.BLANK),
        (Dial.FRESH, Dial.FRESH),
        (Dial.TRIED, Dial.FRESH),
    ):
        yield from chain([act({end.var("dial"): dial})], [anew], dial_on(scene, end, after))
