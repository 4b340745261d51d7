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
from specs.jsonvalue import JsonObject

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
    both = (scene.runtimes, scene.runtimes[::-1])
    wishes = [
        product.Wish(f"{own} {_ASKS}", scene.asks[own], done=_asks(own, other))
        for own, other in both
    ]
    wishes += [
        product.Wish(f"{own} goes", int(own in troubles.leaves), done=_goes(own)) for own, _ in both
    ]
    cut: JsonObject = {"fault": "link cut", "between": [*map(_runtime, scene.runtimes)]}
    wishes += [
        product.Wish("the link is cut", troubles.cuts, is_fault=True, done=cut),
        product.Wish("a dial fails", troubles.dials, is_fault=True),
        product.Wish("an object is refused", troubles.refusals, is_fault=True),
    ]
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
        given=tuple(_given(scene)),
    )


# ---- in scenario files


def _given(scene: Scene) -> Iterator[JsonObject]:
    """The lines that say who is there: two runtimes, each with a hyperty."""
    for own in scene.runtimes:
        yield {"given": "node", "domain": f"{own}.ex"}
    for own in scene.runtimes:
        yield {"given": "runtime", "is": _runtime(own), "p2p": True}
    for own in scene.runtimes:
        yield {"given": "hyperty", "is": _hyperty(own), "in": _runtime(own), "answers": True}


def _asks(own: str, other: str) -> JsonObject:
    return {"do": "ask", "by": _hyperty(own), "of": _hyperty(other)}


def _goes(own: str) -> JsonObject:
    return {"fault": "runtime shutdown", "of": _runtime(own)}


def _runtime(own: str) -> str:
    return f"R{own.upper()}"


def _hyperty(own: str) -> str:
    return f"hyperty://{own}.ex/asking"
