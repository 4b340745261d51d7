"""Where components report what they did, and two who listen without a file."""

from abc import ABC, abstractmethod
from typing import Final, Unpack, final

from typing_extensions import override

from actors.kit.trace_message import More, Ruling, message_fact, ruling_fact
from actors.kit.trace_state import step_fact
from fsm.engine import Step
from specs.message import Message
from specs.trace import Fact, Op

__all__ = ["NULL_TRACER", "MemoryTracer", "Tracer"]


class Tracer(ABC):
    """Where a component reports what it did.

    Attributes:
        hops: Whether message hops are wanted.
        steps: Whether state changes are; they are by all who keep anything.
        dropped: Records that there was no room for.
    """

    hops: bool
    steps: bool = True
    dropped: int = 0

    @abstractmethod
    def record(self, actor: str, fact: Fact) -> None:
        """Keep a fact; never waits, never raises.

        Args:
            actor: Who reports.
            fact: What happened.
        """

    def step(self, actor: str, step: Step) -> None:
        """Keep that an entity moved: `record` of its fact, by a shorter way perhaps."""
        self.record(actor, step_fact(step))

    def message(self, actor: str, op: Op, message: Message, **more: Unpack[More]) -> None:
        """Keep what happened to a message; likewise."""
        self.record(actor, message_fact(op, message, **more))

    def ruled(self, actor: str, message: Message, **ruling: Unpack[Ruling]) -> None:
        """Keep what a policy engine said of a message; likewise."""
        self.record(actor, ruling_fact(message, **ruling))


@final
class _NullTracer(Tracer):
    hops = False
    steps = False

    @override
    def record(self, actor: str, fact: Fact) -> None:
        pass

    @override
    def step(self, actor: str, step: Step) -> None:
        pass

    @override
    def message(self, actor: str, op: Op, message: Message, **more: Unpack[More]) -> None:
        pass

    @override
    def ruled(self, actor: str, message: Message, **ruling: Unpack[Ruling]) -> None:
        pass


NULL_TRACER: Final[Tracer] = _NullTracer()
"""Keeps nothing."""


@final
class MemoryTracer(Tracer):
    """Keeps everything in a list; for tests and virtual clocks.

    Attributes:
        records: What was reported, in order, each with who reported it.
    """

    hops = True

    def __init__(self) -> None:
        self.records: list[tuple[str, Fact]] = []

    @property
    def facts(self) -> list[Fact]:
        """What was reported, in order."""
        return [fact for _, fact in self.records]

    @override
    def record(self, actor: str, fact: Fact) -> None:
        self.records.append((actor, fact))
