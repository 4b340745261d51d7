"""What both ends of a P2P link do alike (`fsm.p2p.link_end`), as alternatives of acts."""

from collections.abc import Iterator
from itertools import product
from typing import Final

from fsm.compositions.p2p_scene import (
    NO,
    NONE,
    YES,
    Dial,
    End,
    Scene,
    has_candidates,
    negotiation_of,
    offering,
)
from fsm.machines.handler_controller import Trigger as Does
from fsm.machines.p2p_connection import State, Trigger
from fsm.product.rule import Act, act, chain, move, send

__all__ = [
    "UNTIMELY",
    "announce",
    "closed",
    "dial_on",
    "give_up",
    "leave",
    "lost",
    "offered",
    "opened",
    "over",
    "plead",
    "renewed",
    "returned",
    "told_change",
    "withdraw",
]

UNTIMELY: Final = "what comes after the end only cleans up"

_GIVE_UP: Final = {
    State.CREATED: (Trigger.REFUSED, State.FAILED),
    State.IN_PROGRESS: (Trigger.ESTABLISH_FAILED, State.FAILED),
    State.YIELDING: (Trigger.ESTABLISH_FAILED, State.FAILED),
    State.LIVE: (Trigger.CLOSED, State.DISCONNECTED),
}


def announce(end: End, state: str) -> Act:
    """Tell the registry (M-06, M-07).

    That a requester is `in-progress` for the first time is left out (`returned`): its
    registry does nothing about it.
    """
    return act({}, send(end.up, f"{end.name} is {state}"))


# --- the transport link -------------------------------------------------------------------


def closed(scene: Scene, end: End, word: str) -> Iterator[Act]:
    """Let go of the link in use, if there is one; the peer hears `word`, if it can."""
    yield act({end.var("link"): NONE})
    for link in scene.link_numbers:
        mine, theirs = f"link {link} {end.own}", f"link {link} {end.other}"
        held = {end.var("link"): link}
        gone = {end.var("link"): NONE}
        tell = send(f"link to {end.other}", f"link {link} {word}")
        yield act({**held, mine: "up"}, tell, sets={**gone, mine: "idle", theirs: "told"})
        yield act({**held, mine: "told"}, sets=gone)
        yield act({**held, mine: "deaf"}, sets={**gone, mine: "idle"})


def lost(scene: Scene, end: End, state: str = State.LIVE) -> list[Act]:
    """Leave `live`, its link being gone."""
    return chain(
        [act({end.name: state}, move(end.name, Trigger.CLOSED))],
        [announce(end, State.DISCONNECTED)],
        closed(scene, end, "breaks"),
        _restarted(end),
    )


def _restarted(end: End) -> Iterator[Act]:
    """Every candidate may be tried again."""
    dial = end.var("dial")
    yield act({dial: f"not {Dial.TRIED}|{Dial.DIALLING}"})
    yield act({dial: Dial.TRIED}, sets={dial: Dial.FRESH})
    yield act({dial: Dial.DIALLING}, sets={dial: Dial.AGAIN})


def opened(scene: Scene, end: End, link: str, opening: str, negotiation: int) -> Iterator[Act]:
    """Take a link into use, or close it: there is at most one, and none by a void secret."""
    current = scene.offers_of(negotiation)
    yield from chain([act({end.var("offers"): f"not {current}"})], _hung_up(end, link))
    yield from chain([act({end.var("offers"): current})], _taken(scene, end, link, opening))


