"""The metrics of a process, by stable names (OBS-06).

The value of each member is the name of its metric without `protofly_` and without the
ending of its kind; the names of its labels and its meaning stand beside it. Labels
are members of closed vocabularies, so that no address can become one.

Counting is plain arithmetic on objects of our own, independent of the readers of the counters.
"""

import time
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from enum import IntEnum, StrEnum
from types import MappingProxyType
from typing import Final, Self, TypeAlias, final

import attrs

from specs.limits.bus import DROPS_KEPT, FINDINGS_KEPT, REFUSAL_CHARS, REFUSALS_KEPT
from specs.message import Message, MessageType
from specs.reply_code import Code, DropReason, Ground


class Form(StrEnum):
    """Wire formats in which messages come to a node, as labels of metrics."""

    LINK = "link"
    PLAIN = "plain"
    SESSION = "session"
    REST = "rest"


class BackEnd(StrEnum):
    """Kinds of external services that a node uses, as labels of metrics."""

    REGISTRY = "registry"
    GLOBAL = "global"
    QUALITY = "qos"
    PUSH = "push"


class Outcome(StrEnum):
    """Results of requests to other services, as labels of metrics."""

    OK = "ok"
    REFUSED = "refused"
    FAILED = "failed"
    TIMEOUT = "timeout"


class KeptFile(StrEnum):
    """Files that a node keeps, and that it counts failed writes of."""

    REGISTRY = "registry"
    STATE = "state"
    USED_TOKENS = "used-tokens"


class Measured(StrEnum):
    """Name of a metric, with the names of its labels and its description.

    Attributes:
        labels: Names of its labels, in the order they are counted by.
        says: Description for an operator; one sentence.
    """

    labels: tuple[str, ...]
    says: str

    def __new__(cls, name: str, labels: tuple[str, ...], says: str) -> Self:
        """Make a member from its name, labels and description."""
        member = str.__new__(cls, name)
        member._value_ = name
        member.labels = labels
        member.says = says
        return member


class Tally(Measured):
    """Metrics that only increase, counted by `Counters.count`."""

    REFUSALS = "messages_refused", ("code",), "Messages refused before any effect."
    GIVEN_UP = "requests_given_up", (), "Open requests whose requesters have stopped waiting."
    LINKS_OPENED = "links_opened", ("form",), "Links that the listener accepted."
    LINKS_CLOSED = "links_closed", ("reason",), "Links that ended, by reason."
    HANDSHAKES_REFUSED = "handshakes_refused", ("reason",), "Connections that the listener refused."
    SESSIONS_ENDED = "sessions_ended", ("state",), "Sessions that ended."
    LOGINS = "logins", ("outcome",), "Logins at the node."
    WRITES_FAILED = "file_write_failures", ("file",), "Attempts to write a file that failed."
    STUBS_OPENED = "foreign_stubs_opened", (), "Foreign stubs that were started."
    STUBS_GONE = "foreign_stubs_gone", (), "Foreign stubs that have ended."
    VIEWERS = "dashboard_viewers_ended", ("reason",), "Viewers of the dashboard that ended."
    HINTS = "link_hints_refused", (), "Hints of senders for direct links that no record confirms."
    ROWS = "engine_rows_refused", ("reason",), "Rows of the engine that the node does not take."
    ROWS_LOST = "engine_rows_lost", (), "Writes of rows that lost to a write of another node."
    OUTAGES = "engine_outages", (), "Times that the engine was lost."
    PAYLOADS = "engine_payloads_lost", (), "Payloads between nodes that may be lost."
    DENIALS = "engine_denials", (), "Operations that the engine denied to this node."
    ADMISSIONS = "group_admissions", (), "Times that the node became a member of its group."
    FENCES = "group_fences", (), "Times that the node lost its membership: all links were closed."
    DESCRIPTORS = "descriptors_judged", ("outcome",), "Descriptors of stubs that were verified."
    SPANS = "spans", ("fate",), "Spans that a collector took, or that were dropped, and why."
    TRACEPARENTS = "traceparents_ignored", (), "Invalid parents of sampled messages."


