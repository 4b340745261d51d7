"""The writes of a reporter to its data object: accepted at once, published one after the other.

`fsm.sync.value.writes` decides; this module asks the runtime to publish, and wakes the tasks
that wait for it.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final, assert_never

import trio
from typing_extensions import override

from actors.kit.errors import ActorStoppedError
from actors.runtime.objects.error import ObjectError, SchemaError
from actors.runtime.objects.live_value import LiveObject, Place, Whole
from actors.runtime.objects.participant import Participant
from fsm.sync.value.json import Flaw, ObjectSchema
from fsm.sync.value.writes import Unpublished, Verdict, WritesCore, Written
from specs.bodies.object import ChangeObject
from specs.jsonvalue import Json, JsonObject
from specs.limits.protocol import GOODBYE_TIMEOUT, READ_PAUSE
from specs.message import MessageType
from specs.reply_code import LAST_SUCCESS, Code
from transports.bodies import write_body
from transports.sockets import open_background


class Writes(Whole):
    """The writes to one object, and the value after them.

    Args:
        participant: The hyperty.
        url: Address of the object.
        data: Its published value.
        version: Version of that value.
        schema: Schema that each value must obey; None: each value is accepted.

    Attributes:
        live: The value, to be written like any value of Python.
    """

    def __init__(
        self,
        participant: Participant,
        url: str,
        data: JsonObject,
        version: int,
        schema: ObjectSchema | None,
    ) -> None:
        self.url = url
        self._participant = participant
        self._core = WritesCore(url, data, version, schema)
        self._top = Place(self)
        self.live: Final = LiveObject(self._top)
        # Of writes whose tasks wait: the version, or why it is not published; None: not yet known.
        self._waits: dict[int, int | Unpublished | None] = {}
        # Of tasks that wait for all writes: the write that failed meanwhile.
        self._flushes: dict[object, Unpublished | None] = {}
        self._moved = trio.lowlevel.ParkingLot()

    @property
    def version(self) -> int:
        """Version that was published last."""
        return self._core.version

    @property
    @override
    def now(self) -> JsonObject:
        """The value with all writes."""
        return self._core.value

    @override
    def become(self, new: JsonObject) -> None:
        """Write a new value; it is published in the background.

        Raises:
            SchemaError: The schema does not allow it; nothing has changed.
            ObjectError: Too many writes wait, or an earlier write failed; nothing has changed.
        """
        self._accept(self._core.become(new))

    async def publish(self, change: ChangeObject) -> int:
        """Write one change, wait until it is published, and return its version.

        If cancelled while too many writes wait, nothing was written; later, the change is published
        all the same.

        Raises:
            SchemaError: The schema does not allow it; nothing has changed.
            ObjectError: This write or an earlier one was not published.
        """
        while self._core.is_full:
            await self._moved.park()
        old = self.now
        number = self._accept(self._core.make(change))
        self._top.follow(old, self.now, _way_of(change))
        self._waits[number] = None
        try:
            while (result := self._waits[number]) is None:
                await self._moved.park()
        finally:
            del self._waits[number]
        if isinstance(result, Unpublished):
            raise self._error(result)
        return result

    async def flush(self) -> int:
        """Wait until all writes so far are published, and return the published version.

        If cancelled, only the wait ends; the next `flush` raises what went wrong.

        Raises:
            ObjectError: A write since the last `flush` was not published; each task that waits
                then gets the error.
        """
        number, flush = self._core.number, object()
        self._flushes[flush] = None
        try:
            while not self._core.is_over(number):
                await self._moved.park()
        finally:
            lost = self._flushes.pop(flush)
        lost = self._core.flushed() or lost
        if lost is not None:
            raise self._error(lost)
        return self.version

    def _accept(self, verdict: Verdict) -> int:
        """Return the number of an accepted write."""
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

    @asynccontextmanager
    async def published(self) -> AsyncIterator[None]:
        """Publish writes while the context is open, and the remaining ones when it is left.

        The remaining writes have `GOODBYE_TIMEOUT` seconds, also if cancelled; what was not
        published then is lost, and its errors are not raised.
        """
        hold = trio.CancelScope(shield=True)
        async with open_background() as nursery:
            nursery.start_soon(self._run, hold)
            try:
                yield
            finally:
                # A failure that is not awaited is not reported.
                with suppress(ObjectError), trio.move_on_after(GOODBYE_TIMEOUT, shield=True):
                    await self.flush()
                self._fail(Unpublished(Code.NOT_FOUND, "it is reported no more"))
                self._moved.unpark_all()
                hold.cancel()

    async def _run(self, hold: trio.CancelScope) -> None:
        """Publish the writes in order, until `hold` is cancelled."""
        with hold:
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
            answer = await self._participant.ask_manager(MessageType.UPDATE, body, self.url)
            version = answer.body.get("version")
        except ObjectError as exc:
            version = await self._version_there() if exc.code == Code.TIMEOUT else self.version
            if version == self.version:
                self._fail(Unpublished(exc.code, exc.why))
                return
        number = self._core.published(version if isinstance(version, int) else self.version + 1)
        if number in self._waits:
            self._waits[number] = self.version

    async def _version_there(self) -> Json:
        """Return the version at the sync manager, however long it waits for the disk."""
        undecided = {Code.TIMEOUT, Code.UNAVAILABLE}
        with suppress(ActorStoppedError):
            answer = await self._participant.ask(self.url, MessageType.READ, {})
            while answer.code in undecided:
                await trio.sleep(READ_PAUSE)
                answer = await self._participant.ask(self.url, MessageType.READ, {})
            value = answer.body.get("value")
            if answer.code <= LAST_SUCCESS and isinstance(value, dict):
                return value.get("version")
        return self.version

    def _fail(self, lost: Unpublished) -> None:
        unreported = self._core.failed(lost.code, lost.why, frozenset(self._waits))
        self._flushes = {each: unreported or before for each, before in self._flushes.items()}
        self._waits = {number: known or lost for number, known in self._waits.items()}
        self._top.forget()


def _way_of(change: ChangeObject) -> tuple[str, ...]:
    """Return the path to the object or list in which a change is made."""
    steps = () if change.attribute is None else tuple(change.attribute.split("."))
    return steps if change.operation is not None else steps[:-1]