def _taken(scene: Scene, end: End, link: str, opening: str) -> Iterator[Act]:
    new = act({}, sets={end.var("link"): link})
    up, back = Trigger.ESTABLISHED, Trigger.REESTABLISHED
    runs = {end.var("over"): NO}
    first = act({**runs, end.name: State.IN_PROGRESS}, move(end.name, up))
    again = act({**runs, end.name: State.DISCONNECTED}, move(end.name, back))
    for taken in (first, again):
        yield from chain([taken], [announce(end, State.LIVE)], _dialled(end), [new], _in_use(end))
    yield from chain([act({end.var("over"): YES})], _hung_up(end, link))
    yield from chain([act({**runs, end.name: State.YIELDING})], _hung_up(end, link))
    live = act({**runs, end.name: State.LIVE})
    if opening == "dialled":
        yield from chain([live], _hung_up(end, link))
        return
    returned = act({}, move(end.name, back))
    renewed = [[returned], [announce(end, State.LIVE)], _dialled(end), [new], _in_use(end)]
    yield from chain([live], lost(scene, end), *renewed)


def _dialled(end: End) -> Iterator[Act]:
    """No dial is under way any more; one that still is will be no news."""
    dial, stale = end.var("dial"), end.var("stale dial")
    yield act({dial: f"{Dial.BLANK}|{Dial.FRESH}|{Dial.TRIED}"})
    yield act({dial: Dial.OPENING}, sets={dial: Dial.TRIED})
    yield act({dial: Dial.DIALLING}, sets={dial: Dial.TRIED, stale: YES})
    yield act({dial: Dial.AGAIN}, sets={dial: Dial.FRESH, stale: YES})


def _in_use(end: End) -> Iterator[Act]:
    if end.is_requester:
        yield act({}, sets={end.var("comes back"): NO, end.var("has pleaded"): NO})
        return
    free = {end.var("may dial"): NO}
    yield act({end.control: "answering"}, move(end.control, Does.LINK_OPEN), sets=free)
    yield act({end.control: "not answering"}, sets=free)


def _hung_up(end: End, link: str) -> Iterator[Act]:
    """Close a link that nobody here wants; the peer takes it for broken."""
    mine, theirs = f"link {link} {end.own}", f"link {link} {end.other}"
    tell = send(f"link to {end.other}", f"link {link} breaks")
    yield act({mine: "up"}, tell, sets={mine: "idle", theirs: "told"})
    yield act({mine: "told"})
    yield act({mine: "deaf"}, sets={mine: "idle"})


# --- the own object -----------------------------------------------------------------------


def told_change(scene: Scene, end: End, offers: str, plea: str) -> Iterator[Act]:
    """Tell who observes the own object what it is now (M-40)."""
    watched = end.var("watched by")
    yield act({watched: NONE})
    for peer in scene.peers(end):
        news = f"{end.name} changes to {offers} {plea} for {peer.name}"
        yield act({watched: str(peer.number)}, send(end.out, news))


def plead(scene: Scene, end: End) -> Iterator[Act]:
    """Write into the own object that the peer cannot be reached."""
    for plea in scene.pleas:
        after = scene.next_plea(plea)
        for offers in scene.offers:
            now = act({end.var("plea"): plea, end.var("offers"): offers})
            written = act({}, sets={end.var("plea"): after})
            yield from chain([now], told_change(scene, end, offers, after), [written])


def returned(scene: Scene, end: End) -> list[Act]:
    """The own object is returned: listen for links (P2P-09, P2P-10)."""
    listens = {end.var("offers"): YES} if scene.is_brief else {}
    moved = act({}, move(end.name, Trigger.OBJECT_RETURNED), sets=listens)
    return [moved] if end.is_requester else chain([moved], [announce(end, State.IN_PROGRESS)])


def offered(scene: Scene, end: End) -> Iterator[Act]:
    """Add the own candidates to the own object."""
    for offers, plea in product(scene.offers, scene.pleas):
        if not has_candidates(offers):
            more = offering(YES, negotiation_of(offers))
            is_so = {end.var("plea"): plea, end.var("offers"): offers}
            now = act(is_so, sets={end.var("offers"): more})
            yield from chain([now], told_change(scene, end, more, plea))


