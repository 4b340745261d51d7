"""What the steps of a scenario show of questions and answers, and of what lies behind them."""

from collections.abc import Iterator
from typing import Final, final

import attrs

from actors.play.script import MessageStep, Scenario
from fsm.cores.record_index import By, search_of
from specs.address import domain_of, domain_registry, is_backend
from specs.jsonvalue import Json, JsonObject
from specs.message import Message, MessageType

__all__ = ["ShownRecord", "answers_to", "shown_records"]

_LISTS: Final = ("resources", "dataSchemes")


@final
@attrs.frozen
class ShownRecord:
    """A record that a domain registry shows in an answer.

    Attributes:
        user: For whom it was looked; None: for nobody.
        resources: What it was looked for by; likewise `data_schemes`.
    """

    url: str
    status: str | None
    user: str | None
    resources: tuple[str, ...]
    data_schemes: tuple[str, ...]


def answers_to(scenario: Scenario, type_: MessageType) -> Iterator[tuple[Message, Message]]:
    """Yield the requests of a kind that go to services of domains, each with its answers."""
    messages = [step.message for step in scenario.steps if isinstance(step, MessageStep)]
    for request in messages:
        if request.type is type_ and is_backend(request.to):
            for answer in messages:
                if _answers(answer, request):
                    yield request, answer


def shown_records(scenario: Scenario) -> Iterator[ShownRecord]:
    """Yield the records that searches in domain registries find."""
    for request, answer in answers_to(scenario, MessageType.READ):
        if request.to != domain_registry(domain_of(request.to)):
            continue
        resource, criteria = request.body.get("resource"), request.body.get("criteria")
        narrowed = criteria if isinstance(criteria, dict) else {}
        search = search_of(resource, narrowed) if isinstance(resource, str) else None
        if search is None:
            continue
        user = search.value if search.by is By.USER else None
        for record in _records(answer.body.get("value")):
            url, status = record.get("url"), record.get("status")
            if isinstance(url, str):
                lists = (_texts(narrowed.get(name)) for name in _LISTS)
                yield ShownRecord(url, str(status) if status else None, user, *lists)


def _answers(answer: Message, request: Message) -> bool:
    ends = (answer.from_, answer.to, answer.id)
    return answer.is_response and ends == (request.to, request.from_, request.id)


def _records(value: Json) -> list[JsonObject]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _texts(value: Json) -> tuple[str, ...]:
    return tuple(one for one in value if isinstance(one, str)) if isinstance(value, list) else ()
