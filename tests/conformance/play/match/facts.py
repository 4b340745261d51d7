"""Facts that are steps of entities, rows, routes and rulings of a scenario."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, final

import attrs

from specs.jsonvalue import Json, JsonObject
from specs.reply_code import Code
from specs.trace import ABSENT, Fact, Kind, Op
from tests.conformance.play.match.difference import Candidate, NearMiss
from tests.conformance.play.match.names import Content, Names
from tests.conformance.play.match.observer import Observer, Seen
from tests.conformance.play.match.order import Match
from tests.conformance.play.script.addresses import Places
from tests.conformance.play.script.hop import read_place
from tests.conformance.play.script.steps import (
    LINK,
    AuthzStep,
    ResolveStep,
    Scenario,
    StateStep,
    TableStep,
)

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


def moves(items: Iterable[Seen], machine: str) -> Iterator[Move]:
    """Yield the steps of a machine's entities; a P2P link is one for both of its ends.

    Args:
        items: The items, in order.
        machine: Name of the machine.
    """
    last: dict[str, Op] = {}
    for seen in items:
        fact = seen.fact
        if machine == LINK and fact.k is Kind.LINK and fact.kind == _PEER_LINK and fact.op:
            name = fact.link or ""
            if last.get(name) is not fact.op:
                last[name] = fact.op
                yield Move(seen.number, seen.who, name, *_LINK_STATES[fact.op])
        elif fact.k is Kind.STATE and fact.op is Op.STEP and fact.machine == machine:
            yield Move(seen.number, seen.who, fact.key or "", fact.old or ABSENT, fact.new or "")


def belongs(move: Move, step: StateStep, names: Names) -> bool:
    """Return whether a step seen can be of the entity that a scenario means.

    Each part of the scenario's key is a part of the entity's own, in this order; a
    node's name in front may also say where the entity is. What is left (which history,
    which stub) the scenario does not name.

    Args:
        move: Observed step.
        step: Step of the scenario.
        names: Values that stand for names of the scenario.
    """
    parts = move.key.split("|")
    if step.machine == LINK:
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


_LIKE_KEY: Final = 3
_LIKE_KIND: Final = 1


@final
class FactScore:
    """Finds facts for steps.

    Attributes:
        entities: Keys of entities by what the scenario calls them: machine and key.
    """

    def __init__(
        self, scenario: Scenario, places: Places, names: Names, observer: Observer
    ) -> None:
        self.entities: dict[tuple[str, ...], str] = {}
        self._places = places
        self._names = names
        self._observer = observer
        self._states = _states_of(scenario)

    def _items(self) -> Iterator[Seen]:
        yield from self._observer.items[self._observer.start :]

    def _is_at(self, step: TableStep | ResolveStep | AuthzStep, seen: Seen) -> bool:
        """Return whether something was seen in the process where a step is."""
        process = self._places.process(step.at)
        return process is None or self._names.actual(process) == seen.who

    # ---- states

    def states(self, step: StateStep) -> Iterator[Candidate | NearMiss]:
        """Yield steps of entities that can be the step: one, or several in a row.

        One step of a scenario may be several of the entity: it may pass through states
        that the scenario does not have of this entity.
        """
        seen = list(moves(self._items(), step.machine))
        for place, move in enumerate(seen):
            trial = self._names.copy()
            if not self._is_meant(step, move, trial):
                continue
            if move.old != (step.old or ABSENT):
                yield NearMiss(_LIKE_KIND, _show_move(step, move))
                continue
            yield self._chain(step, [one for one in seen[place:] if one.key == move.key], trial)

    def _is_meant(self, step: StateStep, move: Move, trial: Names) -> bool:
        bound = self.entities.get((step.machine, *step.key))
        if bound is not None and step.old is not None and bound != move.key:
            return False
        return belongs(move, step, trial)

    def _chain(self, step: StateStep, chain: list[Move], trial: Names) -> Candidate | NearMiss:
        known = self._states[(step.machine, *step.key)]
        for move in chain:
            if move.new == step.new:
                return Candidate(Match(chain[0].number, move.number), trial, move.key)
            if move.new in known:
                break
        return NearMiss(_LIKE_KEY, _show_move(step, chain[0]))

    def bind(self, step: StateStep, candidate: Candidate) -> None:
        """Say which entity a step is of, once a candidate was taken.

        Args:
            step: Step of the scenario.
            candidate: The candidate.
        """
        self.entities[step.machine, *step.key] = candidate.text

    # ---- rows

    def rows(self, step: TableStep) -> Iterator[Candidate | NearMiss]:
        """Yield changes of rows that can be the step.

        The content of a row in a scenario that comes may be filled in by a later change of
        it, and one change may be several in the scenario.
        """
        is_there = False
        for seen in self._items():
            fact = seen.fact
            if fact.k is not Kind.TABLE or fact.table != step.table or not self._is_at(step, seen):
                continue
            trial = self._names.copy()
            if not trial.unify(step.key, fact.key or ""):
                yield NearMiss(_LIKE_KIND, self._show_row(fact))
                continue
            is_there = fact.op is Op.ADD or (is_there and fact.op is Op.UPD)
            is_it = fact.op is step.op or (step.op is Op.ADD and is_there)
            if is_it and row_holds(step, fact, self._places, Content(trial)):
                yield Candidate(Match(seen.number, seen.number), trial)
            else:
                yield NearMiss(_LIKE_KEY, self._show_row(fact))

    def _show_row(self, fact: Fact) -> str:
        key = self._names.golden(fact.key or "")
        val = " ".join(self._names.golden(word) for word in (fact.val or "").split(" "))
        return f"{fact.table} {fact.op}: {key} = {val}"

    # ---- routes

    def routes(self, step: ResolveStep) -> Iterator[Candidate | NearMiss]:
        """Yield answers of a registry that can be the step.

        A bus keeps the routes that it was given: that it gives a message to the stub says
        the same. That no route is known is seen when the search begins, or when a router
        answers 404 in place of the address.
        """
        for seen in self._items():
            trial = self._names.copy()
            if not self._is_at(step, seen) or not self._is_about(step, seen.fact, trial):
                continue
            if self._has_result(step, seen, trial):
                yield Candidate(Match(seen.number, seen.number), trial)
            elif seen.fact.k is Kind.RESOLVE and seen.fact.op is Op.DONE:
                result = self._names.golden(seen.fact.result or "none")
                yield NearMiss(_LIKE_KEY, f"{step.to} => {result}")

    @staticmethod
    def _is_about(step: ResolveStep, fact: Fact, trial: Names) -> bool:
        subject = fact.from_ if fact.op is Op.SYNTH else fact.to
        is_route = fact.k is Kind.RESOLVE or fact.op in {Op.SYNTH, Op.XMIT}
        return is_route and trial.unify(step.to, subject or "")

    @staticmethod
    def _has_result(step: ResolveStep, seen: Seen, trial: Names) -> bool:
        fact = seen.fact
        if step.result is None:
            is_synth = fact.op is Op.SYNTH and fact.code == Code.NOT_FOUND
            is_search = fact.k is Kind.RESOLVE and fact.result is None
            return is_synth or is_search
        if fact.k is Kind.RESOLVE:
            return trial.unify(step.result, fact.result or "")
        return fact.op is Op.XMIT and trial.unify(step.result, fact.stub or "")

    # ---- rulings

    def rulings(self, step: AuthzStep, mid: str | None) -> Iterator[Candidate | NearMiss]:
        """Yield rulings on a message instance that can be the step.

        A message that is denied by a check before the policy is asked is denied, too.

        Args:
            step: Step of the scenario.
            mid: Identifier of the message instance; None: any.
        """
        for seen in self._items():
            fact = seen.fact
            if fact.mid != mid or mid is None or not self._is_at(step, seen):
                continue
            denied = fact.k is Kind.MSG and fact.op is Op.DENY
            if (fact.k is Kind.AUTHZ and fact.decision == step.decision) or (
                denied and step.decision == "deny"
            ):
                yield Candidate(Match(seen.number, seen.number), self._names.copy())
            elif fact.k is Kind.AUTHZ:
                yield NearMiss(_LIKE_KEY, f"{fact.decision}, {fact.why or 'no reason given'}")


def _states_of(scenario: Scenario) -> dict[tuple[str, ...], set[str]]:
    """Collect the states of each entity in a scenario."""
    found: dict[tuple[str, ...], set[str]] = {}
    for step in scenario.steps:
        if isinstance(step, StateStep):
            states = found.setdefault((step.machine, *step.key), set())
            states |= {step.new, step.old or ABSENT}
    return found


def _show_move(step: StateStep, move: Move) -> str:
    old = "nothing" if move.old == ABSENT else move.old
    return f"{step.machine}({'|'.join(step.key)}): {old} -> {move.new}"


_LISTENERS: Final = "listeners"
_MARK: Final = "@"
_NOTHING: Final = "None"
_LINK_FIELDS: Final = ("status", "url")


def row_holds(step: TableStep, fact: Fact, places: Places, content: Content) -> bool:
    """Return whether a row has the fields of the scenario; other fields may be anything.

    A table of P2P links has status, address and entities; a listener is a place; any
    other row names an address, perhaps behind a mark for people (`foreign@...`).

    Args:
        step: Step of the scenario.
        fact: The fact.
        places: Places of the scenario.
        content: Comparison of values.
    """
    match step.val:
        case None:
            return True
        case dict():
            return content.holds(step.val, _fields(step.val, fact.val or "", content.names))
        case str() if step.table == _LISTENERS:
            return _listens(step.val, fact.val or "", places, content)
        case str():
            return content.holds(step.val.rpartition(_MARK)[2], fact.val)
        case _:
            return content.holds(step.val, fact.val)


def _fields(expected: JsonObject, val: str, names: Names) -> JsonObject:
    """Return what a row of P2P links says; its entities are a set, in the order of the scenario."""
    status, url, *entities = val.split(" ")
    order = expected.get("entities")
    listed_as = order if isinstance(order, list) else []
    named = [names.actual(one) for one in listed_as if isinstance(one, str)]
    last = len(named)
    entities.sort(key=lambda one: named.index(one) if one in named else last)
    listed: list[Json] = [one for one in entities if one]
    values: tuple[Json, ...] = (status, None if url == _NOTHING else url)
    return dict(zip(_LINK_FIELDS, values, strict=True)) | {"entities": listed}


def _listens(expected: str, actual: str, places: Places, content: Content) -> bool:
    try:
        listener = places.listener(read_place(expected))
    except ValueError:
        # Words for people, such as the components that pass it on.
        return bool(actual)
    if listener is None:
        return bool(actual)
    prefix, separator, address = listener.partition(":")
    if not separator or address.startswith("//"):
        return listener == actual
    return actual.startswith(f"{prefix}:") and content.names.unify(
        address, actual.removeprefix(f"{prefix}:")
    )
