"""The judgement of a claim: by the records of one process, or by evidence of several.

A claim on one process declares the ids that it judges, where it applies (runtimes, message nodes,
or both) and which records it needs. What rests on one record and on what is known of the process
is declared by a function (`check`); what keeps something from record to record is a class, a
`ProcessClaim`, whose methods take records (`on`). At the end of the process it reports what
never came.

A matter that one process alone cannot decide is handed over as evidence under a key (a link,
an object, a pair of addresses): a `RunClaim` judges the evidence of all processes under one key.
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
"""One value of evidence."""


@attrs.frozen(slots=True, order=True)
class Finding:
    """One claim, broken once.

    Attributes:
        claim: Which of `specs.claims.CLAIMS`, by its id.
        run: In which run of the process.
        nodes: Whose traces show it; the first is that of the record.
        ln: The record that breaks it, or the one whose sequel never came.
        about: Which message, address, link or object.
        expected: What would have kept the claim, as half a sentence.
    """

    claim: str
    run: str
    nodes: tuple[str, ...]
    ln: int
    about: str
    expected: str


class GroupKey(StrEnum):
    """The common key of the records that one claim reads."""

    ENTITY = "entity"
    PROCESS = "runtime"
    LINK = "link"
    PAIR = "pair"
    MESSAGE = "message"
    OBJECT = "object"
    SESSION = "session"


class Place(StrEnum):
    """The processes that a claim applies to."""

    ANY = "any process"
    RUNTIME = "a runtime"
    NODE = "a message node"


@attrs.define(unsafe_hash=True)
class Evidence:
    """Evidence of one process, judged together with that of others.

    Attributes:
        fold: Name of the `RunClaim` that judges it.
        key: Of the link, the object, or the pair.
        place: Its number among the evidence of its process.
        ln: The record it comes from.
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
        """Return that its record breaks a claim.

        Args:
            claim: Its id.
            expected: What the claim expects instead, as half a sentence.
        """
        return Finding(claim, self.run, (self.node,), self.ln, self.about, expected)


Whole: TypeAlias = AbstractSet[str | None]
"""Runtimes of whose lives, however often they began anew, nothing is missing; None: nothing of
message nodes, either. Nodes of groups by their ids."""

_JudgeKey: TypeAlias = Callable[[Sequence[Evidence], Whole], Iterator[Finding]]


@attrs.frozen(eq=False)
class RunClaim:
    """Claims that are judged by the evidence of all processes under one key.

    Attributes:
        claims: Their ids.
        key: What the evidence has in common.
        judge: Yields what breaks a claim, given all evidence of one key: process by process, and
            of each in the order of its records.
    """

    claims: tuple[str, ...]
    key: GroupKey
    judge: _JudgeKey

    @property
    def name(self) -> str:
        """The name under which evidence is handed over to it."""
        return self.judge.__name__


def run_claim(*claims: str, key: GroupKey) -> Callable[[_JudgeKey], RunClaim]:
    """Declare that a function judges the evidence of all processes under one key."""

    def declare(judge: _JudgeKey) -> RunClaim:
        return RunClaim(claims, key, judge)

    return declare


Sort: TypeAlias = tuple[str, str | None, bool, bool, bool]
"""What decides which routes take a record: its kind and its name (`Route.names`); whether the
Message BUS recorded it; whether it names both ends, and has the body."""


def sort_of(record: TraceLine) -> Sort:
    """Return the sort of a record."""
    kind, name = record.k, record.op
    if kind == Kind.STATE:
        name = record.machine if name == Op.STEP else None
    elif kind == Kind.TABLE:
        name = record.table
    has_ends = record.from_ is not None and record.to is not None
    return kind, name, record.actor == records.BUS, has_ends, record.body is not None


@attrs.frozen
class Route:
    """A set of records: their kind, and a selection within it.

    Attributes:
        kind: Field `k`.
        names: Operations; of `state` the machines, of `table` the tables; empty: all.
        is_at_bus: Only messages that the Message BUS of the process recorded.
        has_ends: Only messages whose record names both ends.
        has_body: Only messages whose record has the body, redacted.
    """

    kind: Kind
    names: frozenset[str]
    is_at_bus: bool = False
    has_ends: bool = False
    has_body: bool = False

    def takes(self, sort: Sort) -> bool:
        """Return whether records of a sort are in the set."""
        kind, name, *has = sort
        if kind != self.kind or (self.names and name not in self.names):
            return False
        needed = self.is_at_bus, self.has_ends, self.has_body
        return all(map(ge, has, needed))


