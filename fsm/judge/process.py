"""The records of one process, read once, in order: by its machines, its claims, and for gaps.

A missing record is no proof of a wrong step. Claims are judged by the records up to the first
gap in their numbers, and not at all if the sink dropped some. A record that never came is
missed only in a trace that has its end. A record that is there twice is judged once; of two
with one number it is not known which is right, so nothing is judged from there on.

Whether the process is a runtime or a message node decides which claims apply. A runtime says so
by the first listener at its Message BUS, near its start. The first records are held back until
then; a process that says it later than `_HELD` records is read again (`LateHomeError`), with
what is known then.

A process judges some claims of itself while it runs (`OnlineJudge`), by the claims that are
declared `is_forgetful`: their claims are decided by the records so far, and what a claim does not
know breaks nothing, so that it may begin anew at any record. That bounds its memory: a claim that
has taken `_MEMORY` records is replaced by a new one, which is counted.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import groupby
from operator import attrgetter
from typing import Final, TypeAlias

import attrs
from typing_extensions import override

from fsm.judge.claims.catalogue import PROCESS_CLAIMS, RUN_CLAIMS
from fsm.judge.claims.fold import (
    Claim,
    Evidence,
    Finding,
    Place,
    Process,
    ProcessClaim,
    Route,
    name_of,
)
from fsm.judge.claims.records import BUS, LISTENERS, Recent
from fsm.judge.claims.transactions import Unanswered
from fsm.judge.crossings import CROSSED, Crossings
from fsm.judge.replay import EntityJudgement, Machines, NodeJudgement
from fsm.judge.trace_files import Gaps, Missing, ParticipantFinder, ProcessSummary
from fsm.judge.trace_line import Flaw, TraceLine
from fsm.machine_list import MACHINES
from specs.addresses.address import is_backend, runtime_of
from specs.errors import ProtoflyError
from specs.trace import Kind

_HELD: Final = 1000
"""Records at the start of a process that are held back until its home is known."""

_SOME: Final = 1024
"""Records between two times at which claims forget what is old."""

_UNANSWERED: Final = "the final answer to {} is not recorded, nor that there was none"

_Handler: TypeAlias = Callable[[TraceLine], None]
_Spot: TypeAlias = tuple[str | None, ...]
_Method: TypeAlias = tuple[int, str, tuple[Route, ...]]
"""The place of a claim among those of a process, and what it declares of one of its methods."""


class DisorderError(ProtoflyError):
    """Records came out of order: sort them, then judge."""


class LateHomeError(DisorderError):
    """A record says late that its process is a runtime: judge again, with its home.

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
    """The judgement of one process.

    Attributes:
        summary: What others are compared with.
        findings: Which claims are broken, without those that need other processes.
        evidence: For those that do.
        entities: What is judged of its machines, entity by entity: of those that are over without
            a violation, the last ones.
        missing: What its records lack.
        unanswered: Requests without a final answer.
        entity_counts: How many entities each machine has.
        used: How often each step was made (`Machines.used`).
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
    """Return the address of the runtime, if a record says it."""
    if record.k == Kind.TABLE and record.table == LISTENERS and record.actor == BUS:
        return runtime_of(record.key or "")
    return None


def _is_of_node(record: TraceLine) -> bool:
    """Return whether a record says that its process is a message node: a row of its parts."""
    return record.table == "components" and is_backend(record.key or "")


class _ClaimSet:
    """The claims on all processes of one sort.

    To try the routes of all claims for each sort of record that a process has takes a third of the
    time in which a short trace is judged. They are sorted once, by what they declare.
    """

    def __init__(self, wrong: Place, name: str) -> None:
        """Choose the claims.

        Args:
            wrong: Claims that apply only there are left out.
            name: Its name in this module, which stands for it in what is pickled.
        """
        self._name = name
        self.claims = tuple(claim for claim in PROCESS_CLAIMS if claim.place is not wrong)
        methods = [
            (at, *method) for at, claim in enumerate(self.claims) for method in claim.methods
        ]
        routes = [route for *_, several in methods for route in several]
        keys: set[tuple[Kind, str | None]] = {(kind, None) for kind in Kind}
        keys.update((route.kind, name) for route in routes for name in route.names)
        self._methods: dict[tuple[str, str | None], tuple[_Method, ...]] = {
            key: tuple(row for row in methods if any(route.may_take(*key) for route in row[2]))
            for key in keys
        }

    @override
    def __reduce__(self) -> str:
        return self._name

    def methods_of(self, record: TraceLine) -> Iterator[tuple[int, str]]:
        """Yield which methods take a record: the places of their claims, and their names."""
        kind = record.k
        key = kind, name_of(record)
        methods = self._methods.get(key) or self._methods.get((kind, None), ())
        for at, name, routes in methods:
            if any(route.takes(record) for route in routes):
                yield at, name


_OF_RUNTIME: Final = _ClaimSet(Place.NODE, "_OF_RUNTIME")
_OF_NODE: Final = _ClaimSet(Place.RUNTIME, "_OF_NODE")


class ProcessJudge:
    """Judges one run of one process while its records are read."""

    def __init__(
        self,
        run: str,
        node: str,
        home: str | None = None,
        *,
        is_sorted: bool = False,
    ) -> None:
        """Begin.

        Args:
            run: Of which process.
            node: The same.
            home: Address of the runtime, if it is known before.
            is_sorted: Whether the records are sorted; then numbers may be there twice.
        """
        self._machines = Machines(run, node, MACHINES)
        self._gaps = Gaps(run, node)
        self._participants = ParticipantFinder()
        self._crossings = Crossings()
        self._process = Process(run, node, home)
        self._sort = _OF_NODE
        self._claims: list[ProcessClaim] = []
        self._handlers: dict[_Spot, tuple[_Handler, ...]] = {}
        self._held: list[TraceLine] | None = []
        self._is_sorted = is_sorted
        self._last: TraceLine | None = None
        self._is_cut = False
        self._recent: list[Recent[Hashable, object]] = []
        self._visited = 0
        if home is not None:
            self._begin(home)

    def take(self, record: TraceLine) -> None:
        """Take the next record.

        Raises:
            DisorderError: It is not the next.
            LateHomeError: It says what had to be known before.
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
        """Apply the claims, now that the home is known, to what was held back."""
        held, self._held = self._held or [], None
        process = self._process = Process(self._process.run, self._process.node, home)
        if home is None and self._is_cut and not any(map(_is_of_node, held)):
            # It may be either: what says so may be among the records that are missing.
            return
        self._sort = _OF_NODE if home is None else _OF_RUNTIME
        self._claims = [claim(process) for claim in self._sort.claims]
        kept = (value for part in (process, *self._claims) for value in vars(part).values())
        self._recent = [table for table in kept if isinstance(table, Recent)]
        for record in held:
            self._visit(record)

    def _visit(self, record: TraceLine) -> None:
        spot = _spot(record)
        handlers = self._handlers.get(spot)
        if handlers is None:
            handlers = self._handlers[spot] = tuple(self._handlers_of(record))
        for handler in handlers:
            handler(record)
        self._visited += 1  # the numbers of records are a stranger's
        if self._visited % _SOME == 0:
            for recent in self._recent:
                recent.forget()

    def _handlers_of(self, record: TraceLine) -> Iterator[_Handler]:
        """Yield what visits records like this one."""
        if (before := self._process.handler_of(record)) is not None:
            yield before
        if record.op in CROSSED:
            yield self._crossings.take
        if self._claims:
            for at, name in self._sort.methods_of(record):
                yield getattr(self._claims[at], name)

    def handed_over(self) -> list[Evidence]:
        """Return the evidence since this was last asked for; `end` returns the rest."""
        handed_over, self._process.evidence = self._process.evidence, []
        return handed_over

    def end(self) -> ProcessJudgement:
        """Say what is judged; there are no more records."""
        if self._held is not None:
            self._is_cut = self._is_cut or self._last is None or self._last.k != Kind.END
            self._begin(None)
        node = self._gaps.judgement()
        process = self._process
        is_whole = not node.flaws - {Flaw.NO_START}
        process.end = self._last if is_whole else None
        if Flaw.DROPPED in node.flaws:
            # It is not known where records are missing: nothing is judged but steps.
            process, self._claims = Process(node.run, node.node, None), []
        for claim in self._claims:
            claim.end()
        unanswered = (claim for claim in self._claims if isinstance(claim, Unanswered))
        asked = (request for claim in unanswered for request in claim.answers_missing())
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
                Missing(node.run, node.node, one.ln, _UNANSWERED.format(one.mid)) for one in asked
            ),
            entity_counts=self._machines.counts,
            used=self._machines.used,
            stays=self._machines.stays,
        )


