"""Tasks of objects that are called, and do not have a mailbox of their own."""

from collections.abc import Awaitable, Callable
from typing import Final, Never, TypeVar, TypeVarTuple, final

from typing_extensions import override

from actors.kit.errors import ActorStoppedError
from actors.kit.supervision.actor import Actor
from actors.kit.supervision.mailbox import OpenReplies, Reply

R = TypeVar("R")
Ts = TypeVarTuple("Ts")


@final
class BackgroundTasks(Actor[Never]):
    """Runs tasks for called objects. It gets no messages.

    An unexpected exception in a task is a crash of this actor.
    """

    def __init__(self) -> None:
        self._waits: Final = OpenReplies()

    async def ask(self, work: Callable[[Reply[R], *Ts], Awaitable[object]], *args: *Ts) -> R:
        """Run `work(reply, *args)` in a task of its own; return what it gives to the reply.

        If cancelled, the work goes on; `reply.is_open` tells it that nobody waits.

        Raises:
            ActorStoppedError: The runtime has closed, or closes before the reply.
            Exception: What the work gives to `reply.fail`.
        """
        reply: Reply[R] = Reply()
        self.spawn(work, reply, *args)
        return await self._waits.wait_for(reply)

    @override
    async def handle(self, message: Never) -> None:
        """This actor receives no messages."""

    @override
    async def stop(self) -> None:
        self._waits.lose(ActorStoppedError(self.name))