def renewed(scene: Scene, end: End, negotiation: int) -> list[Act]:
    """Negotiate anew (t8): nothing of the negotiation before is of use any more.

    That is written into the own object; listeners, dials and secrets are others from now
    on. A dial that is under way may open a link all the same.
    """
    void = offering(YES if scene.is_brief else NO, negotiation)
    blank = {end.var("offers"): void, end.var("plea"): "0", end.var("dial"): Dial.BLANK}
    dial, stale = end.var("dial"), end.var("stale dial")
    under_way = act({dial: f"{Dial.DIALLING}|{Dial.AGAIN}"}, sets={stale: YES})
    none = act({dial: f"not {Dial.DIALLING}|{Dial.AGAIN}"})
    gave_up = chain([under_way, none], [act({}, sets=blank)])
    back = act({end.name: State.DISCONNECTED}, move(end.name, Trigger.RENEGOTIATED))
    live = chain(lost(scene, end), [act({}, move(end.name, Trigger.RENEGOTIATED))])
    told = [announce(end, State.IN_PROGRESS)]
    going = [act({end.name: State.IN_PROGRESS})]
    ways = [*chain([back], told), *chain(live, told), *going]
    return chain(ways, gave_up, told_change(scene, end, void, "0"))


# --- dialling -----------------------------------------------------------------------------


def dial_on(scene: Scene, end: End, dial: str) -> Iterator[Act]:
    """Go on with dialling, which has come as far as `dial`; at the end of the round plead.

    The requester pleads once until it has a link again, the handler once for each plea.
    """
    written = end.var("dial")
    match dial:
        case Dial.FRESH:
            yield act({}, sets={written: Dial.DIALLING})
        case Dial.TRIED:
            allowed = end.var("has pleaded" if end.is_requester else "may dial")
            may, done = (NO, YES) if end.is_requester else (YES, NO)
            yield act({allowed: done}, sets={written: dial})
            noted = act({allowed: may}, sets={written: dial, allowed: done})
            yield from chain([noted], plead(scene, end))
        case _:
            yield act({}, sets={written: dial})


# --- the end ------------------------------------------------------------------------------


def give_up(scene: Scene, end: End) -> list[Act]:
    """End for good, from any state: failed if never live, else disconnected."""
    return chain(leave(scene, end), over(end))


def leave(scene: Scene, end: End) -> list[Act]:
    """Do so, but for what the handler's controller does then."""
    moved = [
        chain(
            [act({end.name: source}, move(end.name, trigger))],
            [announce(end, target)],
            closed(scene, end, "says goodbye"),
        )
        for source, (trigger, target) in _GIVE_UP.items()
    ]
    gone = [act({end.name: State.DISCONNECTED})]
    ways = [*(way for ways in moved for way in ways), *gone]
    return chain([act({end.var("over"): NO})], ways, withdraw(scene, end))


def withdraw(scene: Scene, end: End) -> list[Act]:
    """Delete the own object, stop everything, and be removed (M-47)."""
    watched = end.var("watched by")
    left = [act({watched: NONE})]
    for peer in scene.peers(end):
        bye = send(end.out, f"{end.name} is withdrawn for {peer.name}")
        left.append(act({watched: str(peer.number)}, bye))
    return chain(left, [act({}, sets=_forgotten(end))])


def over(end: End) -> Iterator[Act]:
    """Close the controller, and tell the registry (I-P19)."""
    if end.is_requester:
        yield act({})
        return
    told = send(end.up, f"{end.name} is over")
    yield act({end.control: "not [*]|closed"}, move(end.control, Does.OVER), told)
    yield act({end.control: "closed"}, told)


def _forgotten(end: End) -> dict[str, str]:
    """What nobody asks an end for that is over."""
    common = {"over": YES, "dial": Dial.BLANK, "stale dial": NO, "plea": "0", "saw plea": "0"}
    objects = {"offers": NO, "watched by": NONE, "peer": NONE}
    if end.is_requester:
        own = {"has pleaded": NO, "comes back": NO}
    else:
        own = {"may dial": NO, "answered": NO}
    return {end.var(name): value for name, value in {**common, **objects, **own}.items()}
