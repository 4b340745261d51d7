"""Where the places of a scenario are: which process, which address, which listener."""

import re
from collections.abc import Iterator
from typing import Final, final

import attrs

from actors.play.hop import Place
from actors.play.macros import MACROS, expanded
from actors.play.script import (
    IngestStep,
    MessageStep,
    ResolveStep,
    Scenario,
    StateStep,
    Step,
    TableStep,
)
from specs.address import RUNTIME_SCHEME, message_node, runtime_of, scheme_of
from specs.jsonvalue import Json

__all__ = ["PART_PATHS", "Places", "addresses_of"]

_NODE: Final = re.compile(r"MN\.(?P<label>[^.]+)")
_DOMAIN_LABEL: Final = re.compile(r"[^./]+")

PART_PATHS: Final = {
    "alloc": "address-allocation",
    "graph": "graph-connector",
    "registry": "registry",
    "sm": "sm",
    "ua": "ua",
}
"""Paths of a runtime's parts, by their short names."""

_LISTENERS: Final = {"alloc": "address-allocation", "registry": "registry", "sm": "sync-manager"}
"""What a Message BUS calls the parts that listen to it, by their short names."""

_ROUTERS: Final = frozenset({"", "bus", "minibus"})


def addresses_of(scenario: Scenario) -> frozenset[str]:
    """Return every address that a scenario names."""
    found = (text for step in scenario.steps for text in _texts(_values(step)))
    return frozenset(text for text in found if "://" in text)


def _values(step: Step) -> Json:
    match step:
        case MessageStep(message=message) | IngestStep(normal=message):
            return [message.from_, message.to, message.body]
        case StateStep(key=key):
            return list[Json](key)
        case TableStep(key=row, val=val):
            return [row, val]
        case ResolveStep(to=to, result=result):
            return [to, result]
        case _:
            return None


def _texts(value: Json) -> Iterator[str]:
    match value:
        case str():
            yield value
        case list():
            for one in value:
                yield from _texts(one)
        case dict():
            for part in value.values():
                yield from _texts(part)
        case _:
            return


@final
@attrs.frozen
class Places:
    """Knows the places of one scenario; all it returns is in the scenario's words.

    A root is a macro, `MN.a` for the node of domain `a.ex`, an address, or a name that
    the scenario gives its own runtimes: `RX` is the runtime called `rx`. Any other
    name at an end of a message's way stands for that end of the message.
    """

    _addresses: frozenset[str]

    @classmethod
    def of(cls, scenario: Scenario) -> "Places":
        """Learn the places of a scenario."""
        return cls(addresses_of(scenario))

    def root(self, place: Place) -> str | None:
        """Return the address of a place's root; None if nothing says it."""
        known = expanded(place.root)
        if isinstance(known, str) and "://" in known:
            return known
        node = _NODE.fullmatch(place.root)
        if node is not None:
            return message_node(self._domain(node["label"]))
        return self._runtime(place.root)

    def process(self, place: Place) -> str | None:
        """Return the runtime or node in which a place is; None if nothing says it."""
        root = self.root(place)
        if root is None:
            return None
        if scheme_of(root) == RUNTIME_SCHEME:
            return runtime_of(root)
        return root if scheme_of(root) == "domain" else None

    def is_node(self, place: Place) -> bool:
        """Say whether a place is in a message node."""
        return scheme_of(self.root(place) or "") == "domain"

    def address(self, place: Place, end: str | None = None) -> str | None:
        """Return the address that sends or receives at a place.

        Args:
            place: The place.
            end: The end of the message that is there; for names that say nothing else.
        """
        root = self.root(place)
        if root is None:
            return end
        if place.part in PART_PATHS:
            return f"{root}/{PART_PATHS[place.part]}"
        return root if place.part in _ROUTERS else end

    def listener(self, place: Place) -> str | None:
        """Return what a bus calls the listener at a place; None if nothing says it."""
        root = self.root(place)
        if root is None:
            return None
        if place.part in _LISTENERS:
            return _LISTENERS[place.part]
        return f"minibus:{root}" if place.part in {"", "sandbox"} else root

    def _domain(self, label: str) -> str:
        known = (*MACROS.values(), *sorted(self._addresses))
        hosts = (address.partition("://")[2].partition("/")[0] for address in known)
        domains = (host for host in hosts if host.partition(".")[0] == label)
        return next(domains, f"{label}.ex")

    def _runtime(self, name: str) -> str | None:
        if not _DOMAIN_LABEL.fullmatch(name):
            return None
        runtimes = {runtime_of(one) for one in self._addresses if scheme_of(one) == RUNTIME_SCHEME}
        return next((one for one in sorted(runtimes) if one.endswith(f"/{name.lower()}")), None)
