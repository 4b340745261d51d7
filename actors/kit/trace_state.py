"""What the evidence tells of entities: as a fact, and as the text of one."""

from typing import Final

import orjson

from fsm.engine import Step
from fsm.errors import UndeclaredTransitionError
from specs.trace import ABSENT, Fact, Kind, Op

__all__ = ["refused_fact", "step_fact", "step_text"]

_K: Final = Kind.STATE.value
_OP: Final = Op.STEP.value


def step_fact(step: Step) -> Fact:
    """Say that an entity moved."""
    return Fact(
        k=Kind.STATE,
        op=Op.STEP,
        machine=step.machine,
        key=step.key,
        old=ABSENT if step.old is None else step.old,
        new=step.new,
        cause=step.cause,
        why=step.why or None,
    )


def refused_fact(error: UndeclaredTransitionError) -> Fact:
    """Say that an entity was asked to move as no table declares, and did not."""
    return Fact(
        k=Kind.STATE,
        op=Op.REFUSED,
        machine=error.machine,
        key=error.key,
        old=ABSENT if error.state is None else error.state,
        cause=error.trigger,
    )


def step_text(actor: str, step: Step) -> bytes:
    """Write what `step_fact` tells as the inside of a JSON object.

    Raises:
        TypeError: Something has no place in JSON.
    """
    told = {
        "actor": actor,
        "k": _K,
        "op": _OP,
        "machine": step.machine,
        "key": step.key,
        "old": ABSENT if step.old is None else step.old,
        "new": step.new,
        "cause": step.cause,
    }
    if step.why:
        told["why"] = step.why
    return orjson.dumps(told)[1:-1]
