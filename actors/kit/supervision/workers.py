"""Pieces of work of one actor that run side by side, in tasks that are used again.

One task runs piece after piece as long as none of them waits. A piece that waits keeps its task,
and from that moment on another task runs the following pieces. So every piece has a task for
itself whenever that matters, and most pieces need no new one.
"""

from collections import deque
from collections.abc import Callable, Coroutine, Generator
from contextvars import Context
from typing import Generic, TypeVar, cast, final

import trio

from actors.kit.supervision.actor import Actor
from actors.kit.supervision.supervisor import BATCH
from actors.kit.supervision.waits import SERVING
from specs.limits.protocol import IDLE_WORKERS

T = TypeVar("T")
M = TypeVar("M")


@final
class _Piece:
    """A coroutine in a context of its own, that says when it waits for the first time.

    It is awaited: all that the coroutine yields goes to Trio, and comes from there, in one task.

    Attributes:
        has_waited: Whether it has waited.
    """

    __slots__ = ("_context", "_coroutine", "_waits", "has_waited")

    def __init__(
        self,
        coroutine: Coroutine[object, object, None],
        context: Context,
        waits: Callable[[], None],
    ) -> None:
        self._coroutine = coroutine
        self._context = context
        self._waits = waits
        self.has_waited = False

    def __await__(self) -> Generator[object, object, None]:
        # Of a generator it has what an `await` uses.
        return cast("Generator[object, object, None]", self)

    def __next__(self) -> object:
        trap = self._context.run(self._coroutine.send, None)
        if not self.has_waited:
            self.has_waited = True
            self._waits()
        return trap

    def send(self, value: object) -> object:
        """Go on with what Trio gives: it has waited."""
        return self._context.run(self._coroutine.send, value)

    def throw(self, error: BaseException) -> object:
        """Go on likewise, with an exception."""
        return self._context.run(self._coroutine.throw, error)

    def close(self) -> None:
        """End the coroutine."""
        self._coroutine.close()


@final
class Workers(Generic[T]):
    """Runs the work of one life of an actor: pieces begin in the order in which they were given.

    Args:
        actor: The actor; it runs the tasks, and an exception of a piece is a crash of it.
        work: Runs one piece. It is also called for what was given when the actor is stopped,
            and is cancelled at its first checkpoint then.
    """

    def __init__(
        self, actor: Actor[M], work: Callable[[T], Coroutine[object, object, None]]
    ) -> None:
        self._spawn = actor.spawn
        self._work = work
        self._given: deque[tuple[T, Context]] = deque()
        self._idle: list[trio.lowlevel.Task] = []
        self._is_served = False

    def give(self, piece: T, context: Context) -> None:
        """Have a piece of work run, when those before it have ended or wait.

        Args:
            piece: The piece.
            context: The context that it runs in, and nothing else.
        """
        # No task of these serves a mailbox: their waits delay no other actor.
        context.run(SERVING.set, None)
        self._given.append((piece, context))
        if not self._is_served:
            self._call()

    def _call(self) -> None:
        self._is_served = True
        if self._idle:
            trio.lowlevel.reschedule(self._idle.pop())
        else:
            self._spawn(self._serve)

    def _pass_on(self) -> None:
        self._is_served = False
        if self._given:
            self._call()

    async def _serve(self) -> None:
        while True:
            # A piece that leaves a cancel scope open is found here: it is a crash.
            with trio.CancelScope():
                await self._turn()
            if len(self._idle) >= IDLE_WORKERS:
                return
            await self._be_called()

    async def _turn(self) -> None:
        """Run what was given, until nothing is left or a piece waits."""
        left, running = BATCH, None
        try:
            while self._given:
                piece, context = self._given.popleft()
                running = _Piece(self._work(piece), context, self._pass_on)
                await running
                if running.has_waited:
                    return
                left -= 1
                if not left:
                    left = BATCH
                    # Each piece runs in any case, as a requester waits for its answer.
                    await trio.lowlevel.cancel_shielded_checkpoint()
        finally:
            if running is None or not running.has_waited:
                self._pass_on()

    async def _be_called(self) -> None:
        task = trio.lowlevel.current_task()
        self._idle.append(task)

        def abort(_: object) -> trio.lowlevel.Abort:
            self._idle.remove(task)
            return trio.lowlevel.Abort.SUCCEEDED

        await trio.lowlevel.wait_task_rescheduled(abort)
