"""Judge of the records of one process, read once, in order: machines, claims and missing records.

A missing record does not prove a violation. Claims are judged by the records up to the first gap in
their numbers, and not at all if the process dropped records. The end of a trace is searched for
unanswered requests only if the end is recorded. A duplicate record is judged once; if two different
records have one number, it is unknown which is right, so no later record is judged.

Different claims apply to runtimes and to message nodes. A runtime is recognised by the first
listener at its Message BUS, near its start. The first records are held back until then; if the
listener comes later than `_HELD` records, the trace is read again (`LateHomeError`), with the
address of the runtime known from the start.

A process judges some claims on itself while it runs (`OnlineJudge`): the claims that are declared
`is_forgetful`. Each of their violations is decided by the records so far, and unknown history
causes none, so their judges may begin at any record. That limits their memory: after `_MEMORY`
records a claim's judge is replaced by a new one, which is counted.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache
from itertools import groupby
from operator import attrgetter
from typing import Final, TypeAlias

import attrs

from fsm.judge.claims import fold
from fsm.judge.claims.catalogue import PROCESS_CLAIMS, RUN_CLAIMS
from fsm.judge.claims.fold import Claim, Evidence, Finding, Place, Process, ProcessClaim
from fsm.judge.claims.records import BUS, LISTENERS, Recent
from fsm.judge.claims.transactions import Unanswered
from fsm.judge.crossings import Crossings
from fsm.judge.replay import EntityJudgement, Machines, NodeJudgement
from fsm.judge.trace_files import Gaps, Missing, ParticipantFinder, ProcessSummary
from fsm.judge.trace_line import Flaw, TraceLine
from fsm.machine_list import MACHINES
from specs.addresses.address import is_backend, runtime_of
from specs.errors import ProtoflyError
from specs.trace import Kind

_HELD: Final = 1000
"""Number of records that are held back until the kind and address of the process are known."""

_SOME: Final = 1024
"""Number of records after which claims forget old messages again."""

_UNANSWERED: Final = "the final answer to {} is not recorded, nor that there was none"

_Handler: TypeAlias = Callable[[TraceLine], None]


class DisorderError(ProtoflyError):
    """Error: records are out of order, and must be sorted before they are judged."""


class LateHomeError(DisorderError):
    """Error: a record reveals late that its process is a runtime; judge again with its address.

    Attributes:
        process: Run and node.
        home: Address of the runtime.
    """

    def __init__(self, process: tuple[str, str], home: str) -> None:
        super().__init__(f"the records say late that {process[1]} is {home}")
        self.process = process
        self.home = home


@attrs.frozen
class ProcessJudgement:
    """Result of judging the records of one process.

    Attributes:
        summary: The facts that are compared with other processes.
        findings: Violations of claims that need no other process.
        evidence: Evidence for the claims that need other processes.
        entities: The judgements of the entities of its machines; of the finished entities
            without a violation, only the last ones.
        missing: The records that are missing.
        unanswered: Requests without a final answer.
        entity_counts: Number of entities of each machine.
        used: Number of transitions of each kind (`Machines.used`).
        stays: How often entities stayed in a state for how long (`Machines.stays`).
    """

    node: NodeJudgement
    summary: ProcessSummary
    entities: tuple[EntityJudgement, ...]
    missing: tuple[Missing, ...]
    entity_counts: Mapping[str, int]
    used: Mapping[tuple[str, str, str, str], int]
    stays: Mapping[tuple[str, str, int], int]
    findings: tuple[Finding, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    unanswered: tuple[Missing, ...] = ()


def home_of(record: TraceLine) -> str | None:
    """Return the address of the process's runtime if a record reveals it, or None."""
    if record.k == Kind.TABLE and record.table == LISTENERS and record.actor == BUS:
        return runtime_of(record.key or "")
    return None


def _is_of_node(record: TraceLine) -> bool:
    """Return whether a record reveals that its process is a message node."""
    return record.table == "components" and is_backend(record.key or "")


_CLAIMS: Final[Mapping[Place, Sequence[Claim]]] = {
    Place.ANY: (),
    **{
        place: [claim for claim in PROCESS_CLAIMS if claim.place in {Place.ANY, place}]
        for place in (Place.RUNTIME, Place.NODE)
    },
}
"""Claims to judge for each kind of process; none if the kind is unknown."""