def _spot(record: TraceLine) -> _Spot:
    """Return what decides which methods take a record."""
    kind = record.k
    if kind == "msg":
        is_at_bus = "bus" if record.actor == BUS else ""
        if record.body is not None:
            is_at_bus += " body"
        if record.from_ is not None and record.to is not None:
            return record.op, is_at_bus
        return record.op, is_at_bus, None
    if kind == "state":
        return kind, record.op, record.machine
    return kind, (record.table if kind == "table" else record.op), ""


def judge_across(evidence: Iterable[Evidence], whole: AbstractSet[str | None]) -> Iterator[Finding]:
    """Judge the evidence of all processes, key by key.

    Args:
        evidence: In any order.
        whole: Runtimes of whose lives, however often they began anew, nothing is missing, and
            nodes of groups likewise.
    """
    in_order = sorted(evidence, key=attrgetter("fold", "key", "run", "node", "ln", "place"))
    for (name, _), items in groupby(in_order, key=lambda item: (item.fold, item.key)):
        yield from RUN_CLAIMS[name].judge(list(items), whole)


# --- while the process runs -------------------------------------------------------------


_MEMORY: Final = 10_000
"""Records after which a claim forgets (ours: at most some 3 MB for each)."""

MONITORED: Final = tuple(claim for claim in PROCESS_CLAIMS if claim.is_forgetful)
"""The claims that a monitor uses."""


