"""A record of the domain registry, and the runtime that keeps it alive (REG-16, I-G1).

Participants: `fsm.registry.registration` at the registry, and a runtime that registers, shows that
it lives, unregisters, and whose session ends. What may happen: any message is lost or comes
twice; a write to the disk fails, and is undone; the registry restarts with what it has kept.
"""

import math
from collections.abc import Mapping
from typing import Final, final

from typing_extensions import override

from fsm.explore import composition as plan
from fsm.explore.composition import Call, End, Event, Never
from fsm.registry import records
from fsm.registry.registration import RegistrationCore
from specs.jsonvalue import JsonObject

REGISTRY: Final = "registry"
RUNTIME: Final = "runtime"

_URL: Final = "hyperty://a.ex/h"
_R: Final = "hyperty-runtime://a.ex/ra"
_VALUE: Final[JsonObject] = {"hypertyURL": _URL, "runtime": _R}
_UNREGISTERED: Final[JsonObject] = {"status": "disconnected"}
_REQUESTS: Final[Mapping[str, records.Input]] = {
    "created": records.Create(_URL, _R, _R, {**_VALUE, "status": "created"}),
    "create": records.Create(_URL, _R, _R, _VALUE),
    "create lasting": records.Create(_URL, _R, _R, _VALUE, is_lasting=True),
    "unregister": records.Touch(_URL, _R, _UNREGISTERED),
    "keep": records.Touch(_URL, _R, {}),
}


@final
class Runtime(plan.Host):
    """The runtime, which does not look at answers."""

    def ask(self, request: str) -> None:
        self.send(REGISTRY, "request", request)


@final
class Registry(plan.Host):
    """The registry, and what it has kept.

    Attributes:
        kept: The rows on its disk.
        is_harmed: Whether the next write to it fails.
    """

    def __init__(self, place: str) -> None:
        super().__init__(place)
        self.core = RegistrationCore()
        self.kept: dict[str, records.Row] = {}
        self.is_harmed = False

    @property
    def row(self) -> records.Row | None:
        """The record."""
        return self.core.row(_URL)

    @override
    def time_over(self) -> None:
        self._feed(records.Tick())

    def request(self, name: str) -> None:
        self._feed(_REQUESTS[name])

    def end_session(self) -> None:
        self._feed(records.Leave(_R, "its session is over"))

    def harm(self) -> None:
        self.is_harmed = True

    def restart(self) -> None:
        self.core = RegistrationCore(self.kept.values())

    def _feed(self, given: records.Input) -> None:
        effects = self.core.feed(given, self.now)
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
        self.steps(effects)


_PLACE: Final = (REGISTRY,)

REGISTRATION: Final = plan.Composition(
    name="registration",
    places={RUNTIME: Runtime, REGISTRY: Registry},
    channels=(plan.Channel(RUNTIME, REGISTRY),),
    events=(
        *(Event(f"wanted: {name}", RUNTIME, Call("ask", (name,))) for name in _REQUESTS),
        Event("the session of the runtime is over", REGISTRY, "end_session"),
        Event("the disk fails", REGISTRY, "harm", is_fault=True),
        Event("the registry restarts", REGISTRY, "restart", is_fault=True),
    ),
    never=(
        Never(
            "The disk has not what the registry has (REG-16).",
            _PLACE,
            lambda registry: registry.kept.get(_URL) != registry.row,
        ),
        Never(
            "A record is kept for ever (REG-16).",
            _PLACE,
            lambda registry: registry.row is not None and registry.deadline() == math.inf,
        ),
    ),
    ends=(End("there is no record", _PLACE, lambda registry: registry.row is None),),
    bounds=plan.Bounds(losses=1, duplicates=1, channel=2),
    horizon=0.0,
)
"""A record of the domain registry, and the runtime that keeps it alive."""
