"""What a fault of a plan is: in the chaos network, or within a process."""

from collections.abc import Callable
from pathlib import Path
from typing import Final, Protocol

import trio

from actors.testing.chaos.network import ChaosNetwork
from actors.testing.chaos.toxics import (
    Bandwidth,
    Corrupt,
    Delay,
    Duplicate,
    Latency,
    LimitData,
    Loss,
    Slicer,
    SlowClose,
    Timeout,
    Toxic,
)
from tests.simulation.plans.plan import Fault, Wrong
from tests.simulation.world.process import Air

_SLICE = 200
"""Bytes."""


class Ends(Protocol):
    """A fault that has begun."""

    def end(self) -> None:
        """End it. Idempotent."""


class _Within:
    """A fault within a process."""

    def __init__(self, undo: Callable[[], object]) -> None:
        self._undo: Callable[[], object] | None = undo

    def end(self) -> None:
        undo, self._undo = self._undo, None
        if undo is not None:
            undo()


def begin(air: Air, fault: Fault) -> Ends | None:
    """Have a fault begin that kills nobody; None: it is over at once."""
    undo = _within(air, fault)
    return _Within(undo) if undo is not None else _between(air.chaos, fault)


def _between(chaos: ChaosNetwork, fault: Fault) -> Ends | None:
    between = fault.one, fault.other
    match fault.wrong:
        case Wrong.RESET:
            chaos.reset(*between)
            return None
        case Wrong.PARTITION:
            return chaos.partition({fault.one}, {fault.other})
        case Wrong.DUPLICATE:
            return chaos.toxic(Duplicate(fault.amount), between, towards=_runtime(fault))
        case _:
            return chaos.toxic(_TOXICS[fault.wrong](fault.amount), between)


def _within(air: Air, fault: Fault) -> Callable[[], object] | None:
    """Have a fault begin within a process; return what ends it, None: it is of links."""
    match fault.wrong:
        case Wrong.CLOCK | Wrong.SLOW_STORE:
            amounts = air.clocks if fault.wrong is Wrong.CLOCK else air.slow
            amounts[fault.one] = fault.amount
            return lambda: amounts.pop(fault.one, None)
        case Wrong.POLICY:
            air.strict.add(fault.one)
            return lambda: air.strict.discard(fault.one)
        case Wrong.BUSY:
            over = air.busy[fault.one] = trio.Event()
            return over.set
        case Wrong.MOVE:
            air.chosen[fault.one] = fault.other
            for node in air.plan.nodes:
                air.chaos.reset(fault.one, node)
            return _nothing
        case Wrong.DISK | Wrong.STORE:
            file = "records" if fault.wrong is Wrong.DISK else "objects"
            return _without(air.folder / fault.one / file)
        case _:
            group = air.groups.get(int(fault.one[1:2])) if fault.one.startswith("n") else None
            return None if group is None else group.begin(fault)


def _nothing() -> None:
    """End what has no end."""


def _without(file: Path) -> Callable[[], object]:
    """Put a folder into the place of a file; return what undoes it."""
    away = file.with_name("away")
    if file.is_dir():
        return _nothing
    file.rename(away)
    file.mkdir()

    def undo() -> None:
        file.rmdir()
        away.rename(file)

    return undo


def _runtime(fault: Fault) -> str:
    return fault.one if fault.one.startswith("r") else fault.other


_TOXICS: Final[dict[Wrong, Callable[[float], Toxic]]] = {
    Wrong.LATENCY: lambda seconds: Latency(seconds, jitter=seconds / 2),
    Wrong.DELAY: lambda seconds: Delay(0.2, seconds),
    Wrong.BANDWIDTH: Bandwidth,
    Wrong.SLICER: lambda pause: Slicer(_SLICE, pause),
    Wrong.SLOW_CLOSE: SlowClose,
    Wrong.LIMIT_DATA: lambda limit: LimitData(int(limit)),
    Wrong.LOSS: Loss,
    Wrong.CORRUPT: Corrupt,
    Wrong.TIMEOUT: lambda _: Timeout(),
}
"""What is made of an amount."""
