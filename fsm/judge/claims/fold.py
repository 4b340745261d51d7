"""The judgement of a claim: a fold over the records of one process, or over evidence of several.

A fold declares the claims that it judges, where it applies (runtimes, message nodes, or both)
and, by the routes of its methods, which records it needs. A record visits the methods that
declared its kind and operation, and no others. At the end of the process the fold reports
what never came.

A matter that one process alone cannot decide is handed over as evidence under a key (a link,
an object, a pair of addresses): an `Across` folds the evidence of all processes under one key.
"""

from collections import deque
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from enum import StrEnum, unique
from sys import intern
from types import FunctionType
from typing import ClassVar, Final, Never, TypeAlias, TypeVar, final

import attrs
from typing_extensions import dataclass_transform, override

from fsm.group.kinds import GroupTable
from fsm.judge.claims.records import BUS, LISTENERS, SLACK, Lasting, Listeners, Rows
from fsm.judge.trace_line import TraceLine
from specs.addresses.address import domain_of
from specs.trace import BODIES, Kind, Op

Datum: TypeAlias = str | int | float | None
"""One value of evidence."""


@final
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


@unique
class GroupKey(StrEnum):
    """The common key of the records that one fold sees."""

    ENTITY = "entity"
    PROCESS = "runtime"
    LINK = "link"
    PAIR = "pair"
    MESSAGE = "message"
    OBJECT = "object"
    SESSION = "session"


@unique
class Place(StrEnum):
    """The processes that a fold applies to."""

    ANY = "any process"
    RUNTIME = "a runtime"
    NODE = "a message node"


