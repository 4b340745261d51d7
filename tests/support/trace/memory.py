"""A tracer that keeps what it takes in a list."""

from typing_extensions import override

from actors.kit.trace import Tracer
from specs.trace import Fact


class MemoryTracer(Tracer):
    """Keeps everything in a list; for tests and virtual clocks.

    Attributes:
        records: What was reported, in order, each with its reporter.
    """

    hops = True

    def __init__(self, *, bodies: bool = False, names: bool = False) -> None:
        self.bodies = bodies
        self.names = names
        self.records: list[tuple[str, Fact]] = []

    @property
    def facts(self) -> list[Fact]:
        """The facts, in order."""
        return [fact for _, fact in self.records]

    @override
    def record(self, actor: str, fact: Fact) -> None:
        self.records.append((actor, fact))
