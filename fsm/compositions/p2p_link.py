"""The rules of both ends about transport links, time, and their own objects.

A transport link has two sides. Each is `idle` (nobody there knows it), `up` (it works),
`told` (it is gone, and the notice is on the way there) or `deaf` (it is gone without a
notice: only a ping that nobody answers will tell).
"""

from collections.abc import Iterator
from itertools import product

from fsm.compositions.p2p_end import (
    dial_on,
    give_up,
    lost,
    offered,
    opened,
)
from fsm.compositions.p2p_scene import NO, YES, Dial, End, Scene, offering
from fsm.machines.p2p_connection import State, Trigger
from fsm.product.rule import (
    Act,
    Rule,
    Send,
    act,
    after,
    chain,
    got,
    happens,
    in_time,
    rules,
    send,
    wished,
)

__all__ = ["end_rules", "link_rules"]

_OPENINGS = ("dialled", "accepted")
_HAS_OBJECT = f"{State.IN_PROGRESS}|{State.YIELDING}|{State.LIVE}|{State.DISCONNECTED}"


def end_rules(scene: Scene, end: End) -> Iterator[Rule]:
    """What every end does with its object, its dials and its time."""
    yield from _object(scene, end)
    yield from _time(scene, end)
    for peer in scene.peers(end):
        yield from _dials(scene, end, peer)
    yield from _no_dial(scene, end)


def _object(scene: Scene, end: End) -> Iterator[Rule]:
    has_one = {end.var("over"): NO, end.name: _HAS_OBJECT}
    listening = chain([act(has_one)], offered(scene, end))
    yield from rules(happens(f"{end.name} has its listeners open"), listening, "P2P-12, M-40")
    for peer in scene.peers(end):
        hidden = send(end.out, f"{end.name} is hidden from {peer.name}")
        acts = [act({end.var("over"): YES}, hidden)]
        for offers, plea in product(scene.offers, scene.pleas):
            is_so = {**has_one, end.var("offers"): offers, end.var("plea"): plea}
            shows = send(end.out, f"{end.name} shows {offers} {plea} for {peer.name}")
            acts.append(act(is_so, shows, sets={end.var("watched by"): str(peer.number)}))
        yield from rules(got(peer.out, f"{peer.name} observes {end.name}"), acts, "M-36, M-37")


def _time(scene: Scene, end: End) -> Iterator[Rule]:
    for trigger, state in (
        (Trigger.REFUSED, State.CREATED),
        (Trigger.ESTABLISH_FAILED, State.IN_PROGRESS),
        *([(Trigger.ESTABLISH_FAILED, State.YIELDING)] if end.is_requester else []),
    ):
        late = chain([act({end.name: state})], give_up(scene, end))
        yield from rules(after(end.name, trigger), late, "C-16: T_p2p")
    for link in scene.link_numbers:
        deaf = act({end.var("link"): link, f"link {link} {end.own}": "deaf"})
        silent = chain([deaf], lost(scene, end))
        yield from rules(after(end.name, Trigger.CLOSED), silent, "3.1 t6, R8")
    away = act({end.name: State.DISCONNECTED, end.var("over"): NO})
    waits = in_time(f"{end.name} waits no longer for its link")
    yield from rules(waits, chain([away], give_up(scene, end)), "T_gc, t9")


# --- dialling -----------------------------------------------------------------------------


def _dials(scene: Scene, end: End, peer: End) -> Iterator[Rule]:
    dial, knows = end.var("dial"), {end.var("peer"): str(peer.number)}
    for number, (link, free) in product(range(1, scene.negotiations + 1), _free(scene)):
        there = act({**knows, peer.var("offers"): offering(YES, number)})
        both = {f"link {link} {own}": "up" for own in scene.runtimes}
        tells = (_opens(end, link, "dialled", number), _opens(peer, link, "accepted", number))
        opens = act({}, *tells, sets=both)
        now = {dial: f"{Dial.DIALLING}|{Dial.AGAIN}", end.var("offers"): scene.offers_of(number)}
        current = act(now, sets={dial: Dial.OPENING})
        # Whether one that was given up is by this negotiation's secrets is not kept.
        since = {end.var("offers"): scene.offers_of(*range(number, scene.negotiations + 1))}
        stale = act({**since, end.var("stale dial"): YES}, sets={end.var("stale dial"): NO})
        found = happens(f"{end.name} reaches {peer.name} by link {link}")
        yield from rules(found, chain([free], [there], [current, stale], [opens]), "link open")
        half = wished("the link is cut")
        ways = _half(scene, end, peer, (link, number))
        yield from rules(half, chain([free], [there], ways), "link half open")


def _opens(end: End, link: str, opening: str, negotiation: int) -> Send:
    return send(f"link to {end.own}", _is_open(end, link, opening, negotiation))


def _is_open(end: End, link: str, opening: str, negotiation: int) -> str:
    of = "" if negotiation == 1 else f" by offer {negotiation}"
    return f"link {link} is {opening} at {end.name}{of}"


