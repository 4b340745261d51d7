"""The metrics of a process, by stable names (OBS-06).

The value of each member is the name of its metric without `protofly_` and without the
ending of its kind; what its labels are called and what it means stands beside it. Labels
are members of closed vocabularies, so that no address can become one.
"""

from collections.abc import Mapping
from enum import StrEnum, unique
from types import MappingProxyType
from typing import Final, TypeAlias, final

import attrs

__all__ = [
    "GAUGES",
    "TALLIES",
    "TIMINGS",
    "BackEnd",
    "Form",
    "Gauge",
    "Meaning",
    "Outcome",
    "Tally",
    "Timing",
]


@final
@unique
class Form(StrEnum):
    """Wire forms of a node."""

    LINK = "link"
    PLAIN = "plain"
    SESSION = "session"
    REST = "rest"


@final
@unique
class BackEnd(StrEnum):
    """Services behind a node."""

    REGISTRY = "registry"
    GLOBAL = "global"
    QUALITY = "qos"


@final
@unique
class Outcome(StrEnum):
    """Result of a request to another service."""

    OK = "ok"
    REFUSED = "refused"
    FAILED = "failed"
    TIMEOUT = "timeout"


@final
@unique
class Tally(StrEnum):
    """Counters of `Counters.count`."""

    REFUSALS = "messages_refused"
    LINKS_OPENED = "links_opened"
    LINKS_CLOSED = "links_closed"
    HANDSHAKES_REFUSED = "handshakes_refused"
    SESSIONS_ENDED = "sessions_ended"
    LOGINS = "logins"
    STUBS_OPENED = "foreign_stubs_opened"
    STUBS_GONE = "foreign_stubs_gone"
    DESCRIPTORS = "descriptors_judged"


@final
@unique
class Timing(StrEnum):
    """Durations of `Counters.took`."""

    COMMIT = "registry_commit"
    CONNECTOR = "connector_request"


@final
@unique
class Gauge(StrEnum):
    """Gauges of `Counters.watch`, read when metrics are read."""

    SESSIONS = "sessions"
    LINKS = "links"
    LINKS_PENDING = "links_without_session"
    OUTBOX_MESSAGES = "outbox_messages"
    OUTBOX_BYTES = "outbox_bytes"
    ADDRESSES = "addresses"
    SUBSCRIPTIONS = "subscriptions"
    RECORDS = "registry_records"
    STUBS = "foreign_stubs"
    TRACE_LOST = "trace_records_lost"


@final
@attrs.frozen
class Meaning:
    """Labels and description of a metric.

    Attributes:
        labels: Names of its labels, in the order they are counted by.
        says: For an operator; one sentence.
    """

    labels: tuple[str, ...]
    says: str


_Tallies: TypeAlias = Mapping[Tally, Meaning]
_Timings: TypeAlias = Mapping[Timing, Meaning]
_Gauges: TypeAlias = Mapping[Gauge, Meaning]

# fmt: off
TALLIES: Final[_Tallies] = MappingProxyType({
    Tally.REFUSALS:           Meaning(("code",),     "Messages refused before any effect."),
    Tally.LINKS_OPENED:       Meaning(("form",),     "Links that the listener accepted."),
    Tally.LINKS_CLOSED:       Meaning(("reason",),   "Links that ended, by reason."),
    Tally.HANDSHAKES_REFUSED: Meaning(("reason",),   "Connections that the listener refused."),
    Tally.SESSIONS_ENDED:     Meaning(("state",),    "Sessions that ended."),
    Tally.LOGINS:             Meaning(("outcome",),  "Logins at the node."),
    Tally.STUBS_OPENED:       Meaning((),            "Foreign stubs that were started."),
    Tally.STUBS_GONE:         Meaning((),            "Foreign stubs that have ended."),
    Tally.DESCRIPTORS:        Meaning(("outcome",),  "Descriptors of stubs that were verified."),
})
"""The counters."""

TIMINGS: Final[_Timings] = MappingProxyType({
    Timing.COMMIT:    Meaning((), "Commits of the domain registry's file."),
    Timing.CONNECTOR: Meaning(("connector", "outcome"), "Requests to back ends."),
})
"""The histograms."""

GAUGES: Final[_Gauges] = MappingProxyType({
    Gauge.SESSIONS:        Meaning(("state",),    "Sessions that the node holds."),
    Gauge.LINKS:           Meaning((),            "Links that are open."),
    Gauge.LINKS_PENDING:   Meaning((),            "Links that are open and have no session yet."),
    Gauge.OUTBOX_MESSAGES: Meaning((),            "Messages that wait to be written to links."),
    Gauge.OUTBOX_BYTES:    Meaning((),            "Bytes of messages that wait to be sent."),
    Gauge.ADDRESSES:       Meaning((),            "Addresses that sessions own."),
    Gauge.SUBSCRIPTIONS:   Meaning((),            "Paths that sessions subscribe to."),
    Gauge.RECORDS:         Meaning((),            "Records of the domain registry."),
    Gauge.STUBS:           Meaning((),            "Foreign stubs that run."),
    Gauge.TRACE_LOST:      Meaning((),            "Records that the trace dropped."),
})
"""The gauges; a gauge without a value is not shown."""
# fmt: on
