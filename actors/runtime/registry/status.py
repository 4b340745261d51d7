"""The status of a runtime: whether it reaches the node of its domain (REG-12).

The application reads and follows it. If the configuration says so, the runtime also publishes it at
`R/status`, to the runtimes that subscribe there: `live` and, when it leaves in order,
`disconnected`. When its connection is lost, its node publishes `disconnected` in its place.
"""

from collections.abc import AsyncIterator

import trio
from typing_extensions import override

from actors.kit.ids import IdSource
from actors.runtime.bus.ports import CorePort
from specs.addresses.address import status_of
from specs.bodies.session import Status
from specs.bodies.word import StatusValue
from specs.message import Message, MessageType
from transports.bodies import write_body


class RuntimeStatus:
    """The status of one runtime; its registry writes it.

    Args:
        runtime: Address of the runtime.
        port: Port of the registry.
        ids: Message ids.
        is_published: Whether the runtime publishes its status.

    Attributes:
        value: `created` before the first session with the node, then `live` or `disconnected`; at
            last `failed` if the node has ended the session for good.
        end: Why it has ended for good; None: it has not.
        has_changed: Is set at the next change.
        is_published: Whether subscribers at the node are notified.
    """

    def __init__(self, runtime: str, port: CorePort, ids: IdSource, *, is_published: bool) -> None:
        self.value = StatusValue.CREATED
        self.end: str | None = None
        self._runtime = runtime
        self._port = port
        self._ids = ids
        self.is_published = is_published
        self.has_changed = trio.Event()

    async def begin(self) -> None:
        """Prepare to publish, if that is wanted.

        If cancelled, the registry may be allowed to send as the runtime.
        """
        if self.is_published:
            self._port.grant(self._runtime, self._port.url)

    def set_connection(self, stub: str, *, is_live: bool, end: str | None = None) -> None:
        """Take the state of the connection to the own node.

        Args:
            stub: Address of the stub of the node.
            is_live: Whether it is live.
            end: Why it is over for good; None: it is not.
        """
        address = status_of(self._runtime)
        if is_live:
            self._set(StatusValue.LIVE)
            if self.is_published:
                self._port.follow(address, stub)
        elif end is not None:
            self.end = end
            self._set(StatusValue.FAILED)
        else:
            self._set(StatusValue.DISCONNECTED)
            if self.is_published:
                # What cannot leave now would be out of date later.
                self._port.unfollow(address, stub)

    async def leave(self) -> None:
        """Publish that the runtime leaves, while the node can still be reached.

        If cancelled, that may not be published.
        """
        if self.value is StatusValue.LIVE:
            self._set(StatusValue.DISCONNECTED)
            if self.is_published:
                await self.publish()

    def changes(self) -> "StatusChanges":
        """Return an iterator over the present status, and each newer one."""
        return StatusChanges(self)

    def _set(self, value: StatusValue) -> None:
        if value is not self.value:
            self.value = value
            self.has_changed.set()
            self.has_changed = trio.Event()

    async def publish(self) -> None:
        """Notify the subscribers of the present status.

        If cancelled, they may not be notified.
        """
        sender = self._runtime
        body, number = write_body(Status(self.value.value)), self._ids.next(sender)
        event = Message(number, MessageType.UPDATE, sender, status_of(sender), body)
        await self._port.post(event)


class StatusChanges(AsyncIterator[StatusValue]):
    """The present status of a runtime, and each newer one; a slow reader gets the newest.

    Args:
        status: The status.
    """

    def __init__(self, status: RuntimeStatus) -> None:
        self._status = status
        self._shown: StatusValue | None = None

    @override
    async def __anext__(self) -> StatusValue:
        """Wait for a status other than the one that was returned last.

        If cancelled, nothing has changed.
        """
        await trio.lowlevel.checkpoint()
        while self._status.value is self._shown:
            await self._status.has_changed.wait()
        self._shown = self._status.value
        return self._shown