@attrs.define
class _Watch:
    """A claim that is judged, by what, and how many records that has taken."""

    claim: Claim
    judge: ProcessClaim
    taken: int = 0


class OnlineJudge:
    """Judges the records of one process as they come; not thread-safe.

    Attributes:
        machines: The machines whose steps are needed.
        forgotten: How often a claim forgot what it knew.
    """

    def __init__(self, node: str, home: str | None) -> None:
        """Begin.

        Args:
            node: Name of the process.
            home: Address of the runtime; None: it is a message node.
        """
        wrong = Place.RUNTIME if home is None else Place.NODE
        claims = [claim for claim in MONITORED if claim.place is not wrong]
        routes = [route for claim in claims for _, routes in claim.methods for route in routes]
        names = [route.names for route in routes if route.kind is Kind.STATE]
        self.machines = frozenset(name for several in names for name in several)
        self.forgotten = 0
        self._tables = frozenset(table for claim in claims for table in claim.tables)
        self._process = Process("", node, home)
        self._watches = [_Watch(claim, claim(self._process)) for claim in claims]
        self._handlers: dict[_Spot, tuple[tuple[_Watch, str], ...]] = {}

    def take(self, record: TraceLine) -> Sequence[Finding]:
        """Take the next record; return which claims it breaks."""
        spot = _spot(record)
        handlers = self._handlers.get(spot)
        if handlers is None:
            handlers = self._handlers[spot] = tuple(
                (watch, name)
                for watch in self._watches
                for name, routes in watch.claim.methods
                if any(route.takes(record) for route in routes)
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
