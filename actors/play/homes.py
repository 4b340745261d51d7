"""Which hyperties a scenario takes for granted, and where each of them lives."""

from collections.abc import Iterator, Sequence
from typing import Final

from actors.play.answered import shown_records
from actors.play.atlas import Atlas, entity_of, is_hyperty
from actors.play.hop import Ride
from actors.play.listed import listed_in
from actors.play.script import MessageStep, ResolveStep, Scenario, StateStep, Step, TableStep
from specs.address import (
    RUNTIME_SCHEME,
    host_of,
    is_backend,
    last_segment,
    runtime,
    scheme_of,
)
from specs.message import MessageType

__all__ = ["homes_of", "made_by"]

_PEOPLE: Final = frozenset({"alloc", "registration", "subscription"})
"""Machines and tables whose keys are addresses of hyperties or objects."""


def homes_of(scenario: Scenario, atlas: Atlas) -> dict[str, str]:
    """Return the runtime of each hyperty that is there before the scenario begins."""
    shown = dict(_shown_homes(scenario, atlas))
    made = set(made_by(scenario))
    named = (entity for step in scenario.steps for entity in _met(step, atlas))
    found = (record.url for record in shown_records(scenario) if is_hyperty(record.url))
    listed = (url for urls in listed_in(scenario).values() for url in urls if is_hyperty(url))
    met = dict.fromkeys([*named, *found, *listed])
    return {
        url: shown.get(url) or _home_by_name(url, atlas.runtimes) for url in met if url not in made
    }


def _met(step: Step, atlas: Atlas) -> Iterator[str]:
    """Yield the hyperties that a step takes for granted."""
    match step:
        case MessageStep():
            named = [*_ends(step, atlas), *_children(step)]
        case ResolveStep(to=to):
            named = [to]
        case StateStep(machine=machine, key=key) if machine in _PEOPLE:
            named = list(key)
        case TableStep(table="alloc", key=key):
            named = [key]
        case _:
            named = []
    yield from (entity_of(one) for one in named if is_hyperty(one))


def _ends(step: MessageStep, atlas: Atlas) -> list[str]:
    """Return both ends of a message, forged ones left out."""
    first, last = step.hop.first, step.hop.last
    if step.drop is not None and is_backend(atlas.of(first) or ""):
        return []
    shown = [one for place in (first, *last) if (one := atlas.hyperty(place)) is not None]
    ends = [(step.message.from_, (first,)), (step.message.to, last)]
    named = [end for end, places in ends if not any(place.root == "sandbox" for place in places)]
    return [*named, *shown]


def _children(step: MessageStep) -> list[str]:
    """Return what a request to free addresses names."""
    children = step.message.body.get("childrenResources")
    if step.message.type is not MessageType.DELETE or not isinstance(children, list):
        return []
    return [child for child in children if isinstance(child, str)]


def made_by(scenario: Scenario) -> Iterator[str]:
    """Yield what a node allocates, or a registry registers, as part of the scenario."""
    for step in scenario.steps:
        if not isinstance(step, MessageStep):
            continue
        value = step.message.body.get("value")
        if not isinstance(value, dict):
            continue
        allocated = value.get("allocated")
        if step.message.is_response and isinstance(allocated, list):
            yield from (one for one in allocated if isinstance(one, str))
        url = value.get("url")
        is_registered = step.message.type is MessageType.CREATE and is_backend(step.message.to)
        if is_registered and isinstance(url, str):
            yield url


def _shown_homes(scenario: Scenario, atlas: Atlas) -> Iterator[tuple[str, str]]:
    """Yield hyperties and their runtimes as tables, records, lists and ways show them."""
    messages = [step for step in scenario.steps if isinstance(step, MessageStep)]
    for step in scenario.steps:
        match step:
            case TableStep(table="alloc", key=key, val=str(owner)):
                if scheme_of(owner) == RUNTIME_SCHEME:
                    yield key, owner
            case _:
                pass
    for one in messages:
        value = one.message.body.get("value")
        record = value if isinstance(value, dict) else {}
        url, home = record.get("url"), record.get("runtime")
        if isinstance(url, str) and isinstance(home, str):
            yield url, home
    for home, urls in listed_in(scenario).items():
        yield from ((url, home) for url in urls)
    for one in messages:
        yield from _on_way(one, atlas)


def _on_way(step: MessageStep, atlas: Atlas) -> Iterator[tuple[str, str]]:
    stations, rides = step.hop.stations, [carrier.ride for carrier in step.hop.carriers]
    for end, beside, ride in ((0, 1, 0), (-1, -2, -1)):
        if rides and rides[ride] is Ride.HANDED:
            hyperty, home = atlas.hyperty(stations[end][0]), atlas.runtime(stations[beside][0])
            if hyperty is not None and home is not None:
                yield hyperty, home


def _home_by_name(hyperty: str, runtimes: Sequence[str]) -> str:
    domain = host_of(hyperty)
    mine = [one for one in runtimes if host_of(one) == domain]
    alike = [one for one in mine if last_segment(one)[1:] == last_segment(hyperty)[1:]]
    return next(iter([*alike, *mine]), runtime(domain, f"r{domain.partition('.')[0]}"))
