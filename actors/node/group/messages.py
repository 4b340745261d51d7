"""The messages between the bus, which decides, and the actors that talk with the engine."""

from collections import deque
from collections.abc import Mapping, Sequence
from typing import TypeAlias, final

import attrs

from actors.kit.supervision.actor import ActorRef
from actors.kit.supervision.mailbox import Reply
from actors.node.messages import GroupEvent, LogEvent
from fsm.group.durable import Fetch, News
from fsm.group.membership import DropLease, PutLease
from fsm.group.rows_io import Answered, Current, Gap, Put, Read, Seen
from fsm.session.node_session_io import OutboundMessage
from transports.engine.contract import Append, Appended


@final
@attrs.frozen(slots=True)
class Outgoing:
    """A message for another node.

    Attributes:
        head: What that node must know of it, as a line.
        entry: None: the line is all.
        is_alone: Whether nobody but those at that node gets it.
    """

    head: bytes
    entry: OutboundMessage | None = None
    is_alone: bool = True

    @property
    def size(self) -> int:
        """Bytes that it takes."""
        return len(self.head) + (0 if self.entry is None else len(self.entry.line)) + 2


# ---- to the actors


@final
@attrs.frozen(slots=True)
class Carry:
    """Publish messages to a node, in order."""

    node: str
    messages: Sequence[Outgoing]


@final
@attrs.frozen(slots=True)
class WriteRows:
    """Write rows, and report what has become of each."""

    puts: Sequence[Put]


@final
@attrs.frozen(slots=True)
class WatchAnew:
    """Bring all rows again."""


@final
@attrs.frozen(slots=True, eq=False)
class LookUp:
    """Read the row without which an address has no receiver at this node."""

    address: str
    key: str
    revision: int = 0


StoreWork: TypeAlias = WriteRows | PutLease | DropLease | Read | LookUp | WatchAnew
StoreRef: TypeAlias = ActorRef[StoreWork]


@final
@attrs.frozen(slots=True)
class AppendAll:
    """Add entries to logs, and report what has become of each.

    Attributes:
        number: Number of the batch; `AppendsAnswered` repeats it.
    """

    number: int
    appends: Sequence[Append]


@final
@attrs.frozen(slots=True)
class TrimLogs:
    """Remove the entries of logs up to a position each."""

    reached: Mapping[str, int]


LogWork: TypeAlias = AppendAll | Fetch | TrimLogs


# ---- to the bus


@final
@attrs.frozen
class LogsReady(LogEvent):
    """The logs can be asked from now on; what was under way is not answered any more."""

    logs: ActorRef[LogWork]


@final
@attrs.frozen(slots=True)
class LogsMoved(LogEvent):
    """Logs are listed, have got entries, were read or trimmed."""

    news: Sequence[News]


@final
@attrs.frozen(slots=True)
class AppendsAnswered(LogEvent):
    """Additions to logs are answered, all of one `AppendAll`."""

    number: int
    outcomes: Sequence[Appended]


@final
@attrs.frozen
class StoreReady(GroupEvent):
    """The engine can be written to from now on; what was under way is not answered any more.

    Attributes:
        leases: Answers to renewals of the node's lease. They do not pass through the mailbox of
            the bus: they would come 2.5 s late behind what 3,000 links leave there that are cut at
            once, and behind 10,000 after the lease, so that a node is fenced that has renewed it.
    """

    store: StoreRef
    link: ActorRef[Carry]
    leases: deque[Answered]


@final
@attrs.frozen
class Serving(GroupEvent):
    """Tell when the node serves runtimes: it is a member, and knows all rows."""

    reply: Reply[None]


@final
@attrs.frozen(slots=True)
class RowsCame(GroupEvent):
    """A watch, or a read, has brought rows.

    Attributes:
        asked: The read that is answered, without a row if the engine did not answer.
    """

    news: Sequence[Gap | Seen | Current]
    asked: LookUp | None = None


@final
@attrs.frozen(slots=True)
class RowsAnswered(GroupEvent):
    """Writes are answered."""

    answers: Sequence[Answered]


@final
@attrs.frozen(slots=True)
class LeaseAnswered(GroupEvent):
    """A renewal of the node's lease is answered, in `StoreReady.leases`."""


@final
@attrs.frozen(slots=True)
class EngineBack(GroupEvent):
    """The engine answers again."""


@final
@attrs.frozen(slots=True)
class Arrivals(GroupEvent):
    """Other nodes have sent something."""

    payloads: Sequence[bytes]


@final
@attrs.frozen(slots=True)
class NotCarried(GroupEvent):
    """Messages could not be given to the engine."""

    node: str
    messages: Sequence[Outgoing]
