"""Reading server-sent events as they come (the part of them that a node uses)."""

from typing import final

from actors.runtime.stubs.wires.rest_http import RestError
from specs.limits.protocol import MAX_FRAME_BYTES

__all__ = ["EventReader"]


@final
class EventReader:
    """Puts the parts of one stream together again.

    Attributes:
        last: The id of the last event that came whole; None: none had one.
    """

    def __init__(self) -> None:
        self.last: int | None = None
        self._unread = b""

    def take(self, part: bytes) -> list[bytes]:
        """Return what the events said that are whole now, in order.

        Raises:
            RestError: One is larger than any frame.
        """
        *events, self._unread = (self._unread + part).split(b"\n\n")
        if len(self._unread) > MAX_FRAME_BYTES:
            raise RestError("an event is larger than any frame")
        said = [self._event(event) for event in events]
        return [one for one in said if one is not None]

    def _event(self, event: bytes) -> bytes | None:
        data: list[bytes] = []
        for line in event.splitlines():
            name, _, value = line.partition(b":")
            value = value.removeprefix(b" ")
            if name == b"data":
                data.append(value)
            elif name == b"id" and value.isdigit():
                self.last = int(value)
        return b"\n".join(data) if data else None
