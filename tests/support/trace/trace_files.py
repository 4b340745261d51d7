"""Traces as processes write them, and the ways to spoil them."""

import json
import random
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import attrs

from fsm.judge.trace_line import wire_name
from fsm.machine_list import MACHINES
from fsm.table import Table, Transition
from specs.trace import ABSENT, SCHEMA, Fact, Kind, Op, Stamp

TABLES = tuple(MACHINES.values())
Record = dict[str, object]
STAMP_NAMES, FACT_NAMES = [
    [(field.name, wire_name(field.name)) for field in attrs.fields(kind)] for kind in (Stamp, Fact)
]
"""The fields, which are texts and numbers, and their names in a trace."""


def step(machine: str, key: str, old: str, cause: str, new: str) -> Fact:
    return Fact(k=Kind.STATE, op=Op.STEP, machine=machine, key=key, old=old, cause=cause, new=new)


def refused(machine: str, key: str, old: str, cause: str) -> Fact:
    return Fact(k=Kind.STATE, op=Op.REFUSED, machine=machine, key=key, old=old, cause=cause)


def session(*states: str, key: str = "mn|ra") -> list[Fact]:
    """The story of a session through `states`, by the rows that lead there."""
    facts, old = [], ABSENT
    for state in states:
        row = next(row for row in MACHINES["session"].rows if row.edge == (old, state))
        facts.append(step("session", key, old, row.trigger.value, state))
        old = state
    return facts


def whole(facts: Iterable[Fact]) -> list[Fact]:
    """With the start and the end that an orderly process writes."""
    return [Fact(k=Kind.START, why=SCHEMA), *facts, Fact(k=Kind.END)]


def record(fact: Fact, ln: int, run: str = "r1", node: str = "alice") -> Record:
    stamp = Stamp(run=run, node=node, ln=ln, wall_ns=ln, mono_ns=ln, t=ln / 100, actor="test")
    return {
        there: value
        for names, one in ((STAMP_NAMES, stamp), (FACT_NAMES, fact))
        for name, there in names
        if (value := getattr(one, name)) is not None
    }


def records(facts: Sequence[Fact], run: str = "r1", node: str = "alice") -> list[Record]:
    return [record(fact, ln, run, node) for ln, fact in enumerate(facts, start=1)]


def write_trace(directory: Path, lines: Iterable[Record | str], part: int = 0) -> Path:
    """Write records, and lines that are none, as one part file."""
    directory.mkdir(parents=True, exist_ok=True)
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    path = directory / f"part-{part:05}.jsonl"
    path.write_text("".join(f"{text}\n" for text in texts))
    return path


def walk(table: Table, key: str, dice: random.Random) -> list[Fact]:
    """A story along declared rows, to a state that may end."""
    history: list[Fact] = []
    state: str = ABSENT
    rests = {state.value for state in table.may_end}
    while state not in rests or (dice.random() < 0.5 and ways(table, state)):
        row = dice.choice(ways(table, state))
        history.append(step(table.name, key, state, row.trigger.value, row.target.value))
        state = row.target.value
    return history


def ways(table: Table, state: str) -> list[Transition]:
    return [row for row in table.rows if row.old == state]


def braid(histories: Sequence[Sequence[Fact]], dice: random.Random) -> list[Fact]:
    """Several stories as one process tells them: each in order, between each other."""
    turns = [which for which, history in enumerate(histories) for _ in history]
    dice.shuffle(turns)
    left = [iter(history) for history in histories]
    return [next(left[which]) for which in turns]


def _swap(facts: list[Fact], at: int, dice: random.Random) -> list[Fact]:
    other = dice.randrange(len(facts))
    facts[at], facts[other] = facts[other], facts[at]
    return facts


def _drop(facts: list[Fact], at: int, _dice: random.Random) -> list[Fact]:
    return facts[:at] + facts[at + 1 :]


def _duplicate(facts: list[Fact], at: int, _dice: random.Random) -> list[Fact]:
    return [*facts[: at + 1], *facts[at:]]


def _change_target(facts: list[Fact], at: int, dice: random.Random) -> list[Fact]:
    states = [state.value for state in dice.choice(TABLES).states]
    facts[at] = attrs.evolve(facts[at], new=dice.choice([*states, "nowhere"]), op=Op.STEP)
    return facts


def _truncate(facts: list[Fact], at: int, _dice: random.Random) -> list[Fact]:
    return facts[: at + 1]


def _alien_trigger(facts: list[Fact], at: int, dice: random.Random) -> list[Fact]:
    triggers = [row.trigger.value for table in TABLES for row in table.rows]
    facts[at] = attrs.evolve(facts[at], cause=dice.choice([*triggers, "sneezed"]))
    return facts


def _refuse(facts: list[Fact], at: int, _dice: random.Random) -> list[Fact]:
    facts[at] = attrs.evolve(facts[at], op=Op.REFUSED, new=None)
    return facts


def _alien_machine(facts: list[Fact], at: int, _dice: random.Random) -> list[Fact]:
    facts[at] = attrs.evolve(facts[at], machine="perpetuum_mobile")
    return facts


MUTATIONS: tuple[Callable[[list[Fact], int, random.Random], list[Fact]], ...] = (
    _swap, _drop, _duplicate, _change_target, _truncate, _alien_trigger, _refuse, _alien_machine,
)  # fmt: skip


def generated(count: int, seed: int) -> list[list[Record]]:
    """Traces of runs of their own, every other one with one to three mutations.

    Some lose a record after they were written: what is missing is no proof of anything.
    """
    dice = random.Random(seed)  # noqa: S311 - reproducible, not secret
    return [_generated(number, dice) for number in range(count)]


def _generated(number: int, dice: random.Random) -> list[Record]:
    histories = [
        walk(dice.choice(TABLES), f"e{entity}|{number}", dice)
        for entity in range(dice.randint(1, 4))
    ]
    facts = braid(histories, dice)
    if number % 2:
        facts = _mutated(facts, dice)
    reported = records(whole(facts), run=f"r{number}", node=f"n{number % 7}")
    if number % 20 in {0, 1}:
        del reported[dice.randrange(len(reported))]
    return reported


def _mutated(facts: list[Fact], dice: random.Random) -> list[Fact]:
    for _ in range(dice.randint(1, 3)):
        if facts:
            facts = dice.choice(MUTATIONS)(facts, dice.randrange(len(facts)), dice)
    return facts
