"""A P2P composition, made of its scene."""

from collections.abc import Iterator, Sequence
from typing import Final, final

import attrs

from fsm.compositions.p2p_claims import never
from fsm.compositions.p2p_handler import handler_rules
from fsm.compositions.p2p_link import end_rules, link_rules
from fsm.compositions.p2p_messages import messages_of
from fsm.compositions.p2p_registry import registry_rules
from fsm.compositions.p2p_requester import requester_rules
from fsm.compositions.p2p_scene import Scene
from fsm.product import composition as product
from fsm.product.rule import Rule

__all__ = ["Troubles", "rules_of", "whole"]


@final
@attrs.frozen(slots=True, kw_only=True)
class Troubles:
    """How often the surroundings may do what in one run.

    Attributes:
        cuts: Break a link, with or without notice.
        dials: Let a dial fail although somebody listens.
        refusals: Refuse an own object.
        leaves: Runtimes that may go.
    """

    cuts: int = 0
    dials: int = 0
    refusals: int = 0
    leaves: tuple[str, ...] = ()


_ASKS: Final = "asks for the other"


def rules_of(scene: Scene) -> Iterator[Rule]:
    """Every rule of a scene."""
    for own in scene.runtimes:
        yield from registry_rules(scene, own)
        for end in scene.requesters(own):
            yield from requester_rules(scene, end)
        if scene.handlers(own):
            yield from handler_rules(scene, own)
        for end in scene.ends(own):
            yield from end_rules(scene, end)
        yield from link_rules(scene, own)


def whole(
    name: str,
    about: str,
    scene: Scene,
    troubles: Troubles,
    ends: Sequence[product.End],
) -> product.Composition:
    """Put a scene together."""
    rules = tuple(rules_of(scene))
    wishes = [_wish(f"{own} {_ASKS}", scene.asks[own]) for own in scene.runtimes]
    wishes += [_wish(f"{own} goes", int(own in troubles.leaves)) for own in scene.runtimes]
    faults = {
        "the link is cut": troubles.cuts,
        "a dial fails": troubles.dials,
        "an object is refused": troubles.refusals,
    }
    wishes += [product.Wish(what, budget, is_fault=True) for what, budget in faults.items()]
    return product.Composition(
        name=name,
        about=about,
        parts=tuple(scene.parts()),
        variables=tuple(scene.variables()),
        channels=tuple(scene.channels()),
        messages=tuple(messages_of(scene, rules)),
        wishes=tuple(wishes),
        rules=rules,
        never=tuple(never(scene)),
        ends=tuple(ends),
        bounds=scene.bounds,
        patience=scene.patience,
        haste=scene.haste,
    )


def _wish(name: str, budget: int) -> product.Wish:
    """In scenarios, runtimes are called `RA` and `RB`."""
    return product.Wish(name, budget, call=f"R{name[0].upper()}{name[1:]}")
