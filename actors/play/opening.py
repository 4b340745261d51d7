"""Whether a scenario shows the opening of the world itself."""

from collections.abc import Sequence

from actors.play.homes import made_by
from actors.play.roles import RuntimeRole
from actors.play.script import Scenario, StateStep

__all__ = ["has_own_set_up"]


def has_own_set_up(scenario: Scenario, runtimes: Sequence[RuntimeRole]) -> bool:
    """Say whether the scenario shows what the opening of the world does.

    That is: a handler stub, a stub to the own node, a session there, or an address
    that nobody in the scenario asks for, comes into being.
    """
    made = set(made_by(scenario))
    entities = {(one.machine, one.key) for one in scenario.steps if isinstance(one, StateStep)}
    first = {
        entity: next(
            one
            for one in scenario.steps
            if isinstance(one, StateStep) and (one.machine, one.key) == entity
        )
        for entity in entities
    }
    return any(step.old is None and _is_opened(step, runtimes, made) for step in first.values())


def _is_opened(step: StateStep, runtimes: Sequence[RuntimeRole], made: set[str]) -> bool:
    entity = step.key[-1]
    match step.machine:
        case "deploy" | "stub":
            opened = {
                f"{one.url}{end}" for one in runtimes for end in ("/p2phandler/1", "/protostub/1")
            }
            return entity in opened
        case "session":
            nodes = {one.url: one.domain for one in runtimes}
            return step.key[0] == f"MN.{nodes.get(entity, '').partition('.')[0]}"
        case "alloc":
            return entity not in made
        case _:
            return False
