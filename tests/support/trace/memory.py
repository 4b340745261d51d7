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

    def ops(self, **wanted: object) -> list[str]:
        """Return what happened to messages, in order, of those facts that match."""
        facts = [fact for fact in self.facts if fact.k == "msg"]
        return [
            str(fact.op)
            for fact in facts
            if all(getattr(fact, name) == value for name, value in wanted.items())
        ]
