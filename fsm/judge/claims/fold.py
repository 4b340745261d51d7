"""Base classes and decorators of claims, judged on one process or on evidence of several.

A claim on one process declares the ids that it judges, where it applies (runtimes, message nodes,
or both) and which records it needs. A claim that needs one record and the state of the process is a
function (`check`). A claim that remembers earlier records is a class, a `ProcessClaim`, whose
methods take records (`on`). At the end of the process it reports expected records that never came.

If one process alone cannot decide a claim, it provides evidence under a key (a link, an object, a
pair of addresses): a `RunClaim` judges the evidence of all processes under one key.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from enum import StrEnum
from functools import partial
from operator import ge
from sys import intern
from types import FunctionType, new_class
from typing import ClassVar, Final, Never, TypeAlias, TypeVar, cast, final, get_args, get_origin

import attrs
from typing_extensions import override

from fsm.group.kinds import GroupTable
from fsm.judge.claims import records
from fsm.judge.trace_line import TraceLine
from specs.addresses.address import domain_of
from specs.trace import BODIES, Kind, Op

Datum: TypeAlias = str | int | float | None
"""Value that is part of evidence."""


@attrs.frozen(slots=True, order=True)
class Finding:
    """Violation of a claim by a record, or by a record that is missing.

    Attributes:
        claim: Id of the claim in `specs.claims.CLAIMS`.
        run: Run of the process.
        nodes: The processes whose traces show it; the first wrote the record.
        ln: Number of the record that violates the claim, or that the missing record should have
            followed.
        about: The message, address, link or object.
        expected: The expected event, as half a sentence.
    """

    claim: str
    run: str
    nodes: tuple[str, ...]
    ln: int
    about: str
    expected: str


class GroupKey(StrEnum):
    """Subject that all evidence or records have in common that a claim compares."""

    ENTITY = "entity"
    PROCESS = "runtime"
    LINK = "link"
    PAIR = "pair"
    MESSAGE = "message"
    OBJECT = "object"
    SESSION = "session"


class Place(StrEnum):
    """Kind of process that a claim applies to."""

    ANY = "any process"
    RUNTIME = "a runtime"
    NODE = "a message node"


@attrs.define(unsafe_hash=True)
class Evidence:
    """Fact recorded by one process, to be judged together with facts of other processes.

    Attributes:
        fold: Name of the `RunClaim` that judges it.
        key: Key of the link, the object, or the pair.
        place: Its index among the evidence of its process.
        ln: Number of the record it comes from.
        about: Subject of a finding at that record.
    """

    fold: str
    key: str
    run: str
    node: str
    place: int
    ln: int
    about: str
    data: tuple[Datum, ...]

    def breaks(self, claim: str, expected: str) -> Finding:
        """Return a finding: the record of this evidence violates a claim.

        Args:
            claim: Id of the claim.
            expected: What the claim expects instead, as half a sentence.
        """
        return Finding(claim, self.run, (self.node,), self.ln, self.about, expected)


Whole: TypeAlias = AbstractSet[str | None]
"""Processes whose traces, over all their runs, are complete.

Contains addresses of runtimes, ids of nodes in groups, and None if all message nodes' are.
"""

_JudgeKey: TypeAlias = Callable[[Sequence[Evidence], Whole], Iterator[Finding]]


@attrs.frozen(eq=False)
class RunClaim:
    """Claims that are judged by the evidence of all processes under one key.

    Attributes:
        claims: Ids of the claims.
        key: Subject that the evidence has in common.
        judge: Yields the violations, given all evidence of one key: process by process, in the
            order of the records of each.
    """

    claims: tuple[str, ...]
    key: GroupKey
    judge: _JudgeKey

    @property
    def name(self) -> str:
        """Name by which evidence refers to this claim."""
        return self.judge.__name__


def run_claim(*claims: str, key: GroupKey) -> Callable[[_JudgeKey], RunClaim]:
    """Declare that a function judges claims by the evidence of all processes under one key."""

    def declare(judge: _JudgeKey) -> RunClaim:
        return RunClaim(claims, key, judge)

    return declare


Sort: TypeAlias = tuple[str, str | None, bool, bool, bool]
"""Properties of a record on which its selection by a `Route` depends.

