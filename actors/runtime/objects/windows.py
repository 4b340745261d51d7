"""Windows of requests: how many of a process are open at each receiver; the others wait.

A receiver takes so many of one process before it refuses; senders share that, and take turns.
"""

from collections import deque
from types import TracebackType
from typing import Final, final

import trio

from fsm.limits.shares import OpenShares
from specs.limits.bus import OPEN_REQUESTS, PEER_WAITING

__all__ = ["RequestPlace", "RequestWindows"]


@final
class _Window:
    """The requests to one receiver, and the tasks of each sender that wait."""

    __slots__ = ("lines", "shares")

    def __init__(self) -> None:
        self.shares: Final = OpenShares(PEER_WAITING, OPEN_REQUESTS)
        self.lines: Final[dict[str, deque[trio.lowlevel.Task]]] = {}


@final
class RequestWindows:
    """The windows of all receivers of one process."""

    def __init__(self) -> None:
        self._windows: Final[dict[str, _Window]] = {}

    def place(self, sender: str, to: str) -> "RequestPlace":
        """Return a context in which one more request is open.

        Args:
            sender: Address of the sender.
            to: Address of the receiver.
        """
        return RequestPlace(self._windows, sender, to)


@final
class RequestPlace:
    """One request that is open at a receiver, for the time of an `async with` block.

    Entering waits for a place, and is no checkpoint if there is one. If cancelled on entering,
    nothing is counted.
    """

    __slots__ = ("_sender", "_to", "_window", "_windows")

    _window: _Window

    def __init__(self, windows: dict[str, _Window], sender: str, to: str) -> None:
        self._windows = windows
        self._sender = sender
        self._to = to

    async def __aenter__(self) -> None:
        """Take a place."""
        windows, to = self._windows, self._to
        self._window = windows.get(to) or windows.setdefault(to, _Window())
        if not self._window.shares.enter(self._sender):
            await self._wait()

    async def _wait(self) -> None:
        shares, lines, sender = self._window.shares, self._window.lines, self._sender
        line = lines.setdefault(sender, deque())
        task = trio.lowlevel.current_task()
        line.append(task)

        def abort(_: object) -> trio.lowlevel.Abort:
            line.remove(task)
            if not line:
                del lines[sender]
            shares.give_up(sender)
            self._tidy()
            return trio.lowlevel.Abort.SUCCEEDED

        await trio.lowlevel.wait_task_rescheduled(abort)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Give the place to the next one."""
        following = self._window.shares.leave(self._sender)
        if following is not None:
            line = self._window.lines[following]
            trio.lowlevel.reschedule(line.popleft())
            if not line:
                del self._window.lines[following]
        self._tidy()

    def _tidy(self) -> None:
        if self._window.shares.is_idle:
            self._windows.pop(self._to, None)