def _half(scene: Scene, end: End, peer: End, opening_: tuple[str, int]) -> Iterator[Act]:
    """It is cut when one side has proven it and the other has not."""
    link, negotiation = opening_
    dial, mine = end.var("dial"), {end.var("offers"): scene.offers_of(negotiation)}
    gone = f"link {link} breaks"
    accepted = act(
        mine,
        _opens(peer, link, "accepted", negotiation),
        send(f"link to {peer.own}", gone),
        sets={f"link {link} {peer.own}": "told"},
    )
    yield from chain([accepted], _dial_fails(scene, end))
    opening = act({**mine, dial: f"{Dial.DIALLING}|{Dial.AGAIN}"}, sets={dial: Dial.OPENING})
    tells = (_opens(end, link, "dialled", negotiation), send(f"link to {end.own}", gone))
    dialled = act({}, *tells, sets={f"link {link} {end.own}": "told"})
    yield from chain([opening], [dialled])


def _free(scene: Scene) -> Iterator[tuple[str, Act]]:
    """Each link's number, and that it is the first that nobody knows."""
    for count, link in enumerate(scene.link_numbers):
        idle = {f"link {link} {own}": "idle" for own in scene.runtimes}
        taken = [
            [act({f"link {known} {own}": "not idle"}) for own in scene.runtimes]
            for known in scene.link_numbers[:count]
        ]
        for free in chain([act(idle)], *taken):
            yield link, free


def _dial_fails(scene: Scene, end: End) -> Iterator[Act]:
    dial = end.var("dial")
    for before, left in ((Dial.DIALLING, Dial.TRIED), (Dial.AGAIN, Dial.FRESH)):
        yield from chain([act({dial: before})], dial_on(scene, end, left))


def _no_dial(scene: Scene, end: End) -> Iterator[Rule]:
    """A dial fails for sure where nobody listens, and where somebody does, if so wished."""
    fails = [
        *_dial_fails(scene, end),
        act({end.var("stale dial"): YES}, sets={end.var("stale dial"): NO}),
    ]
    yield from rules(wished("a dial fails"), fails, "SC-24")
    anew = {end.var("offers"): scene.offers_of(*range(2, scene.negotiations + 1))}
    void = act({**anew, end.var("stale dial"): YES}, sets={end.var("stale dial"): NO})
    if scene.negotiations > 1:
        yield from rules(happens(f"{end.name} gives a void candidate up"), [void], "P2P-16")
    for peer in scene.peers(end):
        away = _without_candidates(scene, end, peer)
        alone = happens(f"{end.name} does not reach {peer.name}")
        yield from rules(alone, chain(away, fails), "SC-24")


def _without_candidates(scene: Scene, end: End, peer: End) -> Iterator[Act]:
    """Nobody listens for what is dialled: not yet, not any more, or not by the same offer."""
    knows = {end.var("peer"): str(peer.number)}
    for number in range(1, scene.negotiations + 1):
        there = f"not {offering(YES, number)}"
        yield act({**knows, end.var("offers"): scene.offers_of(number), peer.var("offers"): there})


# --- what links tell ----------------------------------------------------------------------


def link_rules(scene: Scene, own: str) -> Iterator[Rule]:
    """What a runtime does at each notice of a link, and how links are cut."""
    for link in scene.link_numbers:
        for end in scene.ends(own):
            for opening, number in product(_OPENINGS, range(1, scene.negotiations + 1)):
                news = got(f"link to {own}", _is_open(end, link, opening, number))
                yield from rules(news, opened(scene, end, link, opening, number), "3.1 t4, t7")
        for word in ("breaks", "says goodbye"):
            news = got(f"link to {own}", f"link {link} {word}")
            yield from rules(news, _gone(scene, own, link, word), "3.1 t6")
    if own == scene.runtimes[0]:
        yield from _cuts(scene)


def _gone(scene: Scene, own: str, link: str, word: str) -> Iterator[Act]:
    noted = act({}, sets={f"link {link} {own}": "idle"})
    for end in scene.ends(own):
        held = act({end.var("link"): link})
        # Whoever says goodbye is not coming back (t9).
        last = give_up(scene, end) if word == "says goodbye" else lost(scene, end)
        yield from chain([held], last, [noted])
    free = {end.var("link"): f"not {link}" for end in scene.ends(own)}
    yield act(free, sets={f"link {link} {own}": "idle"})


def _cuts(scene: Scene) -> Iterator[Rule]:
    one, two = scene.runtimes
    for link in scene.link_numbers:
        up = act({f"link {link} {own}": "up" for own in scene.runtimes})
        ways = chain([up], _deafened(one, link), _deafened(two, link))
        yield from rules(wished("the link is cut"), ways, "SC-25")


def _deafened(own: str, link: str) -> Iterator[Act]:
    side = f"link {link} {own}"
    yield act({}, send(f"link to {own}", f"link {link} breaks"), sets={side: "told"})
    yield act({}, sets={side: "deaf"})