Kind; name (`Route.names`); if the Message BUS recorded it; if it names both ends; if it has a body.
"""


def sort_of(record: TraceLine) -> Sort:
    """Return the properties of a record by which routes select it."""
    kind, name = record.k, record.op
    if kind == Kind.STATE:
        name = record.machine if name == Op.STEP else None
    elif kind == Kind.TABLE:
        name = record.table
    has_ends = record.from_ is not None and record.to is not None
    return kind, name, record.actor == records.BUS, has_ends, record.body is not None


@attrs.frozen
class Route:
    """Selection of records for a method of a claim: their kind and further properties.

    Attributes:
        kind: Field `k`.
        names: Operations; for the kind `state` machines, for `table` tables; empty: all.
        is_at_bus: Only messages that the Message BUS of the process recorded.
        has_ends: Only messages whose record names sender and receiver.
        has_body: Only messages whose record has the body, redacted.
    """

    kind: Kind
    names: frozenset[str]
    is_at_bus: bool = False
    has_ends: bool = False
    has_body: bool = False

    def takes(self, sort: Sort) -> bool:
        """Return whether this route selects records with the given properties."""
        kind, name, *has = sort
        if kind != self.kind or (self.names and name not in self.names):
            return False
        needed = self.is_at_bus, self.has_ends, self.has_body
        return all(map(ge, has, needed))


def at_bus(*ops: Op) -> Route:
    """Select messages, with sender and receiver, that the Message BUS of the process recorded."""
    return Route(Kind.MSG, frozenset(ops), is_at_bus=True, has_ends=True)


def msg(*ops: Op) -> Route:
    """Select messages, with sender and receiver, recorded by any component."""
    return Route(Kind.MSG, frozenset(ops), has_ends=True)


def with_body(*ops: Op) -> Route:
    """Select messages of the framework with bodies, recorded by any component."""
    return Route(Kind.MSG, frozenset(ops), has_ends=True, has_body=True)


def bodies_at_bus(*ops: Op) -> Route:
    """Select messages of the framework, in a trace with bodies, that the Message BUS recorded."""
    return Route(Kind.MSG, frozenset(ops), is_at_bus=True, has_ends=True, has_body=True)


def any_msg(*ops: Op) -> Route:
    """Select messages recorded by any component, also without sender or receiver."""
    return Route(Kind.MSG, frozenset(ops))


def steps(*machines: str) -> Route:
    """Select state machine transitions of the given machines."""
    return Route(Kind.STATE, frozenset(machines))


def rows(*tables: str) -> Route:
    """Select changes of the given tables."""
    return Route(Kind.TABLE, frozenset(tables))


def others(kind: Kind, *ops: Op) -> Route:
    """Select records of a kind that has no other selecting function."""
    return Route(kind, frozenset(ops))


_Method: TypeAlias = Callable[[Never, TraceLine], None]
Methods: TypeAlias = tuple[tuple[str, tuple[Route, ...]], ...]
_M = TypeVar("_M", bound=_Method)
_DECLARED: Final[dict[_Method, tuple[Route, ...]]] = {}


def on(*routes: Route) -> Callable[[_M], _M]:
    """Declare which records are passed to a method."""

    def declared(method: _M) -> _M:
        _DECLARED[method] = routes
        return method

    return declared


def methods_in(cls: type) -> Methods:
    """Return the methods of a class that handle records, with their routes, in source order."""
    return tuple(
        (name, _DECLARED[value])
        for name, value in vars(cls).items()
        if isinstance(value, FunctionType) and value in _DECLARED
    )


_KNOWN: Final = frozenset(
    {records.SESSION, records.LINK_MACHINE, "stub_connection", "stub_deployment"}
)
"""Machines whose entities' present states are known in each process."""


def _about(record: TraceLine) -> str:
    return record.mid or record.key or record.link or record.to or ""


