"""How a hyperty's copy of a data object is kept: the host of its core (SYN-06, SYN-12, SYN-17).

What an observer has of an object, stored for its next life (SYN-25, M-52).
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final, TypeAlias, assert_never, final

import attrs
import trio

from actors.kit.trace import value_digest
from actors.runtime.objects.children import Children
from actors.runtime.objects.context import Seat
from actors.runtime.objects.error import ObjectError
from actors.runtime.objects.observed_object import ObservedObject
from actors.runtime.sync.reporter.stored import NO_STORE
from fsm.engine import Step
from fsm.machines.observer_copy import State
from fsm.sync.copy import (
    Applied,
    Changed,
    CopyTimeOver,
    GivenUp,
    NotFound,
    ObserveBegun,
    ObserverCore,
    ObserverEffect,
    ObserverGone,
    ObserverInput,
    ReadFailed,
    ReadNeeded,
    Recalled,
    SnapshotRead,
    WithdrawnByReporter,
)
from fsm.sync.stored import CopyForgotten, CopyKept
from fsm.sync.value.value import check_path
from specs.bodies.object import Resume
from specs.bodies.sync import Change, ObjectName, Observe, Snapshot
from specs.errors import BadMessageError
from specs.jsonvalue import JsonObject
from specs.limits.protocol import GOODBYE_TIMEOUT, READ_PAUSE
from specs.limits.sync import COPIES_STORED, GONE_READS, REPEAT_LAST
from specs.message import Message, MessageType, reason_in
from specs.reply_code import LAST_SUCCESS, Code
from specs.trace import Fact, Kind, Op
from transports.background import open_background
from transports.bodies import read_body, write_body

__all__ = ["StoredCopy", "check_room", "open_observation"]


def check_room(seat: Seat, url: str) -> None:
    """Say no if a copy cannot be stored.

    Raises:
        ObjectError: 400 there is no store, 413 it is full.
    """
    if not seat.shelf.stores:
        raise ObjectError(url, Code.MALFORMED, NO_STORE)
    if not seat.shelf.has_room(url, seat.url):
        raise ObjectError(url, Code.TOO_LARGE, f"{COPIES_STORED} observed objects are stored")


@final
class StoredCopy:
    """One observer's copy of one object, on disk."""

    def __init__(self, seat: Seat, url: str) -> None:
        self._seat: Final = seat
        self._url: Final = url

    async def recall(self) -> Recalled | None:
        """Return what was stored before a restart (M-52); None: nothing was."""
        kept = self._seat.shelf.copy(self._url, self._seat.url)
        if kept is None:
            return None
        with suppress(ObjectError):
            body = write_body(Resume(store=True))
            await self._seat.ask_manager(MessageType.SUBSCRIBE, body, self._url)
        return Recalled(kept.version, kept.data)

    def keep(self, version: int, data: JsonObject) -> None:
        """Store a newer value, soon."""
        self._seat.shelf.later(CopyKept(self._url, self._seat.url, version, data))

    def forget(self) -> None:
        """Store it no more: the object is gone, or not for this observer."""
        self._seat.shelf.later(CopyForgotten(self._url, self._seat.url))


_WAITING: Final = 64
"""What waits to be fed to the core; the hyperty's mailbox waits while there is more (ours)."""

_EXPELLED: Final = "its reporter has expelled this hyperty"

_FOR_NOW: Final = frozenset(
    {
        Code.TIMEOUT,
        Code.TOO_LARGE,
        Code.INTERNAL,
        Code.BAD_BACKEND,
        Code.UNAVAILABLE,
        Code.BACKEND_TIMEOUT,
    }
)
"""Refusals of a read that say nothing about the next one."""

_News: TypeAlias = Message | ObserverInput


