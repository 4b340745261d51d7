"""What can go wrong between a sandbox and whoever keeps it."""

from typing import final

from specs.errors import ReasonError

__all__ = ["PipeError", "RoomEndedError", "RoomError"]


@final
class PipeError(ReasonError):
    """The other end of a pipe said what nobody says there: end the sandbox."""

    told = "the sandbox's pipe is misused"


@final
class RoomError(ReasonError):
    """No sandbox could be opened."""

    told = "no sandbox"


@final
class RoomEndedError(ReasonError):
    """A sandbox is no more, and nobody had asked it to leave."""

    told = "its sandbox has ended"
