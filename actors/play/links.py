"""Which P2P links a scenario speaks of, between whom, and which of them are there before.

A step of a P2P connection names both runtimes and the role. A message that a link
carries shows the requester's and the handler's stub beside it; an end that is not shown
is the runtime at that end of the message.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from actors.play.atlas import Atlas, entity_of, is_hyperty
from actors.play.hop import Place
from actors.play.listed import listed_in
from actors.play.roles import LinkRole, Pair, Standing
from actors.play.script import MessageStep, Scenario, StateStep, Step
from specs.address import RUNTIME_SCHEME, runtime_of, scheme_of

__all__ = ["begins", "link_pairs", "pair_of_state", "standing_links"]

_P2P: Final = "p2p"
_REQUESTER: Final = "requester"
_REQUESTER_PART: Final = "/p2prequester/"
_HANDLER_PART: Final = "/p2phandler/"
_BEFORE: Final[Mapping[str | None, Standing]] = {
    "created": Standing.UNDER_WAY,
    "in-progress": Standing.UNDER_WAY,
    "live": Standing.LIVE,
    "disconnected": Standing.BROKEN,
}
"""How a link stands if the first step its scenario shows of it leaves this state."""


def pair_of_state(step: Step) -> Pair | None:
    """Return whom a step of a P2P connection links: the requester first."""
    if not isinstance(step, StateStep) or step.machine != _P2P:
        return None
    match step.key:
        case (own, remote, role):
            return (own, remote) if role == _REQUESTER else (remote, own)
        case _:
            return None


def begins(step: Step) -> Pair | None:
    """Return the link that begins with a step."""
    return pair_of_state(step) if isinstance(step, StateStep) and step.old is None else None


def link_pairs(scenario: Scenario, atlas: Atlas, homes: Mapping[str, str]) -> dict[str, Pair]:
    """Return all links by the scenario's names; one it does not name by its runtimes."""
    named = dict(_carriers(scenario, atlas, homes))
    for step in scenario.steps:
        pair = pair_of_state(step)
        if pair is not None and pair not in named.values():
            named["|".join(pair)] = pair
    return named


def _carriers(
    scenario: Scenario, atlas: Atlas, homes: Mapping[str, str]
) -> Iterator[tuple[str, Pair]]:
    known: set[str] = set()
    for step in scenario.steps:
        if not isinstance(step, MessageStep) or step.link is None or step.link in known:
            continue
        pair = _pair_of_message(step, atlas, homes)
        if pair is not None:
            known.add(step.link)
            yield step.link, pair


def _pair_of_message(step: MessageStep, atlas: Atlas, homes: Mapping[str, str]) -> Pair | None:
    stubs = [address for place in step.hop.places if (address := atlas.of(place)) is not None]
    requester = next((runtime_of(one) for one in stubs if _REQUESTER_PART in one), None)
    handler = next((runtime_of(one) for one in stubs if _HANDLER_PART in one), None)
    ends = [_home(step.message.from_, homes), _home(step.message.to, homes)]
    ends += [_shown(place, atlas) for place in step.hop.places]
    others = [end for end in ends if end is not None and end not in {requester, handler}]
    requester = requester or next(iter(others), None)
    handler = handler or next((one for one in others if one != requester), None)
    return None if requester is None or handler is None else (requester, handler)


def _home(address: str, homes: Mapping[str, str]) -> str | None:
    if is_hyperty(address):
        return homes.get(entity_of(address))
    return runtime_of(address) if scheme_of(address) == RUNTIME_SCHEME else None


def _shown(place: Place, atlas: Atlas) -> str | None:
    return atlas.runtime(place)


def standing_links(scenario: Scenario, pairs: Mapping[str, Pair]) -> tuple[LinkRole, ...]:
    """Return the links that are there, or under way, before the first step.

    By the state that a link's first step leaves; a link that carries a message, but of
    whose connection the scenario shows no step, is live. It is under way if its registries
    ask each other what changes: they do as soon as it is live.
    """
    found: dict[Pair, LinkRole] = {}
    listed = listed_in(scenario).keys()
    shown = [(pair_of_state(step), step) for step in scenario.steps]
    for pair in dict.fromkeys(pairs.values()):
        first = next((step for one, step in shown if one == pair), None)
        old = first.old if isinstance(first, StateStep) else "live"
        standing = _BEFORE.get(old) if listed.isdisjoint(pair) else Standing.UNDER_WAY
        if standing is not None:
            found[pair] = LinkRole(pair, standing)
    return tuple(found.values())