class Timing(Measured):
    """Metrics of durations, measured by `Counters.took`."""

    COMMIT = "registry_commit", (), "Commits of the domain registry's file."
    CONNECTOR = "connector_request", ("connector", "outcome"), "Requests to back ends."


class Gauge(Measured):
    """Metrics with a current value, which a function given to `Counters.watch` returns."""

    SESSIONS = "sessions", ("state",), "Sessions that the node holds."
    LINKS = "links", (), "Links that are open."
    LINKS_PENDING = "links_without_session", (), "Links that are open and have no session yet."
    OUTBOX_MESSAGES = "outbox_messages", (), "Messages that wait to be written to links."
    OUTBOX_BYTES = "outbox_bytes", (), "Bytes of messages that wait to be sent."
    ADDRESSES = "addresses", (), "Addresses that sessions own."
    SUBSCRIPTIONS = "subscriptions", (), "Paths that sessions subscribe to."
    NAMES = "runtime_names", (), "Names of runtimes that belong to users."
    RECORDS = "registry_records", (), "Records of the domain registry."
    POLICY_VERSION = "policy_version", ("of",), "Policies of the domain, and of the node; 0: none."
    GROUP_STATE = "group_state", ("state",), "1 for the state that the node has in its group."
    GROUP_NODES = "group_nodes", ("state",), "Nodes that hold a lease, as this node knows."
    GROUP_ROWS = "group_rows", (), "Rows of the engine that the node knows."
    GROUP_WRITES = "group_rows_waiting", (), "Rows that wait to be written to the engine."
    GROUP_MESSAGES = "group_messages_waiting", (), "Messages that wait to go to other nodes."
    ENGINE_UP = "engine_up", (), "1 while the node reaches its engine, else 0."
    STUBS = "foreign_stubs", (), "Foreign stubs that run."
    HYPERTIES = "hyperties", (), "Hyperties that run."
    VIEWERS = "dashboard_viewers", (), "Pages that watch the dashboard."
    TRACE_LOST = "trace_records_lost", (), "Records that the trace dropped."


@final
@attrs.frozen(slots=True)
class Drop:
    """Record of a message that was not delivered, without the body of the message.

    Attributes:
        wall_ns: Time of the drop, in nanoseconds since 1970 UTC, as in a trace.
        where: Part of the process that dropped it.
        reason: Why it was dropped.
        id: Id of the message.
        type: Verb of the message.
        from_: Address of its sender.
        to: Address of its receiver.
    """

    wall_ns: int
    where: str
    reason: DropReason
    id: int
    type: MessageType
    from_: str
    to: str


@final
@attrs.frozen
class DropLedger:
    """Overview of the messages that were not delivered since the start.

    Attributes:
        counts: Number of messages since the start, by reason.
        last: The last `DROPS_KEPT` of them, the oldest first; what could not be read as a message
            is only counted.
    """

    counts: Mapping[DropReason, int]
    last: tuple[Drop, ...]

    @property
    def total(self) -> int:
        """Number of messages that were not delivered."""
        return sum(self.counts.values())


def _clip(text: str) -> str:
    return text[:REFUSAL_CHARS]


@final
@attrs.frozen(slots=True)
class Refused:
    """Record of a message that was refused, without its body; long texts are cut off.

    Attributes:
        wall_ns: Time of the refusal, in nanoseconds since 1970 UTC, as in a trace.
        where: Part of the process that refused it.
        id: Id of the message.
        type: Verb of the message; empty: it is not known any more.
        from_: Address of its sender, as the message names it.
        to: Address of its receiver.
        by: Runtime over whose session the message came; else name of the link, or empty.
        code: Code of the refusal.
        ground: Kind of the rule that it breaks.
        why: The reason, as its sender was told.
        rule: Rule of the policies that denied it; empty: it was none.
    """

    wall_ns: int
    where: str
    id: int
    type: str
    from_: str = attrs.field(converter=_clip)
    to: str = attrs.field(converter=_clip)
    by: str = attrs.field(converter=_clip)
    code: Code | int
    ground: Ground
    why: str = attrs.field(converter=_clip)
    rule: str = attrs.field(default="", converter=_clip)


