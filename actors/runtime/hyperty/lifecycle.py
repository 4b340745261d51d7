"""The lifecycle of a deployed hyperty through all its restarts, as its handle shows it."""

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
    """The state of a deployed hyperty."""

    RUNNING = "running"
    """It handles messages, or is being made anew after a crash."""
    UNDEPLOYED = "undeployed"
    """It was undeployed, or its runtime has closed."""
    FAILED = "failed"
    """It crashed more often than restarts are allowed, and the runtime has undeployed it."""


@final
class HypertyFailedError(ProtoflyError):
    """A hyperty crashed too often, and its runtime has given it up.

    Attributes:
        url: Its address.
        name: Its name, as it was deployed.
        cause: The exception of its last crash.
    """

    def __init__(self, url: str, name: str, cause: Exception) -> None:
        # Also of an exception that cannot be put into words itself.
        last = "".join(format_exception_only(cause)).strip()
        super().__init__(f"hyperty {name!r} at {url} was given up, it crashes too often: {last}")
        self.url = url
        self.name = name
        self.cause = cause


class Faults(ABC):
    """Records what the handlers of one hyperty raise."""

    @abstractmethod
    def raised(self, error: Exception, handler: str) -> str:
        """Record an exception of a handler; never waits or raises.

        Args:
            error: The exception.
            handler: What was handled, for people.

        Returns:
            The correlation id under which the log has the exception.
        """


@final
class Lifecycle(Faults):
    """The lifecycle of one hyperty.

    Args:
        name: Its name, as it was deployed.
        entropy: Source of random bytes, for correlation ids.
        monitor: Gets each exception of a handler, too.

    Attributes:
        url: Its address; empty before it has one.
        state: Its state.
        errors: Number of exceptions of its handlers so far.
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

    def noted(self, correlation: str, handler: str, **fields: object) -> None:
        """Count and log an exception of a handler.

        Args:
            correlation: The correlation id.
            handler: What was handled, for people.
            fields: Further fields of the log line.
        """
        self.errors += 1
        _log.error(
            "handler failed",
            hyperty=self.name,
            url=self.url,
            handler=handler,
            correlation=correlation,
            **fields,
        )

    def given_up(self, crash: Exception) -> HypertyFailedError:
        """End the lifecycle as failed after its last crash; return the error that says so."""
        last = crash.__cause__ if isinstance(crash, RestartLimitError) else crash
        cause = last if isinstance(last, Exception) else crash
        self._failure = HypertyFailedError(self.url, self.name, cause)
        self._failure.__cause__ = cause
        _log.error("hyperty given up", hyperty=self.name, url=self.url, exc_info=cause)
        self._end(HypertyState.FAILED)
        return self._failure

    def undeployed(self) -> None:
        """End the lifecycle as undeployed. Idempotent; a failed one stays failed."""
        if self.state is HypertyState.RUNNING:
            self._end(HypertyState.UNDEPLOYED)

    def _end(self, state: HypertyState) -> None:
        self.state = state
        self._ended.set()

    async def ended(self) -> HypertyFailedError | None:
        """Wait until the hyperty does not run any more.

        If cancelled, only the wait ends.

        Returns:
            The error of a hyperty that was given up; None if it was undeployed.
        """
        await self._ended.wait()
        return self._failure
