"""What a fault of a plan is in the chaos network."""

from collections.abc import Callable
from typing import Final

from tests.simulation.plans.plan import Fault, Wrong
from transports.chaos.network import ChaosNetwork, Trouble
from transports.chaos.toxics import (
    Bandwidth,
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

__all__ = ["begin"]

_SLICE = 200
"""Bytes."""


def begin(chaos: ChaosNetwork, fault: Fault) -> Trouble | None:
    """Have a fault begin that is of links; None: it is over at once."""
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
    Wrong.TIMEOUT: lambda _: Timeout(),
}
"""What is made of an amount."""
