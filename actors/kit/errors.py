"""The errors of the kit: an actor has ended, actors wait in a circle, a supervisor gives up."""

from pathlib import Path
from typing import final

from specs.errors import ProtoflyError


@final
class ActorStoppedError(ProtoflyError, public=True):
    """The actor is gone, or went before it answered.

    Raised by a restart too: what the actor had in hand then is lost, and the
    cause of this error is what made it crash.
    """

    def __init__(self, name: str) -> None:
        super().__init__(f"actor {name!r} has stopped")
        self.name = name


class NameTakenError(ProtoflyError):
    """A supervisor has a child of this name already: a bug of the caller."""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is a child {name!r} already")
        self.name = name


class PartEndedError(ProtoflyError):
    """What an actor stands for has ended, which is no bug here: it is logged without a traceback.

    Args:
        reason: What has ended, and how.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)


class ReplyTwiceError(ProtoflyError):
    """An actor answered one ask twice: a bug of that actor."""

    def __init__(self) -> None:
        super().__init__("this ask has been answered before")


@final
class RestartLimitError(ProtoflyError, public=True):
    """A child crashed too often: its supervisor gives up and says so above.

    Attributes:
        child: Whose crash was one too many; the cause of this error is that crash.
    """

    def __init__(self, supervisor: str, child: str) -> None:
        super().__init__(f"supervisor {supervisor!r} gives up: child {child!r} crashes too often")
        self.supervisor = supervisor
        self.child = child


@final
class TraceDirectoryError(ProtoflyError, public=True):
    """No trace can be kept there: the user must name another directory."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"cannot keep a trace in {path}: {reason}; choose another directory")
        self.path = path
        self.reason = reason