def at_bus(*ops: Op) -> Route:
    """Messages, with both ends, that the Message BUS of the process recorded."""
    return Route(Kind.MSG, frozenset(ops), is_at_bus=True, has_ends=True)


def msg(*ops: Op) -> Route:
    """Messages, with both ends, by any actor."""
    return Route(Kind.MSG, frozenset(ops), has_ends=True)


def with_body(*ops: Op) -> Route:
    """Messages of the framework, by any actor, in a trace with bodies."""
    return Route(Kind.MSG, frozenset(ops), has_ends=True, has_body=True)


def bodies_at_bus(*ops: Op) -> Route:
    """The same, recorded by the Message BUS of the process."""
    return Route(Kind.MSG, frozenset(ops), is_at_bus=True, has_ends=True, has_body=True)


def any_msg(*ops: Op) -> Route:
    """Messages by any actor, also if the record does not name both ends."""
    return Route(Kind.MSG, frozenset(ops))


def steps(*machines: str) -> Route:
    """Steps of machines."""
    return Route(Kind.STATE, frozenset(machines))


def rows(*tables: str) -> Route:
    """Changes of tables."""
    return Route(Kind.TABLE, frozenset(tables))


def others(kind: Kind, *ops: Op) -> Route:
    """Records of any other kind."""
    return Route(kind, frozenset(ops))


_Method: TypeAlias = Callable[[Never, TraceLine], None]
Methods: TypeAlias = tuple[tuple[str, tuple[Route, ...]], ...]
_M = TypeVar("_M", bound=_Method)
_DECLARED: Final[dict[_Method, tuple[Route, ...]]] = {}


def on(*routes: Route) -> Callable[[_M], _M]:
    """Declare which records a method takes."""

    def declared(method: _M) -> _M:
        _DECLARED[method] = routes
        return method

    return declared


def methods_in(cls: type) -> Methods:
    """Return which methods of a class take which records, as they are written."""
    return tuple(
        (name, _DECLARED[value])
        for name, value in vars(cls).items()
        if isinstance(value, FunctionType) and value in _DECLARED
    )


_KNOWN: Final = frozenset(
    {records.SESSION, records.LINK_MACHINE, "stub_connection", "stub_deployment"}
)
"""The machines of whose entities the state is known of each process."""


def _about(record: TraceLine) -> str:
    return record.mid or record.key or record.link or record.to or ""


