"""The life of a deployed hyperty, through all its restarts: what its handle shows of it."""

import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable
from enum import StrEnum
from traceback import format_exception_only
from typing import Final, final

import structlog
import trio
from typing_extensions import override

from actors.kit.errors import RestartLimitError
from actors.kit.supervision.monitor import Monitor
from specs.errors import ProtoflyError

__all__ = ["Faults", "HypertyFailedError", "HypertyState", "Lifecycle"]

_log = structlog.get_logger("actors.runtime")

_ID_BYTES: Final = 6


@final
class HypertyState(StrEnum):
    """What has become of a deployed hyperty."""

    RUNNING = "running"
    """It takes messages, or is on its way back after a crash."""
    UNDEPLOYED = "undeployed"
    """It was undeployed, or its runtime has ended."""
    FAILED = "failed"
    """It crashed more often than it is started again, and the runtime has undeployed it."""


@final
class HypertyFailedError(ProtoflyError):
    """A hyperty crashed too often: its runtime has given it up.

    Attributes:
        url: Its address.
        name: Its name, as it was deployed.
        cause: What it crashed with last.
    """

    def __init__(self, url: str, name: str, cause: Exception) -> None:
        # Also of an exception that cannot be put into words itself.
        told = "".join(format_exception_only(cause)).strip()
        super().__init__(f"hyperty {name!r} at {url} was given up, it crashes too often: {told}")
        self.url = url
        self.name = name
        self.cause = cause


class Faults(ABC):
    """Takes what the handlers of one hyperty raise."""

    @abstractmethod
    def raised(self, error: Exception, handler: str) -> str:
        """Put an exception of a handler on record; never waits or raises.

        Args:
            error: The exception.
            handler: What was handled, for people.

        Returns:
            The correlation id under which it stands in the log.
        """


@final
class Lifecycle(Faults):
    """The life of one hyperty.

    Args:
        name: As it was deployed.
        entropy: Source of random bytes, for correlation ids.
        monitor: Hears what its handlers raise, too.

    Attributes:
        url: Its address; empty before it has one.
        state: What has become of it.
        errors: Exceptions of its handlers so far.
    """

    def __init__(
        self,
        name: str = "hyperty",
        entropy: Callable[[int], bytes] = secrets.token_bytes,
        monitor: Monitor | None = None,
    ) -> None:
        self.name: Final = name
        self.url = ""
        self.state = HypertyState.RUNNING
        self.errors = 0
        self._entropy = entropy
        self._monitor = monitor
        self._failure: HypertyFailedError | None = None
        self._ended = trio.Event()

    @override
    def raised(self, error: Exception, handler: str) -> str:
        correlation = self._entropy(_ID_BYTES).hex()
        if self._monitor is not None:
            self._monitor.crashed(self.url, error)
        self.noted(correlation, handler, exc_info=error)
        return correlation

    def noted(self, correlation: str, handler: str, **told: object) -> None:
        """Count and log an exception of a handler."""
        self.errors += 1
        _log.error(
            "handler failed",
            hyperty=self.name,
            url=self.url,
            handler=handler,
            correlation=correlation,
            **told,
        )

    def given_up(self, crash: Exception) -> HypertyFailedError:
        """End it: it crashed too often. Return the error that says so."""
        last = crash.__cause__ if isinstance(crash, RestartLimitError) else crash
        cause = last if isinstance(last, Exception) else crash
        self._failure = HypertyFailedError(self.url, self.name, cause)
        self._failure.__cause__ = cause
        _log.error("hyperty given up", hyperty=self.name, url=self.url, exc_info=cause)
        self._end(HypertyState.FAILED)
        return self._failure

    def undeployed(self) -> None:
        """End it: it is not there any more. Repeated is fine."""
        if self.state is HypertyState.RUNNING:
            self._end(HypertyState.UNDEPLOYED)

    def _end(self, state: HypertyState) -> None:
        self.state = state
        self._ended.set()

    async def ended(self) -> HypertyFailedError | None:
        """Wait until it is over; return why, unless it was undeployed."""
        await self._ended.wait()
        return self._failure
