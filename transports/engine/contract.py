"""The contract of the store that the nodes of one domain share.

An engine keeps rows. A write may name the revision that its row must have (compare and set), and
may give the row an end (a lease). A watch follows rows. A payload goes from node to node. A log
keeps entries until they are acknowledged. Nothing here knows sessions, addresses or messages.

ProtoflyError
└─ EngineError
   ├─ ConflictError    the row has another revision: take what is there, and decide again
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
    """One version of a row.

    Attributes:
        key: Its key: segments separated by `/`, each any text.
        value: Its value; None: it was deleted, or its lease ran out.
        revision: Number of this version. It grows over all rows of an engine, also over those of an
            engine that has come back empty.
    """

    key: str
    value: bytes | None
    revision: int


@attrs.frozen(slots=True)
class Current:
    """Marker in a watch: all that was there when the watch began, or began again, is given."""


Seen: TypeAlias = Row | Current
"""One element of a watch."""


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
    """One write.

    Attributes:
        key: Key of the row.
        value: Its new value; None: delete it. To delete what is not there is no error.
        expected: Revision that the row must have now; 0: there must be none; None: any.
        lasts: Seconds after which the row goes by itself, at the earliest; None: it stays. Another
            write to the row replaces this, too.

    Raises:
        ValueError: One of them is beyond its limit.
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
    """One addition to a log.

    Attributes:
        log: Name of the log, of the form of a key; it begins to exist with its first entry.
        payload: What is added.

    Raises:
        ValueError: One of them is beyond its limit.
    """

    log: str = attrs.field(validator=_is_key)
    payload: bytes = attrs.field(validator=_is_entry, repr=False)

    @property
    def units(self) -> int:
        """Units of the log that it takes."""
        return max(1, -(-len(self.payload) // engine.LOG_UNIT))


@attrs.frozen(slots=True)
class Entry:
    """One entry of a log.

    Attributes:
        log: Name of the log.
        position: Its place; it grows over all logs of an engine, as revisions do over rows.
        payload: What was added.
    """

    log: str
    position: int
    payload: bytes = attrs.field(repr=False)


Reached: TypeAlias = tuple[str, int]
"""A log, and a position that it has reached."""


@attrs.frozen(slots=True)
class Health:
    """Whether the engine answers this handle.

    Attributes:
        is_up: Whether it does.
        problem: Why not, as half a sentence; empty if it does.
    """

    is_up: bool
    problem: str = ""


@attrs.define(slots=True)
class Counts:
    """Counts of a handle since it was opened.

    Attributes:
        outages: How often the engine was lost.
        unsure: Payloads that were published shortly before the engine was lost: each may have
            arrived or not.
        refused: Things that the engine did not permit, without saying which.
    """

    outages: int = 0
    unsure: int = 0
    refused: int = 0


Lose: TypeAlias = Callable[[bytes], None]
"""Takes note of a payload that is dropped."""


class EngineError(ProtoflyError):
    """Base of the errors of engines; never raised itself."""


class ConflictError(EngineError):
    """The row has another revision than the write expected; nothing was written.

    Attributes:
        key: Key of the row.
        row: What is there now; None: no row.
    """

    def __init__(self, key: str, row: Row | None) -> None:
        revision = "no row" if row is None else f"revision {row.revision}"
        super().__init__(f"{key} has changed: there is {revision} now")
        self.key = key
        self.row = row


class LogFullError(EngineError):
    """A log has no room; the entry is not in it.

    Attributes:
        log: Name of the log.
    """

    def __init__(self, log: str) -> None:
        super().__init__(f"the log {log} is full")
        self.log = log


class EngineDownError(EngineError):
    """The engine cannot be reached, does not answer in time, or the handle is closed.

    Attributes:
        reason: Why, as half a sentence.
        is_unknown: Whether the write may have been done all the same; a watch shows that.
    """

    def __init__(self, reason: str, *, is_unknown: bool = False) -> None:
        outcome = "; the write may have been done" if is_unknown else ""
        super().__init__(f"the engine is down: {reason}{outcome}")
        self.reason = reason
        self.is_unknown = is_unknown


Written: TypeAlias = int | ConflictError | EngineDownError
"""What has become of one write: the new revision of its row, or the reason why there is none."""

Appended: TypeAlias = int | LogFullError | EngineDownError
"""What has become of one addition to a log: its position, or the reason why it has none."""


class Engine(ABC):
    """A handle of the shared store, for one node.

    A handle finds the engine again by itself after an outage. All calls may be made by several
    tasks at a time.

    Attributes:
        counts: What was lost.
    """

    def __init__(self) -> None:
        self.counts: Final = Counts()

    # --- rows -----------------------------------------------------------------------------------

    @abstractmethod
    async def get(self, key: str) -> Row | None:
        """Return the row that is there now; None: there is none.

        Raises:
            EngineDownError: The engine does not answer.
        """

    @abstractmethod
    async def put_all(self, puts: Sequence[Put]) -> Sequence[Written]:
        """Write rows in one crossing; each write succeeds or fails for itself.

        Writes to one row take effect in their order, unless one of them conflicts.

        If cancelled, each may or may not have been written.

        Returns:
            What has become of each, in the same order. Nothing is raised for a single one of them.
        """

    async def put(
        self, key: str, value: bytes, expected: int | None = None, lasts: float | None = None
    ) -> int:
        """Write a row, and return its new revision; the arguments are those of `Put`.

        If cancelled, it may or may not have been written.

        Raises:
            ConflictError: The row has another revision than expected.
            EngineDownError: The engine does not answer.
        """
        return await self._put_one(Put(key, value, expected, lasts))

    async def delete(self, key: str, expected: int | None = None) -> int:
        """Delete a row, and return the revision of the deletion.

        If cancelled, it may or may not have been deleted.

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

        Batches of what is there come first, then `Current()`, then each change, by revision. Of
        several versions of a row that the reader has not taken, the last one is enough, so a slow
        reader costs the engine nothing. After an outage, what has changed comes, then `Current()`
        again; a row that went meanwhile comes as a deletion, also if the engine has come back
        empty. A deletion of a row that was never given may come. The channel ends with the handle.

        Args:
            prefix: Empty for all rows, or text that ends with `/`.

        Raises:
            ValueError: On entering: the prefix is neither.
        """

    # --- payloads -------------------------------------------------------------------------------

    @abstractmethod
    async def publish(self, node: str, payloads: Sequence[bytes]) -> None:
        """Send payloads to the inbox of a node, in order: at most once each, perhaps not at all.

        Waits while the engine takes nothing (backpressure). If there is no such inbox, they are
        lost. After the return they are under way.

        If cancelled, each may or may not arrive.

        Raises:
            EngineDownError: The engine cannot be reached; each may or may not arrive.
            ValueError: One has more than `PUBLISHED_BYTES`; none was sent.
        """

    @abstractmethod
    def inbox(
        self, node: str, lose: Lose | None = None
    ) -> AbstractAsyncContextManager[trio.MemoryReceiveChannel[Sequence[bytes]]]:
        """Receive what is published to a node, in batches; in order for each publisher.

        What is published after entering arrives, unless the engine cannot be reached: what is
        published during an outage of this handle is lost. What comes while `INBOX_MESSAGES` or
        `INBOX_BYTES` wait is dropped. The channel ends with the handle.

        Args:
            node: Name of the node.
            lose: Is given what is dropped, at once; None: nobody is.
        """

    # --- logs -----------------------------------------------------------------------------------

    @abstractmethod
    async def append_all(self, appends: Sequence[Append]) -> Sequence[Appended]:
        """Add entries to logs in one crossing, in order; each succeeds or fails for itself.

        An entry with a position is kept until it is acknowledged, or `LOG_LIFE` is over. One whose
        outcome is unknown and that is added again may be there twice.

        If cancelled, each may or may not have been added.

        Returns:
            What has become of each, in the same order. Nothing is raised for a single one of them.
        """

    @abstractmethod
    async def fetch(self, log: str, after: int, most: int) -> Sequence[Entry]:
        """Return the oldest entries of a log behind a position, in order.

        All that was added before the call is found, unless it was acknowledged or its time is over.

        Args:
            log: Name of the log.
            after: The position; 0: from the first entry on.
            most: How many entries are returned at most; fewer: there are no more.

        Raises:
            EngineDownError: The engine does not answer.
        """

    @abstractmethod
    def follow_logs(
        self,
    ) -> AbstractAsyncContextManager[trio.MemoryReceiveChannel[Sequence[Reached]]]:
        """Follow which logs get entries, without what the entries hold.

        The last entry of each log that has one comes first, then new ones, in order; of several
        entries of a log that the reader has not taken, the last one is enough. After an outage the
        reader goes on, or begins again. So of each entry its position comes, or a later one of its
        log, unless the entry is acknowledged before: a reader may take a log to be empty until it
        comes. The channel ends with the handle.
        """

    @abstractmethod
    async def acknowledge(self, reached: Mapping[str, int]) -> None:
        """Remove the entries of logs up to a position each. Idempotent.

        If cancelled, they may or may not have been removed.

        Raises:
            EngineDownError: The engine does not answer; some may have been removed.
        """

    # --- health ---------------------------------------------------------------------------------

    @property
    @abstractmethod
    def health(self) -> Health:
        """Whether the engine answers now, as far as the handle knows."""

    @abstractmethod
    async def health_changed(self) -> Health:
        """Wait until `health` changes, and return it."""


def check_prefix(prefix: str) -> None:
    """Check the prefix of a watch.

    Raises:
        ValueError: It is neither empty nor ends with `/`.
    """
    if prefix and not prefix.endswith("/"):
        raise ValueError(f"a prefix is empty or ends with '/': {prefix!r}")


def check_payloads(payloads: Sequence[bytes]) -> None:
    """Check the sizes of payloads.

    Raises:
        ValueError: One is over the limit.
    """
    largest = max(map(len, payloads), default=0)
    if largest > engine.PUBLISHED_BYTES:
        raise ValueError(f"a payload has at most {engine.PUBLISHED_BYTES} bytes, not {largest}")


# What a reader of a channel has not been given yet, for all engines.

Item = TypeVar("Item")


class Bell:
    """Wakes the task that waits for anything to happen."""

    __slots__ = ("_event",)

    def __init__(self) -> None:
        self._event = trio.Event()

    def ring(self) -> None:
        """Wake the task, or let its next wait end at once."""
        self._event.set()

    async def wait(self) -> None:
        """Wait until it rings, or has rung since the last wait."""
        await self._event.wait()
        self._event = trio.Event()


class Due(ABC, Generic[Item]):
    """What a reader has not been given yet."""

    def __init__(self) -> None:
        self.bell: Final = Bell()

    @abstractmethod
    def take(self) -> Sequence[Item]:
        """Take the next batch; empty: nothing is new."""


class Inbox(Due[bytes]):
    """Payloads, within bounds.

    Args:
        node: Name of the node that gets them.
        lose: Is given what finds no room; None: nobody is.
    """

    def __init__(self, node: str, lose: Lose | None) -> None:
        super().__init__()
        self.node: Final = node
        self._lose: Final = lose
        self._payloads: Final = deque[bytes]()
        self._bytes = 0

    def came(self, payload: bytes) -> None:
        """Take a payload, if there is room."""
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
    """Open a channel that takes a batch when its reader is ready; a task of its own fills it."""
    give, taken = trio.open_memory_channel[Sequence[Item]](0)
    with taken:
        async with open_background() as nursery:
            nursery.start_soon(run, give)
            yield taken