class Process:
    """State of the process whose records a claim reads, rebuilt from earlier records.

    Attributes:
        home: Address of the runtime; None: it is a message node, or listeners are not recorded.
        end: Its last record, if it ended normally and no record is missing; set at the end.
        listeners: The tables of its routers, at the record that is being read.
        has_bodies: Whether records of the framework's messages have bodies.
        links: Its table of direct links.
        stubs: Its table of stubs.
        group: Name of the group of a message node; None: it is in no group.
        member: Its id in the group.
        sessions: Of a message node, the runtime whose session each link has; a closed link stays
            for `SLACK` seconds.
        owners: The runtime to which each address is allocated.
        findings: The violations found so far.
        evidence: The evidence that was not collected yet.
        handed_over: Number of pieces of evidence so far.
    """

    def __init__(self, run: str, node: str, home: str | None) -> None:
        self.run = run
        self.node = node
        self.home = home
        self.end: TraceLine | None = None
        self.listeners = records.Listeners()
        self.has_bodies = False
        self.links = records.Rows()
        self.stubs = records.Rows()
        self.group: str | None = None
        self.member: str | None = None
        self.sessions: dict[str | None, str] = {}
        self.owners: dict[str | None, str | None] = {}
        self.findings: list[Finding] = []
        self.evidence: list[Evidence] = []
        self.handed_over = 0
        self._domain: str | None = None
        self._arrived = records.Lasting[str | None, int]()
        self._closed = deque[tuple[float, str | None]]()
        self._states: dict[tuple[str | None, str | None], str | None] = {}

    def part(self, name: str) -> str:
        """Return the address of a component of the runtime, such as `registry`."""
        return f"{self.home}/{name}"

    @property
    def domain(self) -> str | None:
        """The domain of a message node; None until a record of its components reveals it."""
        return self._domain

    @on(rows())
    def take_row(self, record: TraceLine) -> None:
        """Apply a recorded change of a table; called before any claim reads the record."""
        table = record.table
        if table == records.LISTENERS:
            self.listeners.take(record)
        elif table == "p2p":
            self.links.take(record)
        elif table == "stubs":
            self.stubs.take(record)
        elif table == "alloc":
            if record.op == Op.DEL:
                self.owners.pop(record.key, None)
            else:
                self.owners[record.key] = record.val
        elif table == GroupTable.MEMBERS and record.version is not None:
            # Rows of other members have no revision.
            self.group, self.member = (record.val or "").split("|")[0], record.key
        elif table == "components" and self._domain is None and record.key is not None:
            self._domain = domain_of(record.key)

    @on(others(Kind.START))
    def take_start(self, record: TraceLine) -> None:
        """Read the first record of the trace; called before any claim reads the record."""
        self.has_bodies = record.kind == BODIES

    @on(msg(Op.RCV))
    def take_arrival(self, record: TraceLine) -> None:
        """Remember a message that came over a link; called before any claim reads the record."""
        if record.mid is not None:
            self._arrived.setdefault(record.mid, record.ln)

    @on(others(Kind.SESSION))
    def take_session(self, record: TraceLine) -> None:
        """Remember that a link has the session of a runtime; called before the claims."""
        self.sessions[record.link] = record.b or ""

    @on(steps(*_KNOWN))
    def take_step(self, record: TraceLine) -> None:
        """Remember the state of an entity; called before any claim reads the record."""
        is_session = record.machine == records.SESSION
        key = records.runtime_of_session(record) if is_session else records.split(record.key)[-1]
        self._states[record.machine, key] = record.new

    def state(self, machine: str, key: str | None) -> str | None:
        """Return the last recorded state of an entity, or None if it is unknown.

        Args:
            machine: One of `stub_connection`, `stub_deployment`, `session`, `p2p_connection`.
            key: Address of the stub, of the runtime, or of the end of the link.
        """
        return self._states.get((machine, key))

    @on(others(Kind.LINK, Op.CLOSE))
    def take_link_end(self, record: TraceLine) -> None:
        """Remember that a link has closed; called before any claim reads the record."""
        closed = self._closed
        while closed and closed[0][0] < record.t - records.SLACK:
            self.sessions.pop(closed.popleft()[1], None)
        if record.link in self.sessions:
            closed.append((record.t, record.link))

    def is_local(self, record: TraceLine) -> bool:
        """Return whether a message was made in this process: no record shows its arrival."""
        return self._arrived.get(record.mid or "", record.ln) >= record.ln

    def overdue(self, waiting: Iterable[TraceLine], seconds: float) -> Iterator[TraceLine]:
        """Yield the records that are older than some seconds when the process ends normally."""
        return (record for record in waiting if self.is_over_since(record.t + seconds))

    def is_over_since(self, time: float) -> bool:
        """Return whether the process ended normally and after a time."""
        return self.end is not None and self.end.t > time

    def report_break(self, claim: str, record: TraceLine, expected: str, about: str = "") -> None:
        """Add a finding: a record violates a claim.

        Args:
            claim: Id of the claim.
            record: The record.
            expected: What the claim expects instead, as half a sentence.
            about: The entity, message or pair concerned.
        """
        subject = about or _about(record)
        finding = Finding(claim, self.run, (self.node,), record.ln, subject, expected)
        self.findings.append(finding)

    def hand_over(self, claim: RunClaim, key: str | None, record: TraceLine, *data: Datum) -> None:
        """Provide evidence to be judged with that of other processes under the same key.

        Args:
            claim: The claim that judges the evidence.
            key: The key; None: one key for the whole run.
            record: The record.
            data: The data that the claim needs besides the record.
        """
        # Evidence is kept until all processes are read, so equal texts are stored once.
        self.evidence.append(
            Evidence(
                claim.name, intern(str(key or "")), self.run, self.node,
                self.handed_over, record.ln, intern(str(_about(record))),
                tuple([intern(value) if type(value) is str else value for value in data]),
            )
        )  # fmt: skip
        self.handed_over += 1