@attrs.frozen(slots=True)
class BrokenClaim:
    """Record of a declared guarantee (claim) that this process found violated.

    Attributes:
        wall_ns: Time of the finding, in nanoseconds since 1970 UTC.
        claim: Id of the claim.
        about: The entity for which the claim is violated.
        expected: What should have happened instead.
    """

    wall_ns: int
    claim: str
    about: str = attrs.field(converter=_clip)
    expected: str = attrs.field(converter=_clip)


Label: TypeAlias = StrEnum | IntEnum
"""A member of a closed vocabulary: no text of a peer can become a label."""

Labels: TypeAlias = tuple[Label, ...]
"""Values of a metric's labels, in the order that the metric declares."""

Reading: TypeAlias = int | Mapping[Label, int]
"""Value of a gauge: a number, or one for each value of its label."""

BOUNDS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
"""Upper bounds of the histogram classes of durations, in seconds; the last class has no bound."""


class Durations:
    """Histogram of durations.

    Attributes:
        classes: Number of durations in each class of `BOUNDS`, and above the last bound.
        total: Sum of the durations, in seconds.
    """

    __slots__ = ("classes", "total")

    def __init__(self) -> None:
        self.classes = [0] * (len(BOUNDS) + 1)
        self.total = 0.0

    def add(self, seconds: float) -> None:
        """Add a duration to the histogram."""
        self.classes[bisect_left(BOUNDS, seconds)] += 1
        self.total += seconds


