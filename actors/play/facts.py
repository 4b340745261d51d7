"""Which facts are steps of entities, rows, routes and rulings, as a scenario tells them."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, final

import attrs

from actors.play.names import Names
from actors.play.observer import Seen
from actors.play.script import StateStep
from fsm.catalogue import MACHINES
from specs.trace import ABSENT, Kind, Op

__all__ = ["Move", "belongs", "machine_name", "moves"]

_ALIASES: Final = {
    "alloc": "address",
    "deploy": "stub_deployment",
    "p2p": "p2p_connection",
    "stub": "stub_connection",
    "subscription": "object_subscription",
}
"""Tables by the short names that scenarios use."""

LINK: Final = "link"
_LINK_STATES: Final = {Op.OPEN: (ABSENT, "open"), Op.CLOSE: ("open", "closed")}
_PEER_LINK: Final = "p2p"


@final
@attrs.frozen
class Move:
    """One step of an entity that was seen."""

    number: int
    who: str
    key: str
    old: str
    new: str


def machine_name(word: str) -> str | None:
    """Return the name of the table that a scenario's word means; None if there is none."""
    name = _ALIASES.get(word, word)
    return name if name == LINK or name in MACHINES else None


def moves(items: Iterable[Seen], machine: str) -> Iterator[Move]:
    """Yield the steps of a machine's entities; a P2P link is one for both of its ends."""
    told: dict[str, Op] = {}
    for seen in items:
        fact = seen.fact
        if machine == LINK and fact.k is Kind.LINK and fact.kind == _PEER_LINK and fact.op:
            name = fact.link or ""
            if told.get(name) is not fact.op:
                told[name] = fact.op
                yield Move(seen.number, seen.who, name, *_LINK_STATES[fact.op])
        elif fact.k is Kind.STATE and fact.op is Op.STEP and fact.machine == machine:
            yield Move(seen.number, seen.who, fact.key or "", fact.old or ABSENT, fact.new or "")


def belongs(move: Move, step: StateStep, names: Names) -> bool:
    """Tell whether a step seen can be of the entity that a scenario means.

    Each part of the scenario's key is a part of the entity's own, in this order; a
    node's name in front may also say where the entity is. What is left (which story,
    which stub) the scenario does not tell.
    """
    parts = move.key.split("|")
    if machine_name(step.machine) == LINK:
        # Its name is the scenario's own: the actors have none for people.
        return names.bind(step.key[0], move.key)
    if step.key[0].startswith("MN."):
        named = _parts_of(step.key[1:], parts, names)
        return named and move.who.partition("://msg-node.")[2].partition(".")[0] == step.key[0][3:]
    return _parts_of(step.key, parts, names)


def _parts_of(golden: Sequence[str], actual: Sequence[str], names: Names) -> bool:
    left = iter(actual)
    return all(any(_is_same(part, one, names) for one in left) for part in golden)


def _is_same(golden: str, actual: str, names: Names) -> bool:
    if "://" not in golden:
        return golden == actual
    trial = names.copy()
    is_same = trial.unify(golden, actual)
    if is_same:
        names.take(trial)
    return is_same
