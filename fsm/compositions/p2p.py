"""One runtime links to another: requester, handler, both registries, and what lies between.

`a` asks for `b`. Its registry writes an entry and deploys a requester; objects are made,
invited to, answered and observed through message nodes, which lose and repeat; links are
dialled, opened, cut, come back in place, or do not; either end may give up at any time,
and a runtime may go. A local event is never lost, but may come late: that a registry knows
less than its stub is part of what is explored.

What is left out, and why nothing is lost by it:

* What objects contain, besides whether there are candidates and a plea, and which plea.
  All candidates of an end are dialled as one, which opens or not.
* A version gap: the change after a lost one carries the whole object, as the reading does
  that the observer asks for (M-41).
* A request without answer (408): the end gives up then, as it does at its deadline, which
  may be over at any moment here.
* The network keeps the order of one direction, whichever node a message goes by.
* Time: a deadline may be over at any moment, however long it is. A pong is missing only
  where the link is gone and no notice of it came.
* That a requester is `in-progress` for the first time is not told to its registry, which
  would do nothing.
* A new offer takes the place of the old one in one change. How many orders to connect come
  before it is left open.
* The deadline of an entry: those of its stubs are shorter, and every stub tells. Only one
  that is no P2P stub lets it come.
* Of the registry's tries to get a link back there are fewer.
"""

from collections.abc import Mapping
from typing import Final

from fsm.compositions.p2p_claims import links_of, unlinked
from fsm.compositions.p2p_scene import Scene
from fsm.compositions.p2p_whole import Troubles, whole
from fsm.product.bounds import Bounds
from fsm.product.composition import Composition, End, Plan
from fsm.table import Table

__all__ = ["P2P", "P2P_AGAIN", "P2P_ANEW", "P2P_ENDS"]


def _ends(scene: Scene) -> tuple[End, ...]:
    return (
        End("nothing is linked", (unlinked(scene),)),
        End("linked", tuple(links_of(scene, "a"))),
    )


def _p2p(tables: Mapping[str, Table], bounds: Bounds) -> Composition:
    scene = Scene(tables=tables, asks={"a": 1, "b": 0}, bounds=bounds, links=1, tries=1)
    about = "One runtime links to another; messages are lost or repeated, dials fail."
    return whole("p2p", about, scene, Troubles(dials=1, refusals=1), _ends(scene))


def _p2p_again(tables: Mapping[str, Table], bounds: Bounds) -> Composition:
    scene = Scene(tables=tables, asks={"a": 1, "b": 0}, bounds=bounds, links=2, tries=1)
    about = "A link is cut, with or without notice, and comes back in place or is given up."
    return whole("p2p-reconnect", about, scene, Troubles(cuts=1), _ends(scene))


def _p2p_anew(tables: Mapping[str, Table], bounds: Bounds) -> Composition:
    scene = Scene(
        tables=tables, asks={"a": 1, "b": 0}, bounds=bounds, links=2, tries=1, negotiations=2
    )
    about = "A link is cut, with or without notice, and comes back by a new offer, or does not."
    return whole("p2p-renegotiate", about, scene, Troubles(cuts=1), _ends(scene))


def _p2p_ends(tables: Mapping[str, Table], bounds: Bounds) -> Composition:
    scene = Scene(tables=tables, asks={"a": 1, "b": 0}, bounds=bounds, links=1, tries=1)
    about = "Either runtime goes while a link is set up or live."
    return whole("p2p-leave", about, scene, Troubles(leaves=("a", "b")), _ends(scene))


P2P: Final = Plan("p2p", _p2p, Bounds(losses=1, duplicates=1))
"""The set-up."""

P2P_AGAIN: Final = Plan("p2p-reconnect", _p2p_again, Bounds(losses=0, duplicates=0))
"""A link that is lost."""

P2P_ANEW: Final = Plan("p2p-renegotiate", _p2p_anew, Bounds(losses=0, duplicates=0))
"""A link that is lost, and negotiated anew."""

P2P_ENDS: Final = Plan("p2p-leave", _p2p_ends, Bounds(losses=0, duplicates=0))
"""A runtime that goes."""