@lru_cache(maxsize=4096)
def _methods_of(place: Place, sort: fold.Sort) -> Sequence[tuple[int, str]]:
    """Return the methods that handle a sort of records, each with the index of its object.

    The result is cached: trying the routes of all claims for each process would take a third of the
    time in which a short trace is judged.
    """
    parts = [fold.methods_in(Process), fold.methods_in(Crossings)]
    parts += [claim.methods for claim in _CLAIMS[place]]
    return [
        (index, name)
        for index, methods in enumerate(parts)
        for name, routes in methods
        if any(route.takes(sort) for route in routes)
    ]


class ProcessJudge:
    """Judge of one run of one process, fed record by record."""

    def __init__(
        self,
        run: str,
        node: str,
        home: str | None = None,
        *,
        is_sorted: bool = False,
    ) -> None:
        """Prepare the judge.

        Args:
            run: Run of the process.
            node: Name of the process.
            home: Address of the runtime, if it is already known.
            is_sorted: Whether the records are sorted; then a number may occur twice.
        """
        self._machines = Machines(run, node, MACHINES)
        self._gaps = Gaps(run, node)
        self._participants = ParticipantFinder()
        self._crossings = Crossings()
        self._process = Process(run, node, home)
        self._place = Place.ANY
        self._claims: list[ProcessClaim] = []
        self._handlers: dict[fold.Sort, tuple[_Handler, ...]] = {}
        self._held: list[TraceLine] | None = []
        self._is_sorted = is_sorted
        self._last: TraceLine | None = None
        self._is_cut = False
        self._recent: list[Recent[Hashable, object]] = []
        self._visited = 0
        if home is not None:
            self._begin(home)

    def take(self, record: TraceLine) -> None:
        """Judge the next record.

        Raises:
            DisorderError: The record is out of order.
            LateHomeError: The record reveals late that the process is a runtime.
        """
        if not self._is_sorted and self._last is not None and record.ln <= self._last.ln:
            raise DisorderError("a record came after one with its number, or a greater one")
        is_new = self._last is None or record.ln > self._last.ln
        is_cut = self._gaps.take(record)
        self._is_cut = self._is_cut or is_cut
        if not is_new:
            if is_cut:
                self._machines.doubt()
            return
        self._machines.take(record)
        self._participants.take(record)
        home = home_of(record) if self._process.home is None else None
        if home is not None and self._held is None:
            raise LateHomeError((self._process.run, self._process.node), home)
        if not self._is_cut:
            (self._visit if self._held is None else self._held.append)(record)
        if self._held is not None and (home is not None or len(self._held) == _HELD):
            self._begin(home)
        self._last = record

    def _begin(self, home: str | None) -> None:
        """Create the claims for the kind of process, and apply them to the records held back."""
        held, self._held = self._held or [], None
        process = self._process = Process(self._process.run, self._process.node, home)
        if home is None and self._is_cut and not any(map(_is_of_node, held)):
            # The kind of process is unknown: the record that would decide it may be missing.
            return
        self._place = Place.NODE if home is None else Place.RUNTIME
        self._claims = [claim(process) for claim in _CLAIMS[self._place]]
        fields = (value for part in (process, *self._claims) for value in vars(part).values())
        self._recent = [table for table in fields if isinstance(table, Recent)]
        for record in held:
            self._visit(record)

    def _visit(self, record: TraceLine) -> None:
        sort = fold.sort_of(record)
        handlers = self._handlers.get(sort)
        if handlers is None:
            parts = (self._process, self._crossings, *self._claims)
            handlers = self._handlers[sort] = tuple(
                getattr(parts[index], name) for index, name in _methods_of(self._place, sort)
            )
        for handler in handlers:
            handler(record)
        self._visited += 1  # not `ln`: the numbers in a trace may be wrong
        if self._visited % _SOME == 0:
            for recent in self._recent:
                recent.forget()

    def handed_over(self) -> list[Evidence]:
        """Return the evidence added since the last call; `end` returns the remaining evidence."""
        handed_over, self._process.evidence = self._process.evidence, []
        return handed_over

    def end(self) -> ProcessJudgement:
        """Return the judgement of the process; no more records follow."""
        if self._held is not None:
            self._is_cut = self._is_cut or self._last is None or self._last.k != Kind.END
            self._begin(None)
        node = self._gaps.judgement()
        process = self._process
        is_whole = not node.flaws - {Flaw.NO_START}
        process.end = self._last if is_whole else None
        if Flaw.DROPPED in node.flaws:
            # Where records are missing is unknown: only state machine transitions are judged.
            process, self._claims = Process(node.run, node.node, None), []
        for claim in self._claims:
            claim.end()
        unanswered = (claim for claim in self._claims if isinstance(claim, Unanswered))
        open_requests = (request for claim in unanswered for request in claim.answers_missing())
        home = process.home
        return ProcessJudgement(
            node=node,
            summary=ProcessSummary(
                node.run,
                node.node,
                home,
                process.member,
                process.end is not None,
                *self._participants.end(home),
                self._crossings.end(self._participants.stubs),
            ),
            findings=tuple(process.findings),
            evidence=tuple(process.evidence),
            entities=self._machines.end(node),
            missing=tuple(self._gaps.missing()),
            unanswered=tuple(
                Missing(node.run, node.node, each.ln, _UNANSWERED.format(each.mid))
                for each in open_requests
            ),
            entity_counts=self._machines.counts,
            used=self._machines.used,
            stays=self._machines.stays,
        )