class Counters:
    """Counts of one process, for tests and metrics; each drop is counted once.

    Attributes:
        received: Messages that came over links, by their wire form.
        sent: Messages that were passed to links, likewise.
        drops: Messages not delivered, by the one reason each has.
        grounds: Messages refused, by ground and code.
        monitor_resets: How often a fold of the monitor forgot what it knew, to bound its memory.
        broken_claims: How often the process itself found each claim broken, by its id.
        dead_letters: Messages left to actors that were gone, by actor.
        tallies: All that `count` counted, by labels.
        timings: The durations given to `took`, by labels.
    """

    def __init__(self) -> None:
        self.drops: Final = Counter[DropReason]()
        self.grounds: Final = Counter[tuple[Ground, int]]()
        self.violations: Final = Counter[str]()
        self.broken_claims: Final = Counter[str]()
        self.dead_letters: Final = Counter[str]()
        self.restarts: Final = Counter[str]()
        self.tallies: Final = {each: Counter[Labels]() for each in Tally}
        self.timings: Final[dict[Timing, dict[Labels, Durations]]] = {each: {} for each in Timing}
        self.gauges: Final = dict[Gauge, Callable[[], Reading]]()
        self.received: Final = dict.fromkeys(Form, 0)
        self.sent: Final = dict.fromkeys(Form, 0)
        self.monitor_resets = 0
        self.admitted = 0
        self.permitted = 0
        self.denied = 0
        self._findings: Final = deque[BrokenClaim](maxlen=FINDINGS_KEPT)
        self._refused: Final = deque[Refused](maxlen=REFUSALS_KEPT)
        self._last_drops: Final = deque[Drop](maxlen=DROPS_KEPT)
        self._counted_elsewhere: Final = dict[Tally, Callable[[], Mapping[Labels, int]]]()

    @property
    def monitor_violations(self) -> int:
        """Number of attempted state transitions that no table declares; more than 0 is a bug."""
        return self.violations.total()

    def drop(self, reason: DropReason, message: Message | None = None, where: str = "") -> None:
        """Count and record a message that was not delivered.

        Args:
            reason: The reason for which the message was not delivered.
            message: None: it could not be read as a message.
            where: Component of the process that dropped the message.
        """
        self.drops[reason] += 1
        if message is not None:
            ends = (message.id, message.type, message.from_, message.to)
            self._last_drops.append(Drop(time.time_ns(), where, reason, *ends))

    def dropped_elsewhere(self, reason: DropReason, count: int) -> None:
        """Record messages that another process reports as not delivered.

        Args:
            reason: Reason of the drop.
            count: Number of messages.
        """
        self.drops[reason] += count

    def ledger(self) -> DropLedger:
        """Return an overview of the messages that were not delivered until now."""
        return DropLedger(MappingProxyType(dict(self.drops)), tuple(self._last_drops))

    def refuse(self, refused: Refused) -> None:
        """Record a refused message."""
        self._refused.append(refused)
        self.grounds[refused.ground, int(refused.code)] += 1

    def refusals(self) -> tuple[Refused, ...]:
        """Return the last `REFUSALS_KEPT` refusals, the oldest first."""
        return tuple(self._refused)

    def broken_claim(self, claim: str, about: str, expected: str) -> None:
        """Count and record a violated claim, a declared guarantee that does not hold.

        Args:
            claim: Id of the claim.
            about: The entity for which the claim is violated.
            expected: What should have been, as half a sentence.
        """
        self.broken_claims[claim] += 1
        self._findings.append(BrokenClaim(time.time_ns(), claim, about, expected))

    def findings(self) -> tuple[BrokenClaim, ...]:
        """Return the last `FINDINGS_KEPT` broken claims, the oldest first."""
        return tuple(self._findings)

    def count(self, what: Tally, *labels: Label) -> None:
        """Increase a counter by 1; labels come in the order that the metric declares."""
        self.tallies[what][labels] += 1

    def counted_by(self, what: Tally, read: Callable[[], Mapping[Labels, int]]) -> None:
        """Register a function that returns the values of a counter which another object keeps.

        Args:
            what: Name of the metric.
            read: Returns the present counts; it must be quick.
        """
        self._counted_elsewhere[what] = read

    def values_of(self, what: Tally) -> Mapping[Labels, int]:
        """Return the present counts of a counter, by labels."""
        read = self._counted_elsewhere.get(what)
        return self.tallies[what] if read is None else read()

    def took(self, what: Timing, seconds: float, *labels: Label) -> None:
        """Add a duration to the histogram of a metric with certain label values.

        Args:
            what: Name of the metric.
            seconds: Duration in seconds.
            *labels: Values of the metric's labels.
        """
        self.timings[what].setdefault(labels, Durations()).add(seconds)

    def watch(self, what: Gauge, read: Callable[[], Reading]) -> None:
        """Register the function that returns the value of a gauge; it replaces an earlier function.

        Args:
            what: Name of the metric.
            read: Returns the current value.
        """
        self.gauges[what] = read

    def figures(self) -> dict[str, int]:
        """Return all counters and gauges, by metric and labels joined by dots."""
        found = {
            "admitted": self.admitted,
            "permitted": self.permitted,
            "denied": self.denied,
            "monitor_resets": self.monitor_resets,
            "dead_letters": self.dead_letters.total(),
        }
        for form in Form:
            found[f"received.{form}"], found[f"sent.{form}"] = self.received[form], self.sent[form]
        found.update((f"refused.{ground}.{code}", n) for (ground, code), n in self.grounds.items())
        found.update((f"dropped.{reason}", n) for reason, n in self.drops.items())
        found.update((f"violations.{machine}", n) for machine, n in self.violations.items())
        found.update((f"broken_claims.{claim}", n) for claim, n in self.broken_claims.items())
        found.update((f"restarts.{actor}", n) for actor, n in self.restarts.items())
        for tally in Tally:
            for labels, count in self.values_of(tally).items():
                found[".".join((tally, *(str(label) for label in labels)))] = count
        found.update(self._readings())
        return found

    def _readings(self) -> Iterator[tuple[str, int]]:
        for gauge, read in self.gauges.items():
            reading = read()
            if isinstance(reading, int):
                yield gauge.value, reading
            else:
                yield from ((f"{gauge}.{label}", count) for label, count in reading.items())
