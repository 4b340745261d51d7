"""Which data objects a scenario takes for granted: their reporters, observers, content.

An object is there before unless the scenario has its address allocated. Its reporter is
the hyperty that a way shows with it (`HA(OBJ)`), that publishes its changes, that is
asked about it or deletes it; if only its sync manager is shown, a hyperty of that
runtime. Shown is none: a peer reports it that real actors do not run.

Who observes it: whoever's subscription leaves `active` first, whoever lives where a row
of its changes comes without a cause, and whoever is not refused when it reads the object
or writes to its children. Its version is one below the lowest change, or the snapshot's.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from actors.play.atlas import Atlas, entity_of, is_address, is_hyperty
from actors.play.homes import made_by
from actors.play.listed import listed_in
from actors.play.roles import ObjectRole
from actors.play.script import MessageStep, Scenario, StateStep, Step, TableStep
from specs.address import host_of, is_backend, is_below, runtime_of, scheme_of
from specs.jsonvalue import JsonObject
from specs.message import MessageType
from specs.reply_code import LAST_SUCCESS
from specs.trace import Op

__all__ = ["CHANGES", "is_object", "standing_objects"]

_OTHERS: Final = frozenset(
    {
        "connection",
        "domain",
        "global",
        "hyperty",
        "hyperty-catalogue",
        "hyperty-runtime",
        "user",
        "user-guid",
    }
)
"""Schemes whose addresses are no objects of hyperties."""

_SCHEMAS: Final[Mapping[str, str]] = {"comm": "Communication", "ctxt": "Context"}
_SUBSCRIPTION: Final = "subscription"
CHANGES: Final = "/changes"
"""What stands behind an object where its changes are published."""

_MANAGER: Final = "sm"
_ACTIVE: Final = "active"


def is_object(address: str) -> bool:
    """Say whether an address is a hyperty's data object's, or below one."""
    return scheme_of(address) not in _OTHERS


def standing_objects(
    scenario: Scenario, atlas: Atlas, homes: Mapping[str, str]
) -> tuple[ObjectRole, ...]:
    """Return the objects that are there before the scenario begins."""
    made = set(made_by(scenario))
    named = (entity for step in scenario.steps for entity in _named(step))
    listed = (url for urls in listed_in(scenario).values() for url in urls if is_object(url))
    urls = [url for url in dict.fromkeys([*named, *listed]) if url not in made]
    return tuple(_role(url, scenario, atlas, homes) for url in urls)


def _named(step: Step) -> Iterator[str]:
    match step:
        case MessageStep(message=message):
            addresses = [message.from_, message.to, message.body.get("resource")]
            resources = message.body.get("resources")
            addresses += resources if isinstance(resources, list) else []
        case StateStep(key=key):
            addresses = [*key]
        case TableStep(key=row):
            addresses = [row]
        case _:
            addresses = []
    for one in addresses:
        if isinstance(one, str) and is_address(one) and is_object(one):
            yield entity_of(one)


def _role(url: str, scenario: Scenario, atlas: Atlas, homes: Mapping[str, str]) -> ObjectRole:
    messages = [one for one in scenario.steps if isinstance(one, MessageStep)]
    data = next(_snapshots(url, messages), {}).get("data")
    observers = dict.fromkeys(_observers(url, scenario, homes))
    reporters = [*_reporters(url, messages, atlas, homes), *_neighbours(url, scenario)]
    reporter = next(iter(reporters), None)
    return ObjectRole(
        url=url,
        schema=_schema(url, messages),
        reporter=reporter,
        observers=tuple(one for one in observers if one != reporter),
        version=_version(url, messages),
        data=data if isinstance(data, dict) else {},
    )


def _reporters(
    url: str, messages: list[MessageStep], atlas: Atlas, homes: Mapping[str, str]
) -> Iterator[str]:
    for step in messages:
        yield from _shown_with(url, step, atlas)
    for step in messages:
        if step.message.type is MessageType.DELETE and step.message.body.get("resource") == url:
            yield step.message.from_
    managers = (
        runtime_of(address)
        for step in messages
        if step.message.to == f"{url}/{_SUBSCRIPTION}"
        for place in step.hop.last
        if place.part == _MANAGER and (address := atlas.of(place)) is not None
    )
    for home in managers:
        yield from (hyperty for hyperty, where in homes.items() if where == home)


def _shown_with(url: str, step: MessageStep, atlas: Atlas) -> Iterator[str]:
    """Yield hyperties at the end of a way at which the object itself stands."""
    message = step.message
    sent_by = atlas.hyperty(step.hop.first) if is_below(message.from_, url) else None
    taken_by = [atlas.hyperty(place) for place in step.hop.last]
    if sent_by is not None and sent_by in taken_by:
        sent_by = None
    if sent_by is not None:
        yield sent_by
    is_to_it = is_below(message.to, url) and CHANGES not in message.to
    if is_to_it or (message.type is MessageType.FORWARD and message.from_ == url):
        yield from (one for one in taken_by if one is not None and is_hyperty(one))


def _neighbours(url: str, scenario: Scenario) -> list[str]:
    """Return the hyperties that are listed with an object."""
    lists = (urls for urls in listed_in(scenario).values() if url in urls)
    return [one for urls in lists for one in urls if is_hyperty(one)]


def _observers(url: str, scenario: Scenario, homes: Mapping[str, str]) -> Iterator[str]:
    seen: set[tuple[str, ...]] = set()
    subscribed = set(_subscribed(scenario))
    for step in scenario.steps:
        match step:
            case StateStep(machine="subscription", key=(one, observer)) if one == url:
                if step.key not in seen and step.old == _ACTIVE:
                    yield observer
                seen.add(step.key)
            case TableStep(table="subs", op=Op.ADD, key=key, val=str(home)):
                if key == f"{url}{CHANGES}" and key not in subscribed:
                    yield from _one_of(home, homes)
            case MessageStep(message=message) if is_below(message.to, url):
                if is_hyperty(message.from_) and _is_welcome(scenario, step):
                    yield message.from_
            case _:
                pass


def _one_of(home: str, homes: Mapping[str, str]) -> list[str]:
    return [hyperty for hyperty, where in homes.items() if where == home][:1]


def _subscribed(scenario: Scenario) -> Iterator[str]:
    """Yield what messages of the scenario set paths for."""
    for step in scenario.steps:
        if isinstance(step, MessageStep) and step.message.type is MessageType.SUBSCRIBE:
            resources = step.message.body.get("resources")
            if is_backend(step.message.to) and isinstance(resources, list):
                yield from (one for one in resources if isinstance(one, str))


def _is_welcome(scenario: Scenario, step: MessageStep) -> bool:
    """Say whether a message is answered with a success."""
    asked = step.message
    for one in scenario.steps:
        if isinstance(one, MessageStep) and one.message.is_response:
            answer = one.message
            if (answer.id, answer.to, answer.from_) == (asked.id, asked.from_, asked.to):
                return answer.code <= LAST_SUCCESS
    return False


def _version(url: str, messages: list[MessageStep]) -> int:
    changes = [
        version - 1
        for step in messages
        if step.message.to == f"{url}{CHANGES}"
        and isinstance(version := step.message.body.get("version"), int)
    ]
    shown = [
        version
        for one in _snapshots(url, messages)
        if isinstance(version := one.get("version"), int)
    ]
    return max(1, min([*changes, *shown], default=1))


def _snapshots(url: str, messages: list[MessageStep]) -> Iterator[JsonObject]:
    for step in messages:
        value = step.message.body.get("value")
        if step.message.is_response and isinstance(value, dict) and value.get("url") == url:
            yield value


def _schema(url: str, messages: list[MessageStep]) -> str:
    for step in messages:
        schema = step.message.body.get("schema")
        about = (step.message.to, step.message.body.get("resource"))
        if isinstance(schema, str) and any(
            isinstance(one, str) and is_below(one, url) for one in about
        ):
            return schema
    scheme = scheme_of(url)
    name = _SCHEMAS.get(scheme, scheme.capitalize())
    return f"hyperty-catalogue://catalogue.{host_of(url)}/.well-known/dataschema/{name}"
