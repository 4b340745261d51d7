"""The interface of an engine: the store that the nodes of one domain share.

An engine stores rows, which are keys with values. A write may name the revision that its row must
have (compare and set), and may give the row an expiry (a lease). A watch reports changes of rows. A
payload is sent from node to node. A log is a queue that stores entries until they are acknowledged.

ProtoflyError
└─ EngineError
   ├─ ConflictError    the row has another revision: read it, and decide again
   ├─ LogFullError     too much waits in the log: refuse what was to be kept there
   └─ EngineDownError  the engine does not answer: try later
"""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final, Generic, TypeAlias, TypeVar

import attrs
import trio
from typing_extensions import override

from specs.errors import ProtoflyError
from specs.limits import engine
from transports.sockets import open_background


@attrs.frozen(slots=True)
class Row:
    """One version of a row (a key and its value) in an engine.

    Attributes:
        key: Key of the row: segments separated by `/`, each any text.
        value: Value of the row; None: the row was deleted, or its lease has expired.
        revision: Number of this version. It grows over all rows of an engine, also after the engine
            has returned empty.
    """

    key: str
    value: bytes | None
    revision: int


@attrs.frozen(slots=True)
class Current:
    """Event of a watch: all rows that existed when the watch began, or restarted, were reported."""


Seen: TypeAlias = Row | Current
"""One event of a watch: a changed row, or the marker `Current`."""


def _is_key(instance: object, attribute: object, value: str) -> None:
    del instance, attribute
    if not value or len(value.encode()) > engine.ROW_KEY:
        raise ValueError(f"a key has 1 to {engine.ROW_KEY} bytes: {value[:80]!r}")


def _is_value(instance: object, attribute: object, value: bytes | None) -> None:
    del instance, attribute
    if value is not None and len(value) > engine.ROW_VALUE:
        raise ValueError(
            f"the value of a row has at most {engine.ROW_VALUE} bytes, not {len(value)}"
        )


def _lasts(instance: object, attribute: object, value: float | None) -> None:
    del instance, attribute
    if value is not None and value < engine.LEASE_SHORTEST:
        raise ValueError(f"a row lasts at least {engine.LEASE_SHORTEST:g} s, not {value:g} s")


@attrs.frozen(slots=True)
class Put:
    """One write or deletion of a row.

    Attributes:
        key: Key of the row.
        value: The new value; None: delete the row. To delete a missing row is no error.
        expected: Revision that the row must have now; 0: there must be no row; None: any.
        lasts: Seconds after which the row expires, at the earliest; None: never. Another write to
            the row replaces this expiry.

    Raises:
        ValueError: A value is beyond its limit.
    """

    key: str = attrs.field(validator=_is_key)
    value: bytes | None = attrs.field(validator=_is_value, repr=False)
    expected: int | None = None
    lasts: float | None = attrs.field(default=None, validator=_lasts)


def _is_entry(instance: object, attribute: object, value: bytes) -> None:
    del instance, attribute
    if len(value) > engine.LOG_ENTRY:
        raise ValueError(
            f"an entry of a log has at most {engine.LOG_ENTRY} bytes, not {len(value)}"
        )


