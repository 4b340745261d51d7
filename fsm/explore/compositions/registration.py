"""Composition of the domain registry with one record, and the runtime that keeps the record alive.

Claims REG-16 and I-G1. Participants: `fsm.registry.registration` at the registry, and a runtime
that registers, sends keep-alive messages, unregisters, and whose session ends. Faults: any message
is lost or comes twice; a write to the disk fails, and is undone; the registry restarts with the
rows that it has stored.
"""

import math
from collections.abc import Mapping
from typing import Final, final

from typing_extensions import override

from fsm.explore import composition as plan
from fsm.explore.composition import Call, Condition, Event
from fsm.machines.registration import State
from fsm.registry import records
from fsm.registry.registration import RegistrationCore, RegistrationPort
from specs.jsonvalue import JsonObject

REGISTRY: Final = "registry"
RUNTIME: Final = "runtime"

_URL: Final = "hyperty://a.ex/h"
_R: Final = "hyperty-runtime://a.ex/ra"
_VALUE: Final[JsonObject] = {"hypertyURL": _URL, "runtime": _R}
_UNREGISTERED: Final[JsonObject] = {"status": "disconnected"}
_REQUESTS: Final[Mapping[str, records.Request]] = {
    "created": records.Create(_URL, _R, _R, {**_VALUE, "status": "created"}),
    "create": records.Create(_URL, _R, _R, _VALUE),
    "create lasting": records.Create(_URL, _R, _R, _VALUE, is_lasting=True),
    "unregister": records.Touch(_URL, _R, _UNREGISTERED),
    "keep": records.Touch(_URL, _R, {}),
}


@final
class Runtime(plan.Host):
    """Runtime that sends requests to the registry and ignores answers."""

    def ask(self, request: str) -> None:
        self.send(REGISTRY, "request", request)


class Registry(plan.Host, RegistrationPort):
    """Domain registry, with the rows that it has stored on its disk.

    Attributes:
        kept: The rows on its disk.
        is_harmed: Whether the next write to the disk fails.
    """

    def __init__(self, place: str) -> None:
        super().__init__(place)
        self.core = RegistrationCore(self)
        self._writes: list[records.Change] = []
        self.kept: dict[str, records.Row] = {}
        self.is_harmed = False

    @property
    def row(self) -> records.Row | None:
        """The row of the record in memory; None: no record."""
        return self.core.row(_URL)

    @override
    def time_over(self) -> None:
        self.core.tick(self.now)
        self._settle()

    def request(self, name: str) -> None:
        self.core.answer(_REQUESTS[name], self.now)
        self._settle()

    def end_session(self) -> None:
        self.core.leave(_R, "its session is over", self.now, is_final=False)
        self._settle()

    def harm(self) -> None:
        self.is_harmed = True

    def restart(self) -> None:
        self.core = RegistrationCore(self, self.kept.values())

    @override
    def keep(self, row: records.Row) -> None:
        self._writes.append((row.url, row))

    @override
    def forget(self, url: str) -> None:
        self._writes.append((url, None))

    @override
    def report_status(self, url: str, status: State) -> None:
        """Ignore a report of a changed status."""

    def _settle(self) -> None:
        writes, self._writes = self._writes, []
        if self.is_harmed and writes:
            self.is_harmed = False
            self.core.revert()
            self.out.clear()
            return
        for url, row in writes:
            if row is None:
                self.kept.pop(url, None)
            else:
                self.kept[url] = row
        self.core.settle()


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
        Condition(
            "The disk has not what the registry has (REG-16).",
            _PLACE,
            lambda registry: registry.kept.get(_URL) != registry.row,
        ),
        Condition(
            "A record is kept for ever (REG-16).",
            _PLACE,
            lambda registry: registry.row is not None and registry.deadline() == math.inf,
        ),
    ),
    ends=(Condition("there is no record", _PLACE, lambda registry: registry.row is None),),
    bounds=plan.Bounds(losses=1, duplicates=1, channel=2),
    horizon=0.0,
)
"""Composition: the domain registry with a record, and the runtime that keeps the record alive."""
