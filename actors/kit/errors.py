"""The errors of the kit: an actor has ended, a supervisor gives up, a trace cannot be kept."""

from pathlib import Path
from typing import final

from specs.errors import ProtoflyError


@final
class ActorStoppedError(ProtoflyError, public=True):
    """The actor has stopped, or stopped before it answered.

    Also raised by a restart: the messages that the actor was handling are lost, and the cause of
    this error is the exception of the crash.
    """

    def __init__(self, name: str) -> None:
        super().__init__(f"actor {name!r} has stopped")
        self.name = name


class NameTakenError(ProtoflyError):
    """A supervisor already has a child of this name: a bug of the caller."""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is a child {name!r} already")
        self.name = name


@final
class NotTrioError(ProtoflyError, RuntimeError, public=True):
    """A node or runtime is opened by a coroutine that does not run on Trio."""

    def __init__(self) -> None:
        super().__init__(
            "this coroutine does not run on Trio: start the program by trio.run, or, in a program "
            "on asyncio, take open_node and open_runtime of actors.aio (docs/asyncio.md)"
        )


class PartEndedError(ProtoflyError):
    """A component whose lifetime an actor manages has ended, which is logged without a traceback.

    Args:
        reason: Why the component has ended.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)


class ReplyTwiceError(ProtoflyError):
    """An actor answered the same request twice: a bug of that actor."""

    def __init__(self) -> None:
        super().__init__("this ask has been answered before")


@final
class RestartLimitError(ProtoflyError, public=True):
    """A child actor crashed too often, so its supervisor stops.

    Attributes:
        supervisor: Name of the supervisor.
        child: Name of the child; the cause of this error is its last crash.
    """

    def __init__(self, supervisor: str, child: str) -> None:
        super().__init__(f"supervisor {supervisor!r} gives up: child {child!r} crashes too often")
        self.supervisor = supervisor
        self.child = child


@final
class TraceDirectoryError(ProtoflyError, public=True):
    """No trace can be written to a directory; the user must name another directory."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"cannot keep a trace in {path}: {reason}; choose another directory")
        self.path = path
        self.reason = reason
