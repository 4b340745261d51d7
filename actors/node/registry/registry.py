"""The domain registry at `DR(d)` (M-21..M-30): host of the registration core.

Requests that arrive together are committed together, and only then is any message sent or any step
traced (I-G3). If the commit fails, none of them has an effect: each requester gets 503, and until
the file can be written again changes are refused, while reads go on (R13).
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final, TypeAlias, assert_never

import attrs
import trio
from typing_extensions import override

from actors.kit.back_ends.requests import Asked, answer_body, read_request
from actors.kit.counters import Gauge, KeptFile, Tally, Timing
from actors.kit.log import get_logger
from actors.kit.supervision.actor import Actor
from actors.node.errors import RegistryFileError
from actors.node.host import NodeHost
from actors.node.messages import RuntimeLeft
from actors.node.registry import record_file
from fsm.engine import Step
from fsm.limits.shares import UserTurns
from fsm.machines.registration import State
from fsm.registry import records
from fsm.registry.registration import RegistrationCore, RegistrationPort
from fsm.session.node_session import RESTARTED
from specs.errors import BadMessageError
from specs.limits.group import GROUP_LOOKUPS
from specs.limits.node import STORE_RETRY
from specs.limits.protocol import MAILBOX
from specs.message import Message, MessageType, refuse, reply_to
from specs.reply_code import Code


def answer_to(request: Message, answer: records.Answered) -> Message:
    """Return the response to a request."""
    return reply_to(request, answer.code, answer_body(answer))


def notification(number: int, registry: str, url: str, status: str) -> Message:
    """Return the notification of subscribers about a change of status (M-30, C-55).

    Args:
        number: Id of the message.
        registry: Address of the registry.
        url: Address of the registered entity.
        status: The status.
    """
    return Message(
        id=number,
        type=MessageType.UPDATE,
        from_=registry,
        to=f"{url}/registration",
        body={"attribute": "status", "value": str(status)},
    )


Take: TypeAlias = Callable[[Sequence[records.Change], bool], Awaitable[None]]


class RecordNews(ABC):
    """Changes of other nodes of the domain to the records that all nodes share."""

    @abstractmethod
    def is_ours(self, url: str) -> bool:
        """Return whether this node is the one that lets a record expire."""

    @abstractmethod
    async def look_up(self, url: str) -> Sequence[records.Change] | None:
        """Return a record that may not have arrived here yet; None: it cannot be read now.

        If cancelled, nothing has changed.

        Args:
            url: Address of the record.
        """

    @abstractmethod
    async def follow(self, take: Take) -> None:
        """Follow the records until the engine is closed.

        If cancelled, only the following ends.

        Args:
            take: Receives a batch of changes, and whether all initial records have been reported.
        """


@attrs.frozen(slots=True)
class _Mirrored:
    """Changes of records by other nodes.

    Attributes:
        asked: The request for which they were looked up; None: a watch has reported them.
    """

    changes: Sequence[records.Change]
    asked: Asked | None = None


_Message: TypeAlias = Asked | RuntimeLeft | _Mirrored

_log = get_logger("actors.node")

_ENDED: Final = "the registry has ended before it made the search"
_MANY: Final = "too many searches wait"
_NOT_READ: Final = "the records of other nodes cannot be read now"
_NOT_KEPT: Final = "the registry cannot write its file now; nothing was changed"


_Output: TypeAlias = tuple[Message, str | None]
"""A message of the registry, and the session that gets it; None: its address decides."""


@attrs.define
class _Batch:
    """Changes that are committed together, and the messages that follow.

    Attributes:
        anyway: Messages that are sent whether the commit succeeds or not.
        emitted: Messages that are sent if the commit succeeds.
        asked: The requests that are answered if the commit fails.
    """

    changes: list[records.Change] = attrs.field(factory=list)
    steps: list[Step] = attrs.field(factory=list)
    anyway: list[_Output] = attrs.field(factory=list)
    emitted: list[_Output] = attrs.field(factory=list)
    asked: list[Asked] = attrs.field(factory=list)
    left: dict[str, RuntimeLeft] = attrs.field(factory=dict)


class DomainRegistry(Actor[_Message], RegistrationPort):
    """Answer requests about the records of a domain, after the commit.

    Searches have a queue of their own, as each takes as long as many other requests: one search is
    made after each batch of other requests.

    Args:
        host: The node.
        file: Stores the records.
        news: Follows the writes of other nodes of the domain; None: there are none.
    """

    def __init__(
        self, host: NodeHost, file: record_file.RecordFile, news: RecordNews | None
    ) -> None:
        self._host: Final = host
        self._address: Final = host.addresses.registry
        self._file: Final = file
        self._news: Final = news
        self._trace: Final = host.trace("registry")
        self._core = RegistrationCore(self)
        self._is_current = trio.Event()
        self._batch = _Batch()
        self._searches = UserTurns[tuple[records.Find, Asked]](MAILBOX)
        self._owed: dict[str, RuntimeLeft] = {}
        self._retry_at: float | None = None
        self._lookups = 0

    @override
    async def start(self) -> None:
        if self._news is None:
            self._core = RegistrationCore(self, self._file.load())
        else:
            self._core = RegistrationCore(self, is_ours=self._news.is_ours)
            self.spawn(self._news.follow, self._take_mirrored)
            await self._is_current.wait()
        self._trace.counters.watch(Gauge.RECORDS, self._core.__len__)
        self._host.bus.attach(self._address, self.me)

    async def _take_mirrored(self, changes: Sequence[records.Change], is_current: bool) -> None:  # noqa: FBT001 - see `Take`
        """Apply writes of other nodes; at once before the actor serves, else by its mailbox."""
        if self._is_current.is_set():
            await self.me.tell(_Mirrored(changes))
            return
        for url, row in changes:
            self._core.mirror(url, row)
        if is_current:
            self._is_current.set()

    @override
    async def handle(self, message: _Message) -> None:
        match message:
            case Asked():
                self._answer(message)
            case RuntimeLeft():
                self._leave(message)
            case _Mirrored(changes, asked):
                for url, row in changes:
                    self._core.mirror(url, row)
                if asked is not None:
                    self._answer(asked, is_looked_up=True)
            case _:
                assert_never(message)

    async def _look_up(self, news: RecordNews, url: str, asked: Asked) -> None:
        changes = await news.look_up(url)
        self._lookups -= 1
        if changes is None:
            self._host.send(*_not_now(asked, _NOT_READ))
        else:
            await self.me.tell(_Mirrored(changes, asked))

    @override
    async def closing(self) -> None:
        while self._searches:
            await self.drained()

    @override
    async def stop(self) -> None:
        if self._news is not None:
            self._batch = _Batch()
            self._core.rest()
            for step in self._batch.steps:
                self._trace.step(step)
        while self._searches:
            _, asked = self._searches.take()
            self._host.send(*_not_now(asked, _ENDED))
        self._host.bus.detach(self._address, self.me)

    @override
    def deadline(self) -> float:
        if self._searches:
            return -math.inf
        if self._retry_at is not None:
            return self._retry_at
        return self._core.deadline() - self._host.clock_offset

    @override
    async def timed_out(self) -> None:
        if self._retry_at is not None and self._retry_at <= trio.current_time():
            await self._recover()
        if self._retry_at is None:
            self._core.tick(self._now)

    @override
    async def drained(self) -> None:
        """Commit the changes of the received requests, then send the messages."""
        if self._searches:
            self._do(*self._searches.take())
        batch, self._batch = self._batch, _Batch()
        if batch.changes:
            changes = tuple(batch.changes)
            error = await self._write(partial(self._file.commit, changes))
            if error is not None:
                self._core.revert()
                self._fail(batch, error)
                refused = [_not_now(asked) for asked in batch.asked]
                batch = _Batch(anyway=batch.anyway, emitted=refused)
        self._core.settle()
        for step in batch.steps:
            self._trace.step(step)
        self._host.bus.call(self._send_all, [*batch.anyway, *batch.emitted])

    def _send_all(self, outputs: Sequence[_Output]) -> None:
        for message, to_runtime in outputs:
            self._host.bus.emit(message, to_runtime)

    def _answer(self, asked: Asked, *, is_looked_up: bool = False) -> None:
        try:
            request = read_request(asked)
        except BadMessageError as exc:
            refusal = refuse(asked.message, exc.code, exc.reason)
            self._batch.anyway.append((refusal, asked.by))
            return
        if isinstance(request, records.Find) and request.search.by is records.By.RUNTIME:
            # A runtime searches its own records, which no returning runtime can restore.
            asked = attrs.evolve(asked, is_returning=False)
        if isinstance(request, records.Find):
            over = self._searches.put((request, asked), asked.users or asked.by)
            if over is not None:
                self._batch.anyway.append(_not_now(over[1], _MANY))
            return
        is_sought = isinstance(request, records.Read) and not is_looked_up
        news = self._news if is_sought else None
        if news is not None and self._core.row(request.url) is None:
            if self._lookups < GROUP_LOOKUPS:
                self._lookups += 1
                self.spawn(self._look_up, news, request.url, asked)
            else:
                self._batch.anyway.append(_not_now(asked, _NOT_READ))
        elif self._retry_at is not None and isinstance(request, records.Create | records.Touch):
            self._batch.anyway.append(_not_now(asked))
        else:
            self._do(request, asked)

    def _leave(self, left: RuntimeLeft) -> None:
        if self._retry_at is None:
            self._batch.left[left.runtime] = left
            self._core.leave(left.runtime, left.why, self._now, is_final=left.is_released)
        else:
            self._owed[left.runtime] = left

    @property
    def _now(self) -> float:
        return self._host.clock()

    def _do(self, request: records.Request, asked: Asked) -> None:
        batch, answer_index = self._batch, len(self._batch.emitted)
        batch.asked.append(asked)
        answer = self._core.answer(request, self._now)
        if self._may_return(asked, answer):
            reply = refuse(asked.message, Code.UNAVAILABLE, RESTARTED)
        else:
            page = attrs.evolve(answer, after=None) if asked.is_upstream else answer
            reply = answer_to(asked.message, page)
        # The requester is answered before the subscribers (SC-12).
        batch.emitted.insert(answer_index, (reply, asked.by))

    # ---- port of the core

    @override
    def step(self, step: Step) -> None:
        self._batch.steps.append(step)

    @override
    def keep(self, row: records.Row) -> None:
        self._batch.changes.append((row.url, row))

    @override
    def forget(self, url: str) -> None:
        self._batch.changes.append((url, None))

    @override
    def report_status(self, url: str, status: State) -> None:
        number = self._host.ids.next(self._address)
        self._batch.emitted.append((notification(number, self._address, url, status), None))

    def _may_return(self, asked: Asked, answer: records.Answered) -> bool:
        """Return whether a missing record may be registered again by a returning runtime."""
        is_forgetful = isinstance(self._file, record_file.MemoryRecords)
        is_sought = asked.is_returning and asked.message.type is MessageType.READ
        return is_forgetful and is_sought and answer == records.UNKNOWN

    # ---- a file that cannot be written

    def _fail(self, batch: _Batch, error: RegistryFileError) -> None:
        """Refuse all changes until the file can be written again."""
        self._owed.update(batch.left)
        if self._retry_at is None:
            _log.error("registry file cannot be written", path=str(error.where), why=error.reason)
        self._retry_at = trio.current_time() + STORE_RETRY

    async def _write(self, write: Callable[[], Awaitable[None]]) -> RegistryFileError | None:
        """Write to the file; return the error, which is counted, if nothing was committed."""
        begun = trio.current_time()
        try:
            await write()
        except RegistryFileError as exc:
            self._trace.counters.count(Tally.WRITES_FAILED, KeptFile.REGISTRY)
            return exc
        finally:
            self._trace.counters.took(Timing.COMMIT, trio.current_time() - begun)
        return None

    async def _recover(self) -> None:
        """Try to write all records; then handle the runtimes that have left meanwhile."""
        error = await self._write(self._file.recover)
        if error is not None:
            self._retry_at = trio.current_time() + STORE_RETRY
            return
        _log.warning("registry file is written again")
        self._retry_at = None
        owed, self._owed = self._owed, {}
        for left in owed.values():
            self._leave(left)


def _not_now(asked: Asked, why: str = _NOT_KEPT) -> _Output:
    return refuse(asked.message, Code.UNAVAILABLE, why), asked.by
