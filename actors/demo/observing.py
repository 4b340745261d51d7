"""A tracer that also watches: it tells what happened and lets others wait for it."""

from collections import Counter
from collections.abc import Callable
from typing import Final, final

import trio
from typing_extensions import override

from actors.demo.line import What, tell
from actors.kit.trace import Tracer
from specs.trace import Fact, Kind, Op

__all__ = ["ObservingTracer"]

_TOLD: Final = frozenset({"stub_deployment", "stub_connection", "p2p_connection"})
"""Machines whose steps are worth a line."""

_LINKS: Final = "p2p_connection"

_TABLE: Final = "p2p"
"""The registry's table of links: its rows are worth a line."""

_LINK_PART: Final = "/conn/"
"""Part of the address of a handler's link: who listens to it is worth a line."""


@final
class ObservingTracer(Tracer):
    """Passes every fact on, prints steps, routes and rows that matter, counts what stubs send.

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
        self._route: str | None = None
        self._p2p: set[str] = set()
        self._stepped = trio.Event()

    @override
    def record(self, actor: str, fact: Fact) -> None:
        self._inner.record(actor, fact)
        match fact.k, fact.op:
            case Kind.STATE, Op.STEP:
                self._note_step(fact)
            case Kind.MSG, Op.XMIT if fact.to == self._target:
                self.sent[fact.stub or ""] += 1
            case Kind.RESOLVE, Op.DONE if fact.to == self._target:
                self._note_route(fact)
            case Kind.TABLE, _ if fact.table == _TABLE or _LINK_PART in (fact.key or ""):
                self._note_row(actor, fact)
            case _:
                pass

    def _note_step(self, fact: Fact) -> None:
        if fact.machine not in _TOLD:
            return
        key = fact.key or ""
        if fact.machine == _LINKS:
            self.link = fact.new
            self.lives += fact.new == "live"
            self._p2p.add(key.rpartition("|")[2])
        text = f"{fact.machine} {key.rpartition('|')[2]}: {fact.old} -> {fact.new} ({fact.cause})"
        tell(
            self._who,
            What.STEP,
            text,
            machine=fact.machine,
            key=key,
            old=fact.old,
            new=fact.new,
            cause=fact.cause,
        )
        self._stepped.set()
        self._stepped = trio.Event()

    def _note_route(self, fact: Fact) -> None:
        if fact.result == self._route:
            return
        self._route = fact.result
        text = f"no listener for {fact.to}: resolved to {fact.result}, {fact.why}"
        tell(self._who, What.STEP, text, to=fact.to, result=fact.result, why=fact.why)

    def _note_row(self, actor: str, fact: Fact) -> None:
        op = None if fact.op is None else str(fact.op)
        text = f"{actor}: {fact.table} {op} {fact.key}: {fact.val}"
        tell(self._who, What.STEP, text, table=fact.table, op=op, key=fact.key, val=fact.val)

    def sent_by_link(self) -> int:
        """Count the requests that went by P2P links."""
        return sum(count for stub, count in self.sent.items() if stub in self._p2p)

    def sent_by_node(self) -> int:
        """Count the requests that went by node stubs."""
        return sum(count for stub, count in self.sent.items() if stub not in self._p2p)

    async def until(self, reached: Callable[[], bool]) -> None:
        """Wait until something holds; looked at after each step of a stub or link."""
        while not reached():
            await self._stepped.wait()