@attrs.frozen(slots=True)
class Append:
    """A request to add an entry to a log.

    Attributes:
        log: Name of the log, of the form of a key; the log exists from its first entry on.
        payload: Payload of the entry.

    Raises:
        ValueError: A value is beyond its limit.
    """

    log: str = attrs.field(validator=_is_key)
    payload: bytes = attrs.field(validator=_is_entry, repr=False)

    @property
    def units(self) -> int:
        """Number of units of the log's space that the entry occupies."""
        return max(1, -(-len(self.payload) // engine.LOG_UNIT))


@attrs.frozen(slots=True)
class Entry:
    """One entry of a log.

    Attributes:
        log: Name of the log.
        position: Position of the entry; it grows over all logs, as revisions do over rows.
        payload: Payload of the entry.
    """

    log: str
    position: int
    payload: bytes = attrs.field(repr=False)


Reached: TypeAlias = tuple[str, int]
"""The name of a log, and the position of its last entry."""


@attrs.frozen(slots=True)
class Health:
    """State of the connection between a handle and its engine.

    Attributes:
        is_up: Whether the engine answers.
        problem: The reason why the engine does not answer, as half a sentence; else empty.
    """

    is_up: bool
    problem: str = ""


@attrs.define(slots=True)
class Counts:
    """Counts of failures of a handle since the handle was opened.

    Attributes:
        outages: How often the connection to the engine was lost.
        unsure: Payloads published shortly before such a loss: each may have arrived or not.
        refused: Number of operations that the engine did not permit.
    """

    outages: int = 0
    unsure: int = 0
    refused: int = 0


Lose: TypeAlias = Callable[[bytes], None]
"""Type of a function that is called with each payload that is dropped."""


class EngineError(ProtoflyError):
    """Base of the errors of engines; never raised itself."""


class ConflictError(EngineError):
    """The row has another revision than the write expected; nothing was written.

    Attributes:
        key: Key of the row.
        row: The present row; None: there is none.
    """

    def __init__(self, key: str, row: Row | None) -> None:
        revision = "no row" if row is None else f"revision {row.revision}"
        super().__init__(f"{key} has changed: there is {revision} now")
        self.key = key
        self.row = row


class LogFullError(EngineError):
    """A log is full; the entry was not added.

    Attributes:
        log: Name of the log.
    """

    def __init__(self, log: str) -> None:
        super().__init__(f"the log {log} is full")
        self.log = log


class EngineDownError(EngineError):
    """The engine cannot be reached, does not answer in time, or the handle is closed.

    Attributes:
        reason: The reason, as half a sentence.
        is_unknown: Whether the write may have been made all the same; a watch shows that.
    """

    def __init__(self, reason: str, *, is_unknown: bool = False) -> None:
        outcome = "; the write may have been done" if is_unknown else ""
        super().__init__(f"the engine is down: {reason}{outcome}")
        self.reason = reason
        self.is_unknown = is_unknown


Written: TypeAlias = int | ConflictError | EngineDownError
"""The outcome of one write: the new revision of its row, or the error."""

Appended: TypeAlias = int | LogFullError | EngineDownError
"""The outcome of one append: the position of the entry, or the error."""


class Engine(ABC):
    """A handle of the shared store, for one node.

    A handle reconnects by itself after an outage. Several tasks may call all methods at a time.

    Attributes:
        counts: Counts of failures.
    """

    def __init__(self) -> None:
        self.counts: Final = Counts()

    # --- rows -----------------------------------------------------------------------------------

    @abstractmethod
    async def get(self, key: str) -> Row | None:
        """Return the present row; None: there is none.

        Raises:
            EngineDownError: The engine does not answer.
        """

    @abstractmethod
    async def put_all(self, puts: Sequence[Put]) -> Sequence[Written]:
        """Write rows in one request; each write succeeds or fails for itself.

        Writes to one row take effect in their order, unless one of them conflicts.

        If cancelled, each may or may not have been written.

        Returns:
            The outcome of each, in the same order; a single failure raises nothing.
        """

    async def put(
        self, key: str, value: bytes, expected: int | None = None, lasts: float | None = None
    ) -> int:
        """Write a row, and return its new revision; the arguments are those of `Put`.

        If cancelled, the row may or may not have been written.

        Raises:
            ConflictError: The row has another revision than expected.
            EngineDownError: The engine does not answer.
        """
        return await self._put_one(Put(key, value, expected, lasts))

    async def delete(self, key: str, expected: int | None = None) -> int:
        """Delete a row, and return the revision of the deletion.

        If cancelled, the row may or may not have been deleted.

        Raises:
            ConflictError: The row has another revision than expected.
            EngineDownError: The engine does not answer.
        """
        return await self._put_one(Put(key, None, expected))

    async def _put_one(self, put: Put) -> int:
        (written,) = await self.put_all((put,))
        if isinstance(written, int):
            return written
        raise written

    @abstractmethod
    def watch(
        self, prefix: str = ""
    ) -> AbstractAsyncContextManager[trio.MemoryReceiveChannel[Sequence[Seen]]]:
        """Follow the rows whose keys begin with a prefix.

        Batches of the present rows come first, then `Current()`, then each change, by revision. Of
        several versions of a row that the reader has not read, only the last one is reported, so a
        slow reader costs the engine nothing. After an outage, the changes come, then `Current()`
        again; a row removed meanwhile comes as a deletion, also if the engine has returned empty.
        A deletion of a row that was never reported may come. The channel ends with the handle.

        Args:
            prefix: Empty for all rows, or text that ends with `/`.

        Raises:
            ValueError: On entering: the prefix has another form.
        """

    # --- payloads -------------------------------------------------------------------------------

    @abstractmethod
    async def publish(self, node: str, payloads: Sequence[bytes]) -> None:
        """Send payloads to the inbox of a node, in order: at most once each, perhaps not at all.

        Wait while the engine accepts nothing (backpressure). Without such an inbox, the payloads
        are lost. After the return they are in transit.

        If cancelled, each may or may not arrive.

        Raises:
            EngineDownError: The engine cannot be reached; each may or may not arrive.
            ValueError: A payload has more than `PUBLISHED_BYTES`; none was sent.
        """

    @abstractmethod
    def inbox(
        self, node: str, lose: Lose | None = None
    ) -> AbstractAsyncContextManager[trio.MemoryReceiveChannel[Sequence[bytes]]]:
        """Receive the payloads published to a node, in batches; in order for each publisher.

        Payloads published after entering arrive, unless they are published during an outage of this
        handle. Payloads that arrive while `INBOX_MESSAGES` or `INBOX_BYTES` wait are dropped. The
        channel ends with the handle.

        Args:
            node: Name of the node.
            lose: Called at once with each dropped payload; None: no call.
        """

    # --- logs -----------------------------------------------------------------------------------

    @abstractmethod
    async def append_all(self, appends: Sequence[Append]) -> Sequence[Appended]:
        """Add entries to logs in one request, in order; each succeeds or fails for itself.

        An entry with a position is stored until it is acknowledged, or `LOG_LIFE` is over. An entry
        with an unknown outcome that is added again may be stored twice.

        If cancelled, each may or may not have been added.

        Returns:
            The outcome of each, in the same order; a single failure raises nothing.
        """

    @abstractmethod
    async def fetch(self, log: str, after: int, most: int) -> Sequence[Entry]:
        """Return the oldest entries of a log after a position, in order.

        All entries added before the call are found, unless they were acknowledged or have expired.

        Args:
            log: Name of the log.
            after: The position; 0: from the first entry on.
            most: Maximal number of entries; fewer are returned if there are no more.

        Raises:
            EngineDownError: The engine does not answer.
        """

    @abstractmethod
    def follow_logs(
        self,
    ) -> AbstractAsyncContextManager[trio.MemoryReceiveChannel[Sequence[Reached]]]:
        """Report which logs get entries, and the positions of the entries, but not their payloads.

        The position of the last entry of each log comes first, then new positions, in order; of
        several entries of a log that the reader has not read, only the last one is reported. After
        an outage the reading continues, or begins again. So the position of each entry is reported,
        or a later one of its log, unless the entry is acknowledged before. The channel ends with
        the handle.
        """

    @abstractmethod
    async def acknowledge(self, reached: Mapping[str, int]) -> None:
        """Remove the entries of logs, each up to a position. Idempotent.

        If cancelled, the entries may or may not have been removed.

        Raises:
            EngineDownError: The engine does not answer; some may have been removed.
        """

    # --- health ---------------------------------------------------------------------------------

    @property
    @abstractmethod
    def health(self) -> Health:
        """The present state of the connection to the engine."""

    @abstractmethod
    async def health_changed(self) -> Health:
        """Wait until `health` changes, and return it."""


def check_prefix(prefix: str) -> None:
    """Check the prefix of a watch.

    Raises:
        ValueError: The prefix is neither empty nor ends with `/`.
    """
    if prefix and not prefix.endswith("/"):
        raise ValueError(f"a prefix is empty or ends with '/': {prefix!r}")


def check_payloads(payloads: Sequence[bytes]) -> None:
    """Check the sizes of payloads.

    Raises:
        ValueError: A payload is over the limit.
    """
    largest = max(map(len, payloads), default=0)
    if largest > engine.PUBLISHED_BYTES:
        raise ValueError(f"a payload has at most {engine.PUBLISHED_BYTES} bytes, not {largest}")


# Queues of events and payloads that the reader of a channel has not read yet, for all engines.

Item = TypeVar("Item")


class Bell:
    """Signal that wakes one waiting task, and is not lost if no task waits yet."""

    __slots__ = ("_event",)

    def __init__(self) -> None:
        self._event = trio.Event()

    def ring(self) -> None:
        """Wake the task, or let its next wait end at once."""
        self._event.set()

    async def wait(self) -> None:
        """Wait for a ring, or return at once after a ring since the last wait."""
        await self._event.wait()
        self._event = trio.Event()


class Due(ABC, Generic[Item]):
    """Base of queues of events that the reader of a channel has not read yet."""

    def __init__(self) -> None:
        self.bell: Final = Bell()

    @abstractmethod
    def take(self) -> Sequence[Item]:
        """Take the next batch; empty: there is nothing new."""


class Inbox(Due[bytes]):
    """Bounded queue of the payloads that a node has received and not read yet.

    Args:
        node: Name of the receiving node.
        lose: Called with each payload without room; None: no call.
    """

    def __init__(self, node: str, lose: Lose | None) -> None:
        super().__init__()
        self.node: Final = node
        self._lose: Final = lose
        self._payloads: Final = deque[bytes]()
        self._bytes = 0

    def add(self, payload: bytes) -> None:
        """Add a payload, if there is room; else drop it."""
        size = self._bytes + len(payload)
        if len(self._payloads) < engine.INBOX_MESSAGES and size <= engine.INBOX_BYTES:
            self._payloads.append(payload)
            self._bytes = size
            self.bell.ring()
        elif self._lose is not None:
            self._lose(payload)

    @override
    def take(self) -> Sequence[bytes]:
        batch = list(self._payloads)
        self._payloads.clear()
        self._bytes = 0
        return batch


@asynccontextmanager
async def open_feed(
    run: Callable[[trio.MemorySendChannel[Sequence[Item]]], Awaitable[object]],
) -> AsyncIterator[trio.MemoryReceiveChannel[Sequence[Item]]]:
    """Open a channel, and run a task that fills the channel while the context is open."""
    send, receive = trio.open_memory_channel[Sequence[Item]](0)
    with receive:
        async with open_background() as nursery:
            nursery.start_soon(run, send)
            yield receive