class Process:
    """The process whose records a claim reads.

    Attributes:
        home: Address of the runtime; None: it is a message node, or listeners are not recorded.
        end: Its last record if it ended orderly and no record is missing; known at the end.
        listeners: The tables of its routers, as of the record that is read.
        has_bodies: Whether records of the framework's messages have bodies.
        links: Its table of direct links.
        stubs: Its table of stubs.
        group: Name of the group of a message node; None: it is in none.
        member: Its id there.
        sessions: Of a message node, the runtime of each link that has a session, and `SLACK`
            seconds longer.
        owners: The runtime to which each address is allocated.
        findings: What was found so far.
        evidence: What was handed over and not taken away yet.
        handed_over: How much evidence there was so far.
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
        """Return the address of a part of the runtime, such as `registry`."""
        return f"{self.home}/{name}"

    @property
    def domain(self) -> str | None:
        """Domain of a message node, once a row of its components said so."""
        return self._domain

    @on(rows())
    def take_row(self, record: TraceLine) -> None:
        """Take a change of a table, before any claim does."""
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
            # Of other members it has no revisions.
            self.group, self.member = (record.val or "").split("|")[0], record.key
        elif table == "components" and self._domain is None and record.key is not None:
            self._domain = domain_of(record.key)

    @on(others(Kind.START))
    def take_start(self, record: TraceLine) -> None:
        """Take the first record, before any claim does."""
        self.has_bodies = record.kind == BODIES

    @on(msg(Op.RCV))
    def take_arrival(self, record: TraceLine) -> None:
        """Note a message that came over a link, before any claim does."""
        if record.mid is not None:
            self._arrived.setdefault(record.mid, record.ln)

    @on(others(Kind.SESSION))
    def take_session(self, record: TraceLine) -> None:
        """Note that a link has the session of a runtime, before any claim does."""
        self.sessions[record.link] = record.b or ""

    @on(steps(*_KNOWN))
    def take_step(self, record: TraceLine) -> None:
        """Note the state of an entity, before any claim does."""
        is_session = record.machine == records.SESSION
        key = records.runtime_of_session(record) if is_session else records.split(record.key)[-1]
        self._states[record.machine, key] = record.new

    def state(self, machine: str, key: str | None) -> str | None:
        """Return the state of an entity; None: it is not known.

        Args:
            machine: One of `stub_connection`, `stub_deployment`, `session`, `p2p_connection`.
            key: Address of the stub, of the runtime, or of the end of the link.
        """
        return self._states.get((machine, key))

    @on(others(Kind.LINK, Op.CLOSE))
    def take_link_end(self, record: TraceLine) -> None:
        """Note that a link has closed, before any claim does."""
        closed = self._closed
        while closed and closed[0][0] < record.t - records.SLACK:
            self.sessions.pop(closed.popleft()[1], None)
        if record.link in self.sessions:
            closed.append((record.t, record.link))

    def is_local(self, record: TraceLine) -> bool:
        """Return whether a message came from here: not over a link, up to this record."""
        return self._arrived.get(record.mid or "", record.ln) >= record.ln

    def overdue(self, waiting: Iterable[TraceLine], seconds: float) -> Iterator[TraceLine]:
        """Yield the records so many seconds after which the process had not ended."""
        return (record for record in waiting if self.is_over_since(record.t + seconds))

    def is_over_since(self, time: float) -> bool:
        """Return whether the process lasted beyond a time, and ended orderly."""
        return self.end is not None and self.end.t > time

    def report_break(self, claim: str, record: TraceLine, expected: str, about: str = "") -> None:
        """Report that a record breaks a claim.

        Args:
            claim: Its id.
            record: The record.
            expected: What the claim expects instead, as half a sentence.
            about: Entity, message or pair that it is about.
        """
        subject = about or _about(record)
        finding = Finding(claim, self.run, (self.node,), record.ln, subject, expected)
        self.findings.append(finding)

    def hand_over(self, claim: RunClaim, key: str | None, record: TraceLine, *data: Datum) -> None:
        """Hand evidence over to be judged with that of other processes under the same key.

        Args:
            claim: What judges it.
            key: The key; None: there is one for the whole run.
            record: The record.
            data: What the claim needs to know beside the record.
        """
        # It stays until all processes are read: texts that several records have are kept once.
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
    """Give each field without a default an empty container of its type."""
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
"""Every claim on one process whose module was imported."""


@attrs.define(slots=False, eq=False)
class ProcessClaim:
    """Judges claims by the records of one process, each visited once, in order.

    A subclass declares what it keeps as fields: containers, which are made anew for each process.

    Attributes:
        claims: The claims that it judges, by id.
        place: Where it applies.
        methods: Which method takes which records.
        process: Whose records it reads.
        across: What judges the evidence that it hands over.
        is_forgetful: Whether it may begin at any record: its claims are decided by the records
            so far, and what it does not know breaks none. Then a process can judge itself by it.
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
        """Declare a claim; the routes of its methods in the order in which they are written."""
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
        """Report that a record breaks a claim; the only one of this class unless it is named.

        Args:
            record: The record.
            expected: What the claim expects instead, as half a sentence.
            about: Entity, message or pair that it is about.
            claim: Id of the claim; None: the only one of this class.
        """
        self.process.report_break(claim or self.claims[0], record, expected, about)

    def end(self) -> None:
        """Report what never came; called once, after the last record."""


Claim: TypeAlias = type[ProcessClaim]
"""What declares how the records of one process are judged; called with a process, it begins."""


def check(
    *claims: str,
    on: Route,
    place: Place = Place.ANY,
    across: tuple[RunClaim, ...] = (),
    is_forgetful: bool = False,
) -> Callable[[Callable[[Process, TraceLine], None]], Claim]:
    """Declare that a function judges claims by each of some records, and what the process knows.

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
