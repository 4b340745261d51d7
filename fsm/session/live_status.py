"""The runtimes that others take to be live, by what these have published at `R/status` (REG-12).

A runtime that loses its link cannot say so itself: its node does, once, unless it had said so
itself before it left. A runtime that never published its status is nobody's business.
"""

from typing import Final

from specs.addresses.address import status_of
from specs.bodies.session import Status
from specs.bodies.word import StatusValue
from specs.message import Message, MessageType

LOST: Final = Status(StatusValue.DISCONNECTED.value, description="the node lost the runtime")
"""What the node says of a runtime that is gone."""


class LiveStatuses:
    """Runtimes with a session at the node, at most, that have said last that they are live."""

    __slots__ = ("_live",)

    def __init__(self) -> None:
        self._live: set[str] = set()

    def __len__(self) -> int:
        return len(self._live)

    def said(self, message: Message, by: str) -> None:
        """Take what a runtime says, if that is its status.

        Args:
            message: An admitted message.
            by: Runtime of the session that brought it.
        """
        if message.type is not MessageType.UPDATE or message.from_ != by:
            return
        if message.to != status_of(by):
            return
        if message.body.get("value") == StatusValue.LIVE:
            self._live.add(by)
        else:
            self._live.discard(by)

    def lost(self, runtime: str) -> bool:
        """Note that a runtime has lost its link or its session.

        Returns:
            Whether those who follow its status have to be notified.
        """
        if runtime not in self._live:
            return False
        self._live.remove(runtime)
        return True