def judge_across(evidence: Iterable[Evidence], whole: AbstractSet[str | None]) -> Iterator[Finding]:
    """Judge the claims that compare several processes, by the evidence of all processes.

    Args:
        evidence: Evidence in any order.
        whole: Runtimes and nodes of groups whose traces, over all their runs, lack no record.
    """
    in_order = sorted(evidence, key=attrgetter("fold", "key", "run", "node", "ln", "place"))
    for (name, _), items in groupby(in_order, key=lambda item: (item.fold, item.key)):
        yield from RUN_CLAIMS[name].judge(list(items), whole)


# --- while the process runs -------------------------------------------------------------


_MEMORY: Final = 10_000
"""Number of records after which a claim's judge is replaced (our choice: some 3 MB per claim)."""


@attrs.define
class _Watch:
    """Claim with the object that judges it, and the number of records that this object has read."""

    claim: Claim
    judge: ProcessClaim
    taken: int = 0


class OnlineJudge:
    """Judge of the records of one process while it runs; not thread-safe.

    Attributes:
        machines: The machines whose transitions must be recorded.
        forgotten: How often a claim's judge was replaced by a new one.
    """

    def __init__(self, node: str, home: str | None) -> None:
        """Prepare the judge.

        Args:
            node: Name of the process.
            home: Address of the runtime; None: it is a message node.
        """
        place = Place.NODE if home is None else Place.RUNTIME
        claims = [claim for claim in _CLAIMS[place] if claim.is_forgetful]
        routes = [route for claim in claims for _, routes in claim.methods for route in routes]
        names = [route.names for route in routes if route.kind is Kind.STATE]
        self.machines = frozenset(name for several in names for name in several)
        self.forgotten = 0
        self._tables = frozenset(table for claim in claims for table in claim.tables)
        self._process = Process("", node, home)
        self._watches = [_Watch(claim, claim(self._process)) for claim in claims]
        self._handlers: dict[fold.Sort, tuple[tuple[_Watch, str], ...]] = {}

    def take(self, record: TraceLine) -> Sequence[Finding]:
        """Judge the next record and return the violations that it causes."""
        sort = fold.sort_of(record)
        handlers = self._handlers.get(sort)
        if handlers is None:
            handlers = self._handlers[sort] = tuple(
                (watch, name)
                for watch in self._watches
                for name, routes in watch.claim.methods
                if any(route.takes(sort) for route in routes)
            )
        process = self._process
        if record.k == Kind.TABLE and record.table in self._tables:
            process.take_row(record)
        for watch, name in handlers:
            getattr(watch.judge, name)(record)
            watch.taken += 1
            if watch.taken == _MEMORY:
                watch.judge, watch.taken = watch.claim(process), 0
                self.forgotten += 1
        if not process.findings:
            return ()
        findings, process.findings = process.findings, []
        return findings