@final
@attrs.define(unsafe_hash=True)
class Evidence:
    """Evidence of one process, judged together with that of others.

    Attributes:
        fold: Name of the class that folds it.
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


@final
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

    def takes(self, record: TraceLine) -> bool:
        """Return whether a record is in the set."""
        if not self.may_take(record.k, name_of(record)):
            return False
        if self.is_at_bus and record.actor != BUS:
            return False
        if self.has_body and record.body is None:
            return False
        return not self.has_ends or (record.from_ is not None and record.to is not None)

    def may_take(self, kind: str, name: str | None) -> bool:
        """Return whether records of a kind and a name may be in the set.

        Args:
            kind: Field `k`.
            name: What `name_of` returns of them.
        """
        return kind == self.kind and (not self.names or name in self.names)


def name_of(record: TraceLine) -> str | None:
    """Return what routes select records of one kind by: machine, table, or operation."""
    if record.k == Kind.STATE:
        return record.machine if record.op == Op.STEP else None
    return record.table if record.k == Kind.TABLE else record.op


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
_M = TypeVar("_M", bound=_Method)
_DECLARED: Final[dict[_Method, tuple[Route, ...]]] = {}


def on(*routes: Route) -> Callable[[_M], _M]:
    """Declare which records a method of a fold takes."""

    def declared(method: _M) -> _M:
        _DECLARED[method] = routes
        return method

    return declared


@final
class Process:
    """The process whose records a fold reads.

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
        findings: What was found so far.
        evidence: What was handed over and not taken away yet.
        handed_over: How much evidence there was so far.
    """

    def __init__(self, run: str, node: str, home: str | None) -> None:
        self.run = run
        self.node = node
        self.home = home
        self.end: TraceLine | None = None
        self.listeners = Listeners()
        self.has_bodies = False
        self.links = Rows()
        self.stubs = Rows()
        self.group: str | None = None
        self.member: str | None = None
        self.sessions: dict[str | None, str] = {}
        self.findings: list[Finding] = []
        self.evidence: list[Evidence] = []
        self.handed_over = 0
        self._domain: str | None = None
        self._arrived = Lasting[str | None, int]()
        self._closed = deque[tuple[float, str | None]]()

    def part(self, name: str) -> str:
        """Return the address of a part of the runtime, such as `registry`."""
        return f"{self.home}/{name}"

    @property
    def domain(self) -> str | None:
        """Domain of a message node, once a row of its components said so."""
        return self._domain

    def handler_of(self, record: TraceLine) -> Callable[[TraceLine], None] | None:
        """Return what takes records like this one before any fold sees them; None: nothing does."""
        match record.k:
            case Kind.TABLE:
                return self.take
            case Kind.START:
                return self.began
            case Kind.SESSION:
                return self.opened
            case Kind.LINK if record.op == Op.CLOSE:
                return self.closed
        is_whole = record.from_ is not None and record.to is not None
        return self.arrived if record.op == Op.RCV and is_whole else None

    def take(self, record: TraceLine) -> None:
        """Take a change of a table, before any fold does."""
        table = record.table
        if table == LISTENERS:
            self.listeners.take(record)
        elif table == "p2p":
            self.links.take(record)
        elif table == "stubs":
            self.stubs.take(record)
        elif table == GroupTable.MEMBERS and record.version is not None:
            # Of other members it has no revisions.
            self.group, self.member = (record.val or "").split("|")[0], record.key
        elif table == "components" and self._domain is None and record.key is not None:
            self._domain = domain_of(record.key)

    def began(self, record: TraceLine) -> None:
        """Take the first record, before any fold does."""
        self.has_bodies = record.kind == BODIES

    def arrived(self, record: TraceLine) -> None:
        """Note a message that came over a link, before any fold sees it."""
        if record.mid is not None:
            self._arrived.setdefault(record.mid, record.ln)

    def opened(self, record: TraceLine) -> None:
        """Note that a link has the session of a runtime, before any fold sees it."""
        self.sessions[record.link] = record.b or ""

    def closed(self, record: TraceLine) -> None:
        """Note that a link has closed, before any fold sees it."""
        closed = self._closed
        while closed and closed[0][0] < record.t - SLACK:
            self.sessions.pop(closed.popleft()[1], None)
        if record.link in self.sessions:
            closed.append((record.t, record.link))

    def is_local(self, record: TraceLine) -> bool:
        """Return whether a message came from here: not over a link, up to this record."""
        return self._arrived.get(record.mid or "", record.ln) >= record.ln

    def is_over_since(self, time: float) -> bool:
        """Return whether the process lasted beyond a time, and ended orderly."""
        return self.end is not None and self.end.t > time


def _about(record: TraceLine) -> str:
    return record.mid or record.key or record.link or record.to or ""


@dataclass_transform(field_specifiers=(attrs.field,))
@attrs.define(slots=False, eq=False)
class Fold:
    """Judges claims by the records of one process, each visited once, in order.

    A subclass declares what it keeps as fields, which attrs makes anew for each process.

    Attributes:
        claims: The claims that it judges, by id.
        place: Where it applies.
        methods: Which method takes which records.
        process: Whose records it reads.
        across: What folds the evidence that it hands over.
        is_forgetful: Whether it may begin at any record: its claims are decided by the records
            so far, and what it does not know breaks none. Then a process can judge itself by it.
    """

    claims: ClassVar[tuple[str, ...]]
    place: ClassVar[Place]
    methods: ClassVar[tuple[tuple[str, tuple[Route, ...]], ...]]
    across: ClassVar[tuple[type["Across"], ...]]
    is_forgetful: ClassVar[bool]
    process: Process

    @override
    def __init_subclass__(
        cls,
        *,
        claims: tuple[str, ...],
        place: Place = Place.ANY,
        across: tuple[type["Across"], ...] = (),
        is_forgetful: bool = False,
    ) -> None:
        """Declare a fold; the routes of its methods in the order in which they are written."""
        super().__init_subclass__()
        cls.claims, cls.place, cls.across = claims, place, across
        cls.is_forgetful = is_forgetful
        own = tuple(
            (name, _DECLARED[value])
            for name, value in vars(cls).items()
            if isinstance(value, FunctionType) and value in _DECLARED
        )
        cls.methods = own
        attrs.define(cls, slots=False, eq=False)

    @final
    def broken(
        self, record: TraceLine, expected: str, about: str = "", *, claim: str | None = None
    ) -> None:
        """Report that a record breaks a claim; the only one of this fold unless it is named.

        Args:
            record: The record.
            expected: What the claim expects instead, as half a sentence.
            about: Entity, message or pair that it is about.
            claim: Id of the claim; None: the only one of this fold.
        """
        process, name = self.process, self.claims[0] if claim is None else claim
        where = (process.node,)
        subject = about or _about(record)
        process.findings.append(Finding(name, process.run, where, record.ln, subject, expected))

    @final
    def hand_over(
        self, fold: type["Across"], key: str | None, record: TraceLine, *data: Datum
    ) -> None:
        """Hand evidence over to be judged with that of other processes under the same key.

        Args:
            fold: The fold across processes that takes it.
            key: The key; None: there is one for the whole run.
            record: The record.
            data: What the fold needs to know beside the record.
        """
        process = self.process
        # It stays until all processes are read: texts that several records have are kept once.
        process.evidence.append(
            Evidence(
                fold.__name__, intern(str(key or "")), process.run, process.node,
                process.handed_over, record.ln, intern(str(_about(record))),
                tuple([intern(one) if type(one) is str else one for one in data]),
            )
        )  # fmt: skip
        process.handed_over += 1

    def end(self) -> None:
        """Report what never came; called once, after the last record."""


@dataclass_transform(field_specifiers=(attrs.field,))
@attrs.define(slots=False, eq=False)
class Across:
    """Judges claims by the evidence of all processes under one key.

    A subclass declares what it keeps as fields, as a fold does.

    Attributes:
        claims: The claims that it judges, by id.
        key: What the evidence has in common.
        whole: Runtimes of whose lives, however often they began anew, nothing is missing; None:
            nothing of message nodes, either. Nodes of groups by their ids.
    """

    claims: ClassVar[tuple[str, ...]]
    key: ClassVar[GroupKey]
    whole: AbstractSet[str | None]
    findings: list[Finding] = attrs.field(factory=list)

    @override
    def __init_subclass__(cls, *, claims: tuple[str, ...], key: GroupKey) -> None:
        """Declare a fold."""
        super().__init_subclass__()
        cls.claims, cls.key = claims, key
        attrs.define(cls, slots=False, eq=False)

    @final
    def broken(self, item: Evidence, expected: str, *, claim: str | None = None) -> None:
        """Report that the record of some evidence breaks a claim.

        Args:
            item: The evidence.
            expected: What the claim expects instead, as half a sentence.
            claim: Id of the claim; None: the only one of this fold.
        """
        name = self.claims[0] if claim is None else claim
        self.findings.append(Finding(name, item.run, (item.node,), item.ln, item.about, expected))

    def take(self, item: Evidence) -> None:
        """Take evidence: process by process, and of each in the order of its records.

        Raises:
            NotImplementedError: The subclass takes none.
        """
        raise NotImplementedError

    def end(self) -> None:
        """Judge; called once, after all evidence of the key."""
