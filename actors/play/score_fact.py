"""Which facts can be a scenario's steps of entities, rows, routes and rulings."""

from collections.abc import Iterator
from typing import Final, final

from actors.play.content import Content
from actors.play.difference import Candidate, NearMiss
from actors.play.facts import Move, belongs, machine_name, moves
from actors.play.names import Names
from actors.play.observer import Observer, Seen
from actors.play.order import Match
from actors.play.places import Places
from actors.play.rows import row_holds
from actors.play.script import AuthzStep, ResolveStep, Scenario, StateStep, TableStep
from specs.reply_code import Code
from specs.trace import ABSENT, Fact, Kind, Op

__all__ = ["FactScore"]

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
        self._told = _told_states(scenario)

    def _items(self) -> Iterator[Seen]:
        yield from self._observer.items[self._observer.start :]

    def _is_at(self, step: TableStep | ResolveStep | AuthzStep, seen: Seen) -> bool:
        """Tell whether something was seen in the process where a step is."""
        process = self._places.process(step.at)
        return process is None or self._names.actual(process) == seen.who

    # ---- states

    def states(self, step: StateStep) -> Iterator[Candidate | NearMiss]:
        """Yield steps of entities that can be the step: one, or several in a row.

        One step of a scenario may be several of the entity: it may pass through states
        that the scenario does not tell of this entity.
        """
        name = machine_name(step.machine)
        if name is None:
            yield NearMiss(0, f"no machine is called {step.machine!r}")
            return
        seen = list(moves(self._items(), name))
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
        told = self._told[(step.machine, *step.key)]
        for move in chain:
            if move.new == step.new:
                return Candidate(Match(chain[0].number, move.number), trial, move.key)
            if move.new in told:
                break
        return NearMiss(_LIKE_KEY, _show_move(step, chain[0]))

    def bind(self, step: StateStep, candidate: Candidate) -> None:
        """Say which entity a step is of, once a candidate was taken."""
        self.entities[step.machine, *step.key] = candidate.told

    # ---- rows

    def rows(self, step: TableStep) -> Iterator[Candidate | NearMiss]:
        """Yield changes of rows that can be the step.

        What a scenario tells of a row that comes may be filled in by a later change of
        it, and one change may be what the scenario tells as several.
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

        A bus keeps the routes it was told: that it gives a message to the stub says
        the same. That no way is known is seen when the search begins, or when a router
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


def _told_states(scenario: Scenario) -> dict[tuple[str, ...], set[str]]:
    """Collect the states that a scenario tells of each entity."""
    told: dict[tuple[str, ...], set[str]] = {}
    for step in scenario.steps:
        if isinstance(step, StateStep):
            states = told.setdefault((step.machine, *step.key), set())
            states |= {step.new, step.old or ABSENT}
    return told


def _show_move(step: StateStep, move: Move) -> str:
    old = "nothing" if move.old == ABSENT else move.old
    return f"{step.machine}({'|'.join(step.key)}): {old} -> {move.new}"
