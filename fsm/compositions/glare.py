"""Two runtimes ask each other for a link at once: the smaller one's request wins (P2P-27).

Each runtime has an entry, a requester and a handler. Rules, and what is left out, are those
of `fsm.compositions.p2p`; besides, listeners stand as soon as they are asked for.

Three times, with different clocks:

* `glare`: every message is faster than every timer, and what a registry and its stubs tell
  each other is faster than any network. So it is shown that exactly one link comes of it,
  the one the smaller runtime asked for.
* `glare-late`: what they tell each other may be as late as anything. Exactly one link comes
  of it all the same, the other never is live at both ends, and a link that is live stays.
* `glare-timeout`: messages are lost, and deadlines are over at any moment.
"""

from collections.abc import Iterator, Mapping
from typing import Final

import attrs

from fsm.compositions.p2p_claims import links_of, unlinked
from fsm.compositions.p2p_scene import Scene
from fsm.compositions.p2p_whole import Troubles, whole
from fsm.machines.p2p_connection import State
from fsm.product.bounds import Bounds
from fsm.product.composition import Composition, End, Haste, Never, Patience, Plan
from fsm.product.condition import Case
from fsm.table import Table

__all__ = ["GLARE", "GLARE_LATE", "GLARE_TIMEOUT"]


def _scene(tables: Mapping[str, Table], bounds: Bounds, patience: Patience, haste: Haste) -> Scene:
    return Scene(
        tables=tables,
        asks={"a": 1, "b": 1},
        bounds=bounds,
        links=2,
        # A lost link is given up at once: coming back in place is what `p2p` is about.
        tries=0,
        is_brief=True,
        patience=patience,
        haste=haste,
    )


def _linked(scene: Scene) -> End:
    return End("linked", (*links_of(scene, "a"), *links_of(scene, "b")))


def _glare(tables: Mapping[str, Table], bounds: Bounds) -> Composition:
    scene = _scene(tables, bounds, Patience.AT_REST, Haste.LOCAL_FIRST)
    about = "Two runtimes ask each other for a link at once; the smaller one's request wins."
    return whole("glare", about, scene, Troubles(), _ends(scene))


def _ends(scene: Scene) -> list[End]:
    ends = [
        End("linked as the smaller one asked", tuple(links_of(scene, "a"))),
        End("linked as the other asked alone", tuple(_alone(scene))),
        End("nobody has asked", (_unasked(scene),)),
    ]
    if scene.bounds.losses or scene.bounds.duplicates:
        # Who has lost may have been heard alone.
        ends += [_linked(scene), End("nothing is linked", (unlinked(scene),))]
    return ends


def _alone(scene: Scene) -> Iterator[Case]:
    for link in links_of(scene, "b"):
        yield {**link, "a asks for the other": "1"}


def _unasked(scene: Scene) -> dict[str, str]:
    return {**unlinked(scene), **{f"{own} asks for the other": "1" for own in scene.runtimes}}


def _late(tables: Mapping[str, Table], bounds: Bounds) -> Composition:
    scene = _scene(tables, bounds, Patience.AT_REST, Haste.NONE)
    about = "The same, but registries and stubs hear of each other late."
    late = whole("glare-late", about, scene, Troubles(), _ends(scene))
    if bounds.losses or bounds.duplicates:
        return late
    return attrs.evolve(late, never=(*late.never, _undone(scene)))


def _undone(scene: Scene) -> Never:
    """Nothing goes wrong: so nobody loses a link, and nobody gives one up for the other."""
    lost = tuple({end.name: State.DISCONNECTED} for end in scene.all_ends())
    return Never("a link that was live at one end is undone", lost, "P2P-27, I-P20")


def _faults(tables: Mapping[str, Table], bounds: Bounds) -> Composition:
    scene = _scene(tables, bounds, Patience.NONE, Haste.LOCAL_FIRST)
    ends = [_linked(scene), End("nothing is linked", (unlinked(scene),))]
    about = "The same, and deadlines are over at any moment."
    return whole("glare-timeout", about, scene, Troubles(), ends)


GLARE: Final = Plan("glare", _glare, Bounds(losses=0, duplicates=0))
"""Both ask at once."""

GLARE_LATE: Final = Plan("glare-late", _late, Bounds(losses=0, duplicates=0))
"""And registries hear of their stubs late."""

GLARE_TIMEOUT: Final = Plan("glare-timeout", _faults, Bounds(losses=1, duplicates=0))
"""And deadlines are over at any moment."""