@asynccontextmanager
async def open_observation(seat: Seat, wish: Observe) -> AsyncIterator[ObservedObject]:
    """Observe an object while the context is open; it has its value from the beginning.

    On leaving, a reporter that does not answer is not waited for.

    Args:
        seat: The hyperty's.
        wish: The object, and how it is observed.

    Raises:
        ObjectError: The reporter refuses, there is no such object, or the hyperty
            observes it already.
    """
    news, intake = trio.open_memory_channel[_News](_WAITING)
    url = wish.resource
    if wish.store:
        check_room(seat, url)
    seat.watch(url, news)
    copy = ObservedObject(url, Children.of(seat, url))
    try:
        async with copy.children.open(), open_background() as nursery:
            observation = _Observation(seat, copy, news, nursery)
            await nursery.start(observation.run, wish, intake)
            copy.check()
            yield copy
    finally:
        intake.close()
        # Whoever was refused, or undeployed, does not observe anyway.
        with suppress(ObjectError), trio.move_on_after(GOODBYE_TIMEOUT, shield=True):
            await seat.ask_manager(MessageType.UNSUBSCRIBE, write_body(ObjectName(url)), url)
        seat.unwatch(url)


@final
class _Observation:
    """Feeds one core, in one task, with all that happens to the copy."""

    def __init__(
        self,
        seat: Seat,
        copy: ObservedObject,
        news: trio.MemorySendChannel[_News],
        nursery: trio.Nursery,
    ) -> None:
        self._seat = seat
        self._copy = copy
        self._news = news
        self._nursery = nursery
        self._core = ObserverCore(copy.url, seat.url)
        self._refusal: ObjectError | None = None
        self._stored: StoredCopy | None = None
        self._wish = Observe(copy.url)

    async def run(
        self,
        wish: Observe,
        intake: trio.MemoryReceiveChannel[_News],
        *,
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Observe until the object is gone; started when there is a value or a refusal."""
        is_started, self._wish = False, wish
        try:
            if wish.store:
                self._stored = StoredCopy(self._seat, wish.resource)
            self._feed(ObserveBegun())
            self._nursery.start_soon(self._subscribe, wish)
            while not self._copy.is_gone:
                self._feed(await self._next(intake))
                if not is_started and (self._copy.version or self._copy.is_gone):
                    is_started = True
                    task_status.started()
        finally:
            # Nobody reads any more: whoever still tells the copy something must not wait.
            intake.close()
            # What is stored stays so: whoever left may come back.
            self._stored = None
            self._feed(GivenUp("the observer leaves"))

    async def _next(self, intake: trio.MemoryReceiveChannel[_News]) -> ObserverInput:
        with trio.move_on_at(self._core.deadline()):
            told = await intake.receive()
            happened = self._understood(told) if isinstance(told, Message) else told
            if isinstance(happened, GivenUp) and self._refusal is None:
                # Nobody has ended it but this end: the others have to hear of that.
                self._nursery.start_soon(self._leave)
            return happened
        return CopyTimeOver()

    def _understood(self, message: Message) -> ObserverInput:
        """Say what a sync manager told: the object's (M-40, M-47), or our own (M-36)."""
        if message.type is MessageType.DELETE:
            return WithdrawnByReporter()
        if message.type is MessageType.UNSUBSCRIBE:
            return self._expelled()
        if message.to == self._seat.url:
            return _snapshot(message)
        try:
            change = read_body(message, Change)
            check_path(change.attribute)
            # Its reporter may be another one by now (SYN-26).
            self._seat.reported_by(self._copy.url, change.source)
            return Changed(change)
        except BadMessageError as exc:
            return GivenUp(f"its reporter sent a change that is none: {exc.reason}")

    def _expelled(self) -> ObserverInput:
        """End the copy at its reporter's word, and unsubscribe (M-45, SYN-21)."""
        self._refusal = ObjectError(self._copy.url, Code.FORBIDDEN, _EXPELLED)
        self._nursery.start_soon(self._leave)
        return GivenUp(_EXPELLED)

    # --- asking ---------------------------------------------------------------------------

    async def _subscribe(self, wish: Observe) -> None:
        body, url = write_body(wish), wish.resource
        recalled = None if self._stored is None else await self._stored.recall()
        if recalled is not None:
            await self._tell(recalled)
        try:
            answer = await self._granted(body, url, READ_PAUSE if recalled else None)
        except ObjectError as refusal:
            self._refusal = refusal
            await self._tell(GivenUp(refusal.why))
            return
        snapshot = _snapshot(answer)
        if isinstance(snapshot, SnapshotRead):
            shown = snapshot.snapshot.children_objects
            self._copy.children.begin(shown, is_by_link=answer.body.get("p2p") is True)
        await self._tell(snapshot)

    async def _granted(self, body: JsonObject, url: str, pause: float | None) -> Message:
        """Ask to observe; with a pause, as often as the answer says nothing for good.

        Whoever has what was stored can wait for a reporter that is not back yet. A node that
        has forgotten all knows no such object until then: as of a read, that is no end at once.
        """
        not_found = 0
        while True:
            try:
                return await self._seat.ask_manager(MessageType.SUBSCRIBE, body, url)
            except ObjectError as refusal:
                not_found = not_found + 1 if refusal.code == Code.NOT_FOUND else 0
                is_for_now = 0 < not_found < GONE_READS or refusal.code in _FOR_NOW
                if pause is None or not is_for_now:
                    raise
                await trio.sleep(pause)
                pause = min(2 * pause, REPEAT_LAST)

    async def _tell(self, happened: ObserverInput) -> None:
        """Have something fed to the core; what comes after its end says nothing any more."""
        with suppress(trio.BrokenResourceError):
            await self._news.send(happened)

    async def _leave(self) -> None:
        body = write_body(ObjectName(self._copy.url))
        await self._seat.post_to_manager(MessageType.UNSUBSCRIBE, body)

    async def _read(self, read: int) -> None:
        """Read the whole object (M-41); what fails for now is tried again."""
        answer = await self._seat.ask(self._copy.url, MessageType.READ, {})
        if answer.code == Code.UNAUTHENTICATED:
            # It may have gone by a link, which proves nothing; the node knows who asks.
            answer = await self._seat.ask(self._copy.url, MessageType.READ, {"p2p": False})
        if answer.code == Code.UNAUTHENTICATED:
            # Its subscription may be over, and nobody could say so: another is asked for.
            answer = await self._resume()
        if answer.code <= LAST_SUCCESS and isinstance(answer.body.get("value"), dict):
            await self._tell(_snapshot(answer))
            return
        why = reason_in(answer)
        if answer.code in _FOR_NOW or answer.code <= LAST_SUCCESS:
            await self._tell(ReadFailed(read, why))
        elif answer.code == Code.NOT_FOUND:
            await self._tell(NotFound(read, why))
        else:
            self._refusal = ObjectError(self._copy.url, answer.code, why)
            await self._tell(GivenUp(why))

    async def _resume(self) -> Message:
        """Subscribe again; return what the sync manager says."""
        body = write_body(attrs.evolve(self._wish, resume=True))
        return await self._seat.ask(self._seat.manager, MessageType.SUBSCRIBE, body)

    # --- the copy -------------------------------------------------------------------------

    def _feed(self, happened: ObserverInput) -> None:
        if isinstance(happened, SnapshotRead):
            self._seat.reported_by(self._copy.url, happened.snapshot.reporter)
        elif isinstance(happened, CopyTimeOver) and not self._copy.version:
            self._refusal = ObjectError(self._copy.url, Code.TIMEOUT, "no answer in time")
        for effect in self._core.feed(happened, trio.current_time()):
            self._perform(effect)

    def _perform(self, effect: ObserverEffect) -> None:
        match effect:
            case Step():
                self._seat.tracer.step(self._seat.url, effect)
                self._copy.doubt(is_stale=effect.new == State.STALE)
            case Applied(version, data, change):
                if self._stored is not None:
                    self._stored.keep(version, data)
                self._trace(version, data)
                self._copy.show(version, data, change)
            case ReadNeeded(read):
                self._nursery.start_soon(self._read, read)
            case ObserverGone(why):
                if self._stored is not None:
                    self._stored.forget()
                gone = ObjectError(self._copy.url, Code.GONE, why)
                self._copy.end(self._refusal or gone)
                self._copy.children.end()
            case _:
                assert_never(effect)

    def _trace(self, version: int, data: JsonObject) -> None:
        who, url, tracer = self._seat.url, self._copy.url, self._seat.tracer
        told = value_digest(data) if tracer.hops else None
        fact = Fact(k=Kind.OBJ, op=Op.APPLY, key=url, version=version, by=who, digest=told)
        tracer.record(who, fact)


def _snapshot(answer: Message) -> ObserverInput:
    """Understand the whole object that an answer, or our own sync manager, brings."""
    value = answer.body.get("value")
    try:
        whole = attrs.evolve(answer, body=value if isinstance(value, dict) else {})
        return SnapshotRead(read_body(whole, Snapshot))
    except BadMessageError as exc:
        return GivenUp(f"its reporter sent an object that is none: {exc.reason}")
