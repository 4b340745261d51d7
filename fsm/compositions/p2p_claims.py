"""Where a P2P composition may come to rest, and what must never be."""

from collections.abc import Iterator
from itertools import combinations
from typing import Final

from fsm.compositions.p2p_scene import NO, YES, End, Role, Scene
from fsm.machines.p2p_connection import State
from fsm.machines.p2p_entry import State as Entry
from fsm.product import composition as product
from fsm.product.condition import Case
from specs.trace import ABSENT

__all__ = ["linked", "links_of", "never", "unlinked"]

_AT_WORK: Final = f"{State.CREATED}|{State.IN_PROGRESS}|{State.YIELDING}|{State.LIVE}"


def unlinked(scene: Scene) -> dict[str, str]:
    """Nothing of any link is left: everything failed, or ended, or never began."""
    over = {end.var("over"): YES for end in scene.all_ends()}
    states = {end.name: f"{ABSENT}|failed|disconnected" for end in scene.all_ends()}
    controls = {end.control: f"{ABSENT}|closed" for end in _handlers(scene)}
    entries = {f"{own} entry": f"{ABSENT}|{Entry.REMOVED}" for own in scene.runtimes}
    return {**over, **states, **controls, **entries}


def linked(scene: Scene, requester: End, handler: End, link: str) -> Case:
    """The two ends are live by one link, and both registries route to it; else nothing is."""
    live = dict(unlinked(scene))
    live[handler.control] = "open"
    for end in (requester, handler):
        live |= {
            end.var("over"): NO,
            **_agreed(end, link),
            f"{end.own} entry": Entry.BOUND,
            f"{end.own} entry of": end.name,
            f"{end.own} entry says": State.LIVE,
        }
    return live


def _agreed(end: End, link: str) -> dict[str, str]:
    return {
        end.name: State.LIVE,
        end.var("link"): link,
        f"link {link} {end.own}": "up",
    }


def links_of(scene: Scene, own: str) -> Iterator[Case]:
    """Every way to be linked by a link that this runtime asked for."""
    for requester in scene.requesters(own):
        for handler in scene.peers(requester):
            for link in scene.link_numbers:
                yield linked(scene, requester, handler, link)


def never(scene: Scene) -> Iterator[product.Never]:
    """What must not be in any state."""
    pairs = [
        (requester, handler)
        for own in scene.runtimes
        for requester in scene.requesters(own)
        for handler in scene.peers(requester)
    ]
    two = tuple(
        {
            **_agreed(a, one),
            **_agreed(b, one),
            **_agreed(c, other),
            **_agreed(d, other),
        }
        for (a, b), (c, d) in combinations(pairs, 2)
        for one, other in _different(scene)
        if not {a, b} & {c, d}
    )
    yield product.Never("two links of one pair are live at both their ends", two, "I-P6, R9")
    early = tuple(
        {f"{end.own} entry": Entry.BOUND, f"{end.own} entry of": end.name, **state}
        for end in scene.all_ends()
        for state in ({end.name: ABSENT}, *_never_live(scene, end))
    )
    yield product.Never("an entry is bound before its link was live", early, "I-P6, I-P17")
    undead = tuple({end.var("over"): YES, end.name: _AT_WORK} for end in scene.all_ends())
    yield product.Never("an end that is over is still at work", undead, "I-P3, I-P4")
    unsure = tuple(
        {end.control: "open", **state}
        for end in _handlers(scene)
        for state in _never_live(scene, end)
    )
    yield product.Never("a controller is open whose link never was", unsure, "I-P5")


def _never_live(scene: Scene, end: End) -> Iterator[dict[str, str]]:
    """It is on the way to its first link, not to one that it negotiates anew."""
    yield {end.name: State.CREATED}
    yield {end.name: State.IN_PROGRESS, end.var("offers"): scene.offers_of(1)}


def _different(scene: Scene) -> Iterator[tuple[str, str]]:
    for one in scene.link_numbers:
        for other in scene.link_numbers:
            if one != other:
                yield one, other


def _handlers(scene: Scene) -> list[End]:
    return [end for end in scene.all_ends() if end.role is Role.HANDLER]
