"""What was sent to a peer that says by a number how far it has read (CON-06).

Messages are numbered from 1. Asking for what comes after a number acknowledges all up to
it; what was not acknowledged is there to be asked for again. So an answer that is cut on
its way costs nothing and doubles nothing.
"""

from collections.abc import Iterable, Sequence
from typing import final

from specs.errors import ProtoflyError

__all__ = ["CursorError", "SendWindow"]


@final
class CursorError(ProtoflyError):
    """The peer asks for what is not there: it was acknowledged, or never sent.

    Attributes:
        after: What it asked for.
    """

    def __init__(self, after: int, first: int, last: int) -> None:
        super().__init__(f"nothing is kept after {after}; ask after {first} to {last}")
        self.after = after


@final
class SendWindow:
    """The messages of one link that are not acknowledged yet.

    Attributes:
        acknowledged: Up to which number the peer has read.
    """

    __slots__ = ("_lines", "acknowledged")

    def __init__(self) -> None:
        self.acknowledged = 0
        self._lines: list[bytes] = []

    def __len__(self) -> int:
        """How many messages wait to be acknowledged."""
        return len(self._lines)

    @property
    def last(self) -> int:
        """The number of the last message sent."""
        return self.acknowledged + len(self._lines)

    def put(self, lines: Iterable[bytes]) -> None:
        """Send messages; the caller sees to it that they are not too many."""
        self._lines += lines

    def acknowledge(self, after: int) -> None:
        """Forget what the peer has read; repeated is fine.

        Raises:
            CursorError: It cannot have read that, or has asked for later ones before.
        """
        if not self.acknowledged <= after <= self.last:
            raise CursorError(after, self.acknowledged, self.last)
        del self._lines[: after - self.acknowledged]
        self.acknowledged = after

    def take(self) -> bytes:
        """Take out the oldest message; it has no number, the next one has its place."""
        return self._lines.pop(0)

    def after(self, number: int) -> Sequence[bytes]:
        """Return the messages behind a number that are not acknowledged, in order."""
        return self._lines[max(0, number - self.acknowledged) :]
