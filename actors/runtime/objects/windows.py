"""Windows of requests: how many of a process are open at each receiver; the others wait.

A receiver takes so many of one process before it refuses; senders share that, and take turns.
"""

from types import TracebackType
from typing import Final, TypeAlias, final

import trio

from fsm.limits.shares import OpenShares
from specs.limits.bus import OPEN_REQUESTS, PEER_WAITING

_Shares: TypeAlias = OpenShares[trio.lowlevel.Task]


@final
class RequestWindows:
    """The windows of all receivers of one process."""

    def __init__(self) -> None:
        self._windows: Final[dict[str, _Shares]] = {}

    def place(self, sender: str, to: str) -> "RequestPlace":
        """Return a context in which one more request of a sender to a receiver is open."""
        return RequestPlace(self._windows, sender, to)


@final
class RequestPlace:
    """One request that is open at a receiver, for the time of an `async with` block.

    Entering waits for a place, and is no checkpoint if there is one. If cancelled on entering,
    nothing is counted.
    """

    __slots__ = ("_sender", "_shares", "_to", "_windows")

    _shares: _Shares

    def __init__(self, windows: dict[str, _Shares], sender: str, to: str) -> None:
        self._windows = windows
        self._sender = sender
        self._to = to

    async def __aenter__(self) -> None:
        """Take a place."""
        shares = self._windows.get(self._to)
        if shares is None:
            shares = self._windows[self._to] = OpenShares(PEER_WAITING, OPEN_REQUESTS)
        self._shares = shares
        if not shares.enter(self._sender):
            await self._wait()

    async def _wait(self) -> None:
        task = trio.lowlevel.current_task()
        self._shares.wait(self._sender, task)

        def abort(_: object) -> trio.lowlevel.Abort:
            self._shares.give_up(self._sender, task)
            if self._shares.is_idle:
                self._windows.pop(self._to, None)
            return trio.lowlevel.Abort.SUCCEEDED

        await trio.lowlevel.wait_task_rescheduled(abort)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Give the place to the next one."""
        following = self._shares.leave(self._sender)
        if following is not None:
            trio.lowlevel.reschedule(following)
        elif self._shares.is_idle:
            self._windows.pop(self._to, None)
