"""What can go wrong between a sandbox and whoever keeps it."""

from typing import final

from specs.errors import ProtoflyError

__all__ = ["PipeError", "RoomError"]


@final
class PipeError(ProtoflyError):
    """The other end of a pipe said what nobody says there: end the sandbox.

    Attributes:
        reason: What was wrong, as half a sentence.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(f"the sandbox's pipe is misused: {reason}")
        self.reason = reason


@final
class RoomError(ProtoflyError):
    """No sandbox could be opened.

    Attributes:
        reason: Why not, as half a sentence.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(f"no sandbox: {reason}")
        self.reason = reason