def _fields_made_anew(
    _: type, fields: "list[attrs.Attribute[object]]"
) -> "list[attrs.Attribute[object]]":
    """Return fields with defaults: an empty container of its type for each field without one."""
    return [
        field.evolve(default=attrs.Factory(_maker(field.type)))
        if field.default is attrs.NOTHING and field.name != "process"
        else field
        for field in fields
    ]


def _maker(kind: object) -> Callable[[], object]:
    made = cast("Callable[[], object]", get_origin(kind) or kind)
    return partial(defaultdict, get_origin(get_args(kind)[1])) if made is defaultdict else made


DECLARED: Final[list["Claim"]] = []
"""All claims on one process whose modules were imported."""


@attrs.define(slots=False, eq=False)
class ProcessClaim:
    """Base class of claims that are judged by the records of one process, read once, in order.

    A subclass declares its memory as fields: containers, which are created for each process.

    Attributes:
        claims: Ids of the claims that it judges.
        place: The kind of processes that it applies to.
        methods: The methods that handle records, with their routes.
        process: The process whose records it reads.
        across: The claims that judge the evidence that it provides.
        is_forgetful: Whether it may begin at any record: it is decided by the records so far, and
            unknown history causes no violation. Then a process can judge itself by it.
        tables: If it is forgetful, the tables of the process that it reads: a process that judges
            itself keeps no others.
    """

    claims: ClassVar[tuple[str, ...]]
    place: ClassVar[Place]
    methods: ClassVar[Methods]
    across: ClassVar[tuple[RunClaim, ...]]
    is_forgetful: ClassVar[bool]
    tables: ClassVar[tuple[str, ...]]
    process: Process

    @override
    def __init_subclass__(
        cls,
        *,
        claims: tuple[str, ...],
        place: Place = Place.ANY,
        across: tuple[RunClaim, ...] = (),
        is_forgetful: bool = False,
        tables: tuple[str, ...] = (),
    ) -> None:
        """Register a claim; its methods are called in the order in which they are written."""
        super().__init_subclass__()
        cls.claims, cls.place, cls.across = claims, place, across
        cls.is_forgetful, cls.tables = is_forgetful, tables
        cls.methods = methods_in(cls)
        attrs.define(cls, slots=False, eq=False, field_transformer=_fields_made_anew)
        DECLARED.append(cls)

    @final
    def report_break(
        self, record: TraceLine, expected: str, about: str = "", *, claim: str | None = None
    ) -> None:
        """Add a finding: a record violates a claim of this class.

        Args:
            record: The record.
            expected: What the claim expects instead, as half a sentence.
            about: The entity, message or pair concerned.
            claim: Id of the claim; None: the only one of this class.
        """
        self.process.report_break(claim or self.claims[0], record, expected, about)

    def end(self) -> None:
        """Report expected records that never came; called once, after the last record."""


Claim: TypeAlias = type[ProcessClaim]
"""Class that judges claims on the records of one process; it has one instance per process."""


def check(
    *claims: str,
    on: Route,
    place: Place = Place.ANY,
    across: tuple[RunClaim, ...] = (),
    is_forgetful: bool = False,
) -> Callable[[Callable[[Process, TraceLine], None]], Claim]:
    """Declare that a function judges claims by single records and the state of the process.

    The claim has the name of the function, by which it is pickled.
    """

    def declare(function: Callable[[Process, TraceLine], None]) -> Claim:
        def take(self: ProcessClaim, record: TraceLine) -> None:
            function(self.process, record)

        _DECLARED[take] = (on,)
        body = {"take": take, "__module__": function.__module__, "__doc__": function.__doc__}
        options = {"claims": claims, "place": place, "across": across, "is_forgetful": is_forgetful}
        return new_class(
            function.__name__, (ProcessClaim,), options, lambda space: space.update(body)
        )

    return declare
