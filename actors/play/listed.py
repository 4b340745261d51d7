"""What registries tell each other over a link, as a scenario shows it: what lives where."""

from collections.abc import Mapping
from typing import Final

from actors.play.script import MessageStep, Scenario
from specs.address import runtime_of
from specs.message import Message, MessageType

__all__ = ["listed_in"]

_REGISTRY: Final = "/registry"
_CHANGES: Final = "/changes"


def listed_in(scenario: Scenario) -> Mapping[str, tuple[str, ...]]:
    """Return by runtime what its registry lists when another begins to follow it."""
    messages = [step.message for step in scenario.steps if isinstance(step, MessageStep)]
    asked = [message for message in messages if _is_following(message)]
    return {
        runtime_of(request.to): _list(answer)
        for request in asked
        for answer in messages
        if answer.is_response and _is_answer(answer, request)
    }


def _is_following(message: Message) -> bool:
    registry = f"{runtime_of(message.to)}{_REGISTRY}"
    is_asked = message.type is MessageType.SUBSCRIBE and message.to == registry
    return is_asked and message.body.get("resources") == [f"{registry}{_CHANGES}"]


def _is_answer(answer: Message, request: Message) -> bool:
    ends = (answer.from_, answer.to) == (request.to, request.from_)
    return ends and answer.id == request.id


def _list(answer: Message) -> tuple[str, ...]:
    value = answer.body.get("value")
    return tuple(one for one in value if isinstance(one, str)) if isinstance(value, list) else ()
