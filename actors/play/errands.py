"""Which requests of a runtime's own parts nothing in their scenario causes.

Parts of a runtime (registry, address allocation, sync manager, user agent) do what
others make them do. Where a scenario shows a request of one to a message node, and
before it nothing that could be the cause, somebody outside ordered it, and the player
does. What can be a cause:

| part | is caused by |
|---|---|
| sync manager | a message to it that a node did not make |
| address allocation | the same at the sync manager of its runtime; a call |
| registry | the same; a step, row or unknown way of a P2P link of its runtime |
| | a message to the address it asks about; time that passes |
| user agent | its handler stub being deployed |
"""

from collections.abc import Iterable
from typing import Final

from actors.play.hop import Place
from actors.play.macros import expanded
from actors.play.script import (
    CallStep,
    Flag,
    MessageStep,
    ResolveStep,
    Scenario,
    StateStep,
    Step,
    TableStep,
    TimeStep,
)
from specs.address import (
    RUNTIME_SCHEME,
    domain_of,
    host_of,
    is_backend,
    last_segment,
    runtime_of,
    scheme_of,
)
from specs.message import Message, MessageType

__all__ = ["followed_by", "is_errand", "watched_by"]

_DEPTH: Final = 5
"""Parts of `hyperty-runtime://domain/name/part`, split at slashes."""

_MANAGER: Final = "sm"
_REGISTRY: Final = "registry"
_CHANGES: Final = "/changes"
_REGISTRATION: Final = "/registration"


def is_errand(scenario: Scenario, step: MessageStep) -> bool:
    """Say whether a message is a request that the player must order."""
    message = step.message
    if not message.is_request or Flag.DUP in step.flags or Flag.CONTROL in step.flags:
        return False
    if not _is_part(message.from_) or not is_backend(message.to):
        return False
    before = [one for one in scenario.steps if one.number < step.number]
    return not any(_causes(one, message) for one in before)


def _is_part(address: str) -> bool:
    return scheme_of(address) == RUNTIME_SCHEME and len(address.split("/")) == _DEPTH


def _causes(step: Step, asked: Message) -> bool:
    home, part = runtime_of(asked.from_), last_segment(asked.from_)
    match step:
        case MessageStep(message=message):
            is_sought = part == _REGISTRY and asked.body.get("resource") == message.to
            is_told = _has_manager(step.hop.last, home) and not is_backend(message.from_)
            return is_sought or (part in {_MANAGER, "address-allocation", _REGISTRY} and is_told)
        case CallStep():
            return part == "address-allocation"
        case StateStep(machine="deploy", key=key):
            return part == "ua" and runtime_of(key[-1]) == home
        case TimeStep():
            # It keeps its registrations alive, and looks again for who was away.
            return part == _REGISTRY
        case _:
            return part == _REGISTRY and _is_of_link(step, home)


def _is_of_link(step: Step, home: str) -> bool:
    match step:
        case StateStep(machine="p2p", key=key):
            return key[0] == home
        case TableStep(table="p2p", at=at):
            return _is_at(at, home)
        case ResolveStep(at=at, to=to, result=None):
            return _is_at(at, home) and runtime_of(to) != home
        case _:
            return False


def _has_manager(places: Iterable[Place], home: str) -> bool:
    return any(place.part == _MANAGER and _is_at(place, home) for place in places)


def _is_at(place: Place, home: str) -> bool:
    return expanded(place.root) == home or last_segment(home) == place.root.lower()


def followed_by(message: Message) -> str | None:
    """Return the object whose changes a request for paths is about."""
    return _subscribed(message, _CHANGES)


def watched_by(message: Message) -> str | None:
    """Return the record whose status a request for paths is about."""
    return _subscribed(message, _REGISTRATION)


def _subscribed(message: Message, part: str) -> str | None:
    resources = message.body.get("resources")
    if message.type is not MessageType.SUBSCRIBE or not isinstance(resources, list):
        return None
    texts = (one for one in resources if isinstance(one, str))
    mine = (one.removesuffix(part) for one in texts if one.endswith(part))
    return next((one for one in mine if host_of(one) == domain_of(message.to)), None)
