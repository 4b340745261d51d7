"""A record of the domain registry, and the runtime that keeps it alive (REG-16, I-G1).

Participants: `fsm.registry.registration` at the registry, and a runtime that registers, shows that
it lives, unregisters, and whose session ends. What may happen: any message is lost or comes
twice; a write to the disk fails, and is undone; the registry restarts with what it has kept.
"""

import math
from collections.abc import Hashable
from typing import Final, final

import attrs
from typing_extensions import override

from fsm.product.composition import (
    Bounds,
    Channel,
    Composition,
    End,
    Event,
    Host,
    Never,
    Place,
    Plan,
    Situation,
)
from fsm.registry import records
from fsm.registry.registration import RegistrationCore
from specs.jsonvalue import JsonObject

REGISTRY: Final = "registry"
RUNTIME: Final = "runtime"

_URL: Final = "hyperty://a.ex/h"
_R: Final = "hyperty-runtime://a.ex/ra"
_VALUE: Final[JsonObject] = {"hypertyURL": _URL, "runtime": _R}


@final
@attrs.frozen(slots=True)
class Sent:
    """Requests about the record; nothing here depends on the answer."""

    what: str

    @override
    def __str__(self) -> str:
        """Describe it in words."""
        return self.what


@final
class RuntimePlace(Host):
    """The runtime, which asks for what is wanted."""

    @override
    def take(self, happened: Hashable) -> None:
        self.send("asked", Sent(str(happened)))


@final
class RegistryPlace(Host):
    """The registry, and what it has kept.

    Attributes:
        kept: The rows on its disk.
        is_harmed: Whether the next write to it fails.
    """

    def __init__(self) -> None:
        super().__init__()
        self.core = RegistrationCore()
        self.kept: dict[str, records.Row] = {}
        self.is_harmed = False

    @property
    def row(self) -> records.Row | None:
        """The record."""
        return self.core.row(_URL)

    @property
    def is_kept(self) -> bool:
        """True if the disk has what the core has."""
        return self.kept.get(_URL) == self.row

    @override
    def deadline(self) -> float:
        return self.core.deadline()

    @override
    def time_over(self) -> None:
        self._feed(records.Tick())

    @override
    def take(self, happened: Hashable) -> None:
        match happened:
            case Sent("create" | "create lasting" as what):
                is_lasting = what == "create lasting"
                asked = records.Create(_URL, _R, _R, _VALUE, is_lasting=is_lasting)
                self._feed(asked)
            case Sent("created"):
                value: JsonObject = {**_VALUE, "status": "created"}
                self._feed(records.Create(_URL, _R, _R, value))
            case Sent("keep"):
                self._feed(records.Touch(_URL, _R, {}))
            case Sent("unregister"):
                self._feed(records.Touch(_URL, _R, {"status": "disconnected"}))
            case "over":
                self._feed(records.Leave(_R, "its session is over"))
            case "harm":
                self.is_harmed = True
            case "restart":
                self.core = RegistrationCore(self.kept.values())
            case _:
                raise TypeError(happened)

    def _feed(self, happened: records.Input) -> None:
        effects = self.core.feed(happened, self.now)
        writes = [one for one in effects if isinstance(one, records.Keep | records.Forget)]
        if self.is_harmed and writes:
            self.is_harmed = False
            self.core.revert()
            return
        for one in writes:
            if isinstance(one, records.Keep):
                self.kept[one.row.url] = one.row
            else:
                self.kept.pop(one.url, None)
        self.core.settle()
        self.moved(effects)


def _registry(now: Situation) -> RegistryPlace:
    return now.at(REGISTRY, RegistryPlace)


def _waits_without_end(now: Situation) -> bool:
    row = _registry(now).row
    return row is not None and _registry(now).deadline() == math.inf


def _asks(what: str, budget: int = 1) -> Event:
    return Event(f"wanted: {what}", RUNTIME, what, budget=budget)


def _compose(bounds: Bounds) -> Composition:
    return Composition(
        name="registration",
        about="A record of the domain registry, and the runtime that keeps it alive.",
        places=(Place(RUNTIME, RuntimePlace), Place(REGISTRY, RegistryPlace)),
        channels=(Channel("asked", RUNTIME, REGISTRY),),
        events=(
            *(_asks(what) for what in ("created", "create", "create lasting", "unregister")),
            _asks("keep"),
            Event("the session of the runtime is over", REGISTRY, "over"),
            Event("the disk fails", REGISTRY, "harm", is_fault=True),
            Event("the registry restarts", REGISTRY, "restart", is_fault=True),
        ),
        never=(
            Never(
                "The disk has not what the registry has.",
                "REG-16",
                (REGISTRY,),
                lambda now: not _registry(now).is_kept,
            ),
            Never("A record is kept for ever.", "REG-16", (REGISTRY,), _waits_without_end),
        ),
        ends=(End("there is no record", (REGISTRY,), lambda now: _registry(now).row is None),),
        bounds=bounds,
        horizon=0.0,
    )


REGISTRATION: Final = Plan("registration", _compose, Bounds(losses=1, duplicates=1, channel=2))
"""With one message lost, and one that comes twice."""
