"""The recorded acts of the actors of a scenario, in one list."""

from typing import Unpack, final

import attrs
import trio
from typing_extensions import override

from actors.kit.trace import More, Tracer
from specs.message import Message
from specs.trace import Fact, Op


@final
@attrs.frozen
class Seen:
    """One thing seen.

    Attributes:
        number: Its place in the list, from 0.
        time: Seconds of the Trio clock.
        who: The process: a runtime's address or a node's, or an outsider's name.
        actor: The actor in it that reported.
        message: The message in full, where the fact has one and it was given.
    """

    number: int
    time: float
    who: str
    actor: str
    fact: Fact
    message: Message | None = None


@final
class Observer:
    """Collects what all processes of a scenario report.

    Attributes:
        items: What was seen, in order.
        start: Number of the first item that belongs to the scenario; what is before
            led to its preconditions.
        processes: Processes with a tracer: the actors, not outsiders.
    """

    def __init__(self) -> None:
        self.items: list[Seen] = []
        self.start = 0
        self.processes: set[str] = set()
        self._waiting = trio.lowlevel.ParkingLot()

    def tracer(self, who: str) -> Tracer:
        """Make the tracer of one process."""
        self.processes.add(who)
        return _Watch(who, self)

    def begin(self) -> None:
        """Say that the preconditions hold: what comes now belongs to the scenario."""
        self.start = len(self.items)

    def see(self, who: str, actor: str, fact: Fact, message: Message | None = None) -> None:
        """Add something seen; never waits.

        Args:
            who: Name of the process.
            actor: Name of the reporting actor.
            fact: The fact.
            message: The message of the fact; None: none.
        """
        seen = Seen(len(self.items), trio.current_time(), who, actor, fact, message)
        self.items.append(seen)
        self._waiting.unpark_all()

    async def more(self, known: int) -> None:
        """Wait until more than `known` items were seen."""
        await trio.lowlevel.checkpoint()
        while len(self.items) <= known:
            await self._waiting.park()


@final
class _Watch(Tracer):
    """The tracer of one process; it keeps messages whole."""

    hops = True
    bodies = True

    def __init__(self, who: str, observer: Observer) -> None:
        self._who = who
        self._observer = observer

    @override
    def record(self, actor: str, fact: Fact) -> None:
        self._observer.see(self._who, actor, fact)

    @override
    def message(self, actor: str, op: Op, message: Message, **more: Unpack[More]) -> None:
        self._observer.see(self._who, actor, self.message_fact(op, message, **more), message)
