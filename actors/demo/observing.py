"""A tracer that also watches: it tells what happened and lets others wait for it."""

from collections import Counter
from collections.abc import Callable
from typing import Final, final

import trio
from typing_extensions import override

from actors.demo.line import tell
from actors.demo.narrator import Narrator
from actors.kit.trace import Tracer
from specs.trace import Fact, Kind, Op

__all__ = ["ObservingTracer"]

_LINKS: Final = "p2p_connection"


@final
class ObservingTracer(Tracer):
    """Passes every fact on, tells those that matter, counts what stubs send.

    Args:
        who: Name of the process, for the lines.
        inner: Keeps the facts.
        target: The address whose requests are counted.

    Attributes:
        link: State of the link, as its machine has it; None before there is one.
        lives: How often a link became live.
        sent: Requests to the target sent by each stub.
    """

    hops = True

    def __init__(self, who: str, inner: Tracer, target: str | None = None) -> None:
        self.link: str | None = None
        self.lives = 0
        self.sent: Counter[str] = Counter()
        self._who = who
        self._inner = inner
        self._target = target
        self._narrator = Narrator(target)
        self._p2p: set[str] = set()
        self._stepped = trio.Event()

    @override
    def record(self, actor: str, fact: Fact) -> None:
        self._inner.record(actor, fact)
        if fact.k is Kind.MSG and fact.op is Op.XMIT and fact.to == self._target:
            self.sent[fact.stub or ""] += 1
            return
        told = self._narrator.tell(actor, fact)
        if told is not None:
            tell(self._who, told.what, told.text, told.beat)
        if fact.k is Kind.STATE and fact.machine == _LINKS:
            self._note_link(fact)

    def _note_link(self, fact: Fact) -> None:
        self.link = fact.new
        self.lives += fact.new == "live"
        self._p2p.add((fact.key or "").rpartition("|")[2])
        self._stepped.set()
        self._stepped = trio.Event()

    def sent_by_link(self) -> int:
        """Count the requests that went by P2P links."""
        return sum(count for stub, count in self.sent.items() if stub in self._p2p)

    def sent_by_node(self) -> int:
        """Count the requests that went by node stubs."""
        return sum(count for stub, count in self.sent.items() if stub not in self._p2p)

    async def until(self, reached: Callable[[], bool]) -> None:
        """Wait until something holds; looked at after each step of a link."""
        while not reached():
            await self._stepped.wait()
