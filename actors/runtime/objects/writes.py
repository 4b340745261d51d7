"""The writes of a reporter into its data object: taken at once, published one after the other.

What is decided is in `fsm.sync.value.writes`; here the runtime is asked to publish, and
whoever waits for that is told.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final, assert_never, final

import trio
from typing_extensions import override

from actors.runtime.objects.context import Seat
from actors.runtime.objects.error import ObjectError, SchemaError
from actors.runtime.objects.live_parts import Place, Whole
from actors.runtime.objects.live_value import LiveObject
from fsm.sync.value.json import Flaw, ObjectSchema
from fsm.sync.value.writes import Unpublished, Verdict, WritesCore, Written
from specs.bodies.sync import ChangeObject
from specs.jsonvalue import JsonObject
from specs.limits.protocol import GOODBYE_TIMEOUT
from specs.message import MessageType
from specs.reply_code import Code
from transports.background import open_background
from transports.bodies import write_body

__all__ = ["Writes", "published"]


@final
class _Wait:
    """A write whose writer waits until it is published.

    Attributes:
        lost: Why it never will be; None: nothing is known against it.
    """

    def __init__(self) -> None:
        self.lost: ObjectError | None = None
        self.version = 0
        self.is_over: Final = trio.Event()


@final
class _Flush:
    """Somebody who waits until all is published.

    Attributes:
        lost: What was not, while it waited; None: nothing.
    """

    def __init__(self) -> None:
        self.lost: Unpublished | None = None


@final
class Writes(Whole):
    """The writes of one object, and the value they lead to.

    Args:
        seat: Whose object it is.
        url: The object.
        data: Its value, as it was published.
        version: Of that value.
        schema: What each value must obey; None: any will do.

    Attributes:
        live: The value, to be written like any value of Python.
    """

    def __init__(
        self, seat: Seat, url: str, data: JsonObject, version: int, schema: ObjectSchema | None
    ) -> None:
        self.url = url
        self._seat = seat
        self._core = WritesCore(url, data, version, schema)
        self._top = Place(self)
        self.live: Final = LiveObject(self._top)
        self._waits: dict[int, _Wait] = {}
        self._flushes: set[_Flush] = set()
        self._moved = trio.lowlevel.ParkingLot()
        self._shut: ObjectError | None = None

    @property
    def version(self) -> int:
        """Of what was published last."""
        return self._core.version

    @property
    @override
    def now(self) -> JsonObject:
        """The value with all that was written."""
        return self._core.value

    @override
    def become(self, new: JsonObject) -> None:
        """Write what makes the value `new`.

        Raises:
            SchemaError: The schema does not take it.
            ObjectError: Too much waits; or what became of an earlier write.
        """
        self._check_open()
        self._taken(self._core.become(new))

    async def publish(self, change: ChangeObject) -> int:
        """Write one change and wait until it is published; return the version it has.

        Waits for room while too much waits. Cancelled: it may have been written.

        Raises:
            SchemaError: The schema does not take it.
            ObjectError: It is not published, nor was an earlier write.
        """
        while self._core.is_full:
            await self._moved.park()
        self._check_open()
        old = self.now
        number, wait = self._taken(self._core.make(change)), _Wait()
        self._top.follow(old, self.now, _way_of(change))
        self._waits[number] = wait
        try:
            await wait.is_over.wait()
        finally:
            del self._waits[number]
        if wait.lost is not None:
            raise wait.lost
        return wait.version

    async def flush(self) -> int:
        """Wait until all that was written so far is published; return the version.

        Raises:
            ObjectError: A write since the last `flush` was not published; of several tasks
                that wait at that time, each is told.
        """
        number, flush = self._core.number, _Flush()
        self._flushes.add(flush)
        try:
            while not self._core.is_over(number):
                await self._moved.park()
        finally:
            self._flushes.remove(flush)
        lost = self._core.flushed() or flush.lost
        if lost is not None:
            raise self._error(lost)
        return self.version

    def shut(self, code: Code, why: str) -> None:
        """Let nothing be written: the object is being handed over, or was."""
        self._shut = ObjectError(self.url, code, why)

    def reopen(self) -> None:
        """Let it be written again."""
        self._shut = None

    def _check_open(self) -> None:
        if self._shut is not None:
            raise ObjectError(self.url, self._shut.code, self._shut.why)

    def _taken(self, verdict: Verdict) -> int:
        """Return the number of a write that was taken."""
        match verdict:
            case Written(number):
                self._moved.unpark_all()
                return number
            case Flaw(path, why):
                raise SchemaError(path, why)
            case Unpublished():
                raise self._error(verdict)
            case _:
                assert_never(verdict)

    def _error(self, lost: Unpublished) -> ObjectError:
        return ObjectError(self.url, lost.code, lost.why)

    # ---- publishing

    async def run(self) -> None:
        """Have published what is written, in order; never returns."""
        while True:
            change = self._core.next()
            if change is None:
                await self._moved.park()
            else:
                await self._publish(change)
                self._moved.unpark_all()

    async def _publish(self, change: ChangeObject) -> None:
        body = write_body(change)
        try:
            answer = await self._seat.ask_manager(MessageType.UPDATE, body, self.url)
        except ObjectError as exc:
            self._fail(Unpublished(exc.code, exc.why))
            return
        version = answer.body.get("version")
        number = self._core.published(version if isinstance(version, int) else self.version + 1)
        wait = self._waits.get(number)
        if wait is not None:
            wait.version = self.version
            wait.is_over.set()

    def _fail(self, lost: Unpublished) -> None:
        untold = self._core.failed(lost.code, lost.why, frozenset(self._waits))
        for flush in self._flushes:
            flush.lost = untold or flush.lost
        self._top.forget()
        for wait in self._waits.values():
            wait.lost = self._error(lost)
            wait.is_over.set()

    def end(self) -> None:
        """Let nothing be written any more: nobody publishes it."""
        self._fail(Unpublished(Code.NOT_FOUND, "it is reported no more"))
        self._moved.unpark_all()


def _way_of(change: ChangeObject) -> tuple[str, ...]:
    """Return the way to the object or list that a change is made in."""
    steps = () if change.attribute is None else tuple(change.attribute.split("."))
    return steps if change.operation is not None else steps[:-1]


@asynccontextmanager
async def published(writes: Writes) -> AsyncIterator[None]:
    """Publish what is written while the context is open, and what is left when it is not."""
    hold = trio.CancelScope(shield=True)

    async def publish() -> None:
        with hold:
            await writes.run()

    async with open_background() as nursery:
        nursery.start_soon(publish)
        try:
            yield
        finally:
            # What nobody waits for any more nobody has to be told, either.
            with suppress(ObjectError), trio.move_on_after(GOODBYE_TIMEOUT, shield=True):
                await writes.flush()
            writes.end()
            hold.cancel()
