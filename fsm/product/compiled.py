"""The rules of a composition, compiled: which are asked when, and where they lead.

Where a part goes is looked up here in its table, for each of its states, once: guards,
missing rows and all. Nothing else decides it.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias, final

import attrs

from fsm.product.composition import Composition, Part
from fsm.product.encoding import Encoding, Test, states_of
from fsm.product.rule import After, Cause, Got, Happens, Move, Rule, Wished
from fsm.table import Table
from specs.trace import ABSENT

__all__ = ["UNDECLARED", "Compiled", "Program", "compile_rules", "follow", "target_of"]

UNDECLARED: Final = -1
"""Where a move leads for which the part's table has no row."""


@final
@attrs.frozen(slots=True)
class Compiled:
    """A rule, ready to be taken.

    Attributes:
        number: Its place among the composition's rules.
        tests: What must hold before.
        moves: Place of the part, and where each of its states leads.
        sets: Place and number.
        sends: Place of the channel, number of the message, room of the channel.
    """

    number: int
    tests: tuple[Test, ...]
    moves: tuple[tuple[int, tuple[int, ...]], ...]
    sets: tuple[tuple[int, int], ...]
    sends: tuple[tuple[int, int, int], ...]


_Rules: TypeAlias = tuple[Compiled, ...]


@final
@attrs.frozen(slots=True)
class Program:
    """Which rules are asked when.

    Attributes:
        on_message: By place of the channel and number of the message.
        on_deadline: Of each part, its place, and the rules for each of its states; None: the
            state has no deadline. Empty: it has one, and no rule says what is done then.
        on_wish: Of each wish, its place and rules.
        local: Whenever they hold.
        late: Those of timers that no table declares.
    """

    on_message: Mapping[tuple[int, int], _Rules]
    on_deadline: tuple[tuple[int, tuple[_Rules | None, ...]], ...]
    on_wish: tuple[tuple[int, _Rules], ...]
    local: _Rules
    late: _Rules


def target_of(table: Table, state: str, trigger: str, given: Iterable[str] = ()) -> str | None:
    """Where a trigger leads, if exactly the conditions `given` are true; None: no row says so."""
    true = frozenset(one for one in table.conditions if one in set(given))
    for row in table.rows_for(state, trigger):
        if row.guard.holds(true):
            return row.target.value
    return None


def follow(part: Part, move: Move) -> tuple[int, ...]:
    """Where each state of a part leads by a move; `UNDECLARED`: no row says so."""
    return tuple(_target(part.table, state, move) for state in states_of(part))


def _target(table: Table, state: str, move: Move) -> int:
    if move.begins and state != ABSENT and state not in table.may_end:
        return UNDECLARED
    target = target_of(table, ABSENT if move.begins else state, move.trigger, move.given)
    return UNDECLARED if target is None else 1 + [*table.states].index(table.states(target))


def compile_rules(composition: Composition, code: Encoding) -> Program:
    """Compile the rules of a composition.

    Raises:
        SpecError: A rule speaks of something that the composition does not have.
    """
    parts = {part.name: part for part in composition.parts}
    of: defaultdict[Cause, _Rules] = defaultdict(tuple)
    local: dict[bool, _Rules] = {False: (), True: ()}
    for number, rule in enumerate(composition.rules):
        ready = _compiled(number, rule, parts, code)
        _look_at(rule, parts, code)
        if isinstance(rule.cause, Happens):
            local[rule.cause.is_late] += (ready,)
        else:
            of[rule.cause] += (ready,)
    on_message = {
        (code.channel(cause.channel), code.message(cause.message)): found
        for cause, found in of.items()
        if isinstance(cause, Got)
    }
    wishes = [(code.place[one.name], of[Wished(one.name)]) for one in composition.wishes]
    deadlines = [(code.place[part.name], _on_deadlines(part, of)) for part in composition.parts]
    return Program(on_message, tuple(deadlines), tuple(wishes), local[False], local[True])


def _on_deadlines(part: Part, of: Mapping[Cause, _Rules]) -> tuple[_Rules | None, ...]:
    triggers = [_deadline(part.table, state) for state in states_of(part)]
    return tuple(
        None if trigger is None else of.get(After(part.name, trigger), ()) for trigger in triggers
    )


def _deadline(table: Table, state: str) -> str | None:
    deadline = table.deadline(state)
    trigger = None if deadline is None else deadline.trigger
    return None if trigger is None else trigger.value


def _compiled(number: int, rule: Rule, parts: Mapping[str, Part], code: Encoding) -> Compiled:
    done = rule.act
    for one in done.moves:
        if one.part not in parts:
            raise code.wrong(f"no part is named {one.part!r}")
    return Compiled(
        number,
        code.tests(done.when),
        tuple((code.place[one.part], follow(parts[one.part], one)) for one in done.moves),
        tuple((code.place[name], code.number(name, to)) for name, to in done.sets.items()),
        tuple(
            (code.channel(one.channel), code.message(one.message), code.room(one.channel))
            for one in done.sends
        ),
    )


def _look_at(rule: Rule, parts: Mapping[str, Part], code: Encoding) -> None:
    for one in rule.act.moves:
        table = parts[one.part].table
        for word, known in [
            (one.trigger, table.triggers),
            *((w, table.conditions) for w in one.given),
        ]:
            if word not in list(known):
                raise code.wrong(f"{one.part!r} has no {word!r}")
    cause = rule.cause
    if isinstance(cause, Wished) and cause.wish not in {w.name for w in code.composition.wishes}:
        raise code.wrong(f"no wish is named {cause.wish!r}")
    if isinstance(cause, After) and (cause.part, cause.trigger) not in [
        (one.part, one.trigger) for one in rule.act.moves
    ]:
        raise code.wrong(f"the rule for {cause} does not move it so")
