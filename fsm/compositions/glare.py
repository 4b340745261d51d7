"""Two runtimes ask each other for a link at once: the smaller one's request wins (P2P-27).

Each runtime has an entry, a requester and a handler. Rules, and what is left out, are those
of `fsm.compositions.p2p`; besides, listeners stand as soon as they are asked for.

Three times, with different clocks:

* `glare`: every message is faster than every timer, and what a registry and its stubs tell
  each other is faster than any network. So it is shown that exactly one link comes of it,
  the one the smaller runtime asked for.
* `glare-late`: what they tell each other may be as late as anything. Then a request that
  has lost may undo the link that has won, and nothing is linked in the end; and two links
  are live for the moment until a stub hears that it shall end its own. But nothing is left
  half open.
* `glare-timeout`: messages are lost, and deadlines are over at any moment.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from fsm.compositions.p2p_claims import links_of, unlinked
from fsm.compositions.p2p_scene import Scene
from fsm.compositions.p2p_whole import Troubles, whole
from fsm.product.bounds import Bounds
from fsm.product.composition import Composition, End, Haste, Patience, Plan
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
    ends = [
        End("linked as the smaller one asked", tuple(links_of(scene, "a"))),
        End("linked as the other asked alone", tuple(_alone(scene))),
        End("nobody has asked", (_unasked(scene),)),
    ]
    if bounds.losses or bounds.duplicates:
        # Who has lost may have been heard alone.
        ends += [_linked(scene), End("nothing is linked", (unlinked(scene),))]
    about = "Two runtimes ask each other for a link at once; the smaller one's request wins."
    return whole("glare", about, scene, Troubles(), ends)


def _alone(scene: Scene) -> Iterator[Case]:
    for link in links_of(scene, "b"):
        yield {**link, "a asks for the other": "1"}


def _unasked(scene: Scene) -> dict[str, str]:
    return {**unlinked(scene), **{f"{own} asks for the other": "1" for own in scene.runtimes}}


def _late(tables: Mapping[str, Table], bounds: Bounds) -> Composition:
    scene = _scene(tables, bounds, Patience.AT_REST, Haste.NONE)
    ends = [_linked(scene), End("nothing is linked", (unlinked(scene),))]
    about = "The same, but registries and stubs hear of each other late."
    return whole("glare-late", about, scene, Troubles(), ends)


def _faults(tables: Mapping[str, Table], bounds: Bounds) -> Composition:
    scene = _scene(tables, bounds, Patience.NONE, Haste.LOCAL_FIRST)
    ends = [_linked(scene), End("nothing is linked", (unlinked(scene),))]
    about = "The same, and deadlines are over at any moment."
    return whole("glare-timeout", about, scene, Troubles(), ends)


GLARE: Final = Plan("glare", _glare, Bounds(losses=0, duplicates=0))
"""Both ask at once."""

GLARE_LATE: Final = Plan(
    "glare-late", _late, Bounds(losses=0, duplicates=0, channel=2), is_default=False
)
"""And registries hear of their stubs late: so many states that it is explored when named."""

GLARE_TIMEOUT: Final = Plan("glare-timeout", _faults, Bounds(losses=1, duplicates=0))
"""And deadlines are over at any moment."""
