"""The rules of a composition, compiled: which are asked when, and where they lead.

Where a part goes is looked up here in its table, for each of its states, once: guards,
missing rows and all. Nothing else decides it.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Final, final

import attrs

from fsm.product.choice import NOTHING, Choice
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
    """What a rule does, ready to be done.

    Attributes:
        moves: Place of the part, and where each of its states leads.
        sets: Place and number.
        sends: Place of the channel, number of the message, room of the channel.
    """

    moves: tuple[tuple[int, tuple[int, ...]], ...]
    sets: tuple[tuple[int, int], ...]
    sends: tuple[tuple[int, int, int], ...]


@final
@attrs.frozen(slots=True)
class Program:
    """Which rules are asked when.

    Attributes:
        rules: What each rule does, by its number in the composition.
        on_message: By place of the channel and number of the message.
        on_deadline: Of each part, its place, and what its states wait for; None: the state has
            no deadline. A choice of nothing: it has one, and no rule says what is done then.
        on_wish: By place of the wish.
        local: One per local event.
        late: One per timer that no table declares.
    """

    rules: tuple[Compiled, ...]
    on_message: Mapping[tuple[int, int], Choice]
    on_deadline: tuple[tuple[int, tuple[Choice | None, ...]], ...]
    on_wish: tuple[tuple[int, Choice], ...]
    local: tuple[Choice, ...]
    late: tuple[Choice, ...]


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
    asked: defaultdict[Cause, list[tuple[int, tuple[Test, ...]]]] = defaultdict(list)
    for number, rule in enumerate(composition.rules):
        _look_at(rule, parts, code)
        _find_room(rule, code)
        asked[rule.cause].append((number, code.tests(rule.act.when)))
    of = {cause: Choice(tests) for cause, tests in asked.items()}
    on_message = {
        (code.channel(cause.channel), code.message(cause.message)): choice
        for cause, choice in of.items()
        if isinstance(cause, Got)
    }
    by_itself = [(one.is_late, of[one]) for one in of if isinstance(one, Happens)]
    wishes = [(code.place[w.name], of.get(Wished(w.name), NOTHING)) for w in composition.wishes]
    deadlines = [(code.place[part.name], _on_deadlines(part, of)) for part in composition.parts]
    return Program(
        rules=tuple(_compiled(rule, parts, code) for rule in composition.rules),
        on_message=on_message,
        on_deadline=tuple(deadlines),
        on_wish=tuple(wishes),
        local=tuple(choice for is_late, choice in by_itself if not is_late),
        late=tuple(choice for is_late, choice in by_itself if is_late),
    )


def _on_deadlines(part: Part, of: Mapping[Cause, Choice]) -> tuple[Choice | None, ...]:
    triggers = [_deadline(part.table, state) for state in states_of(part)]
    return tuple(
        None if trigger is None else of.get(After(part.name, trigger), NOTHING)
        for trigger in triggers
    )


def _deadline(table: Table, state: str) -> str | None:
    deadline = table.deadline(state)
    trigger = None if deadline is None else deadline.trigger
    return None if trigger is None else trigger.value


def _compiled(rule: Rule, parts: Mapping[str, Part], code: Encoding) -> Compiled:
    done = rule.act
    return Compiled(
        tuple((code.place[one.part], follow(parts[one.part], one)) for one in done.moves),
        tuple((code.place[name], code.number(name, to)) for name, to in done.sets.items()),
        tuple(
            (code.channel(one.channel), code.message(one.message), code.room(one.channel))
            for one in done.sends
        ),
    )


def _look_at(rule: Rule, parts: Mapping[str, Part], code: Encoding) -> None:
    for one in rule.act.moves:
        if one.part not in parts:
            raise code.wrong(f"no part is named {one.part!r}")
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


def _find_room(rule: Rule, code: Encoding) -> None:
    """A step that never finds room would be waited for in vain, and prove nothing."""
    for channel, count in Counter(one.channel for one in rule.act.sends).items():
        if count > code.room(channel):
            raise code.wrong(f"{rule.cause}: {count} messages have no room in {channel!r}")
