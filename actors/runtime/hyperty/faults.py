"""Where the exceptions of a hyperty's handlers go: to its lifecycle, or out of its sandbox."""

from abc import ABC, abstractmethod


class Faults(ABC):
    """Records what the handlers of one hyperty raise."""

    @abstractmethod
    def raised(self, error: Exception, handler: str) -> str:
        """Record an exception of a handler; never waits or raises.

        Args:
            error: The exception.
            handler: What was handled, for people.

        Returns:
            The correlation id under which the log has the exception, unless there are too many.
        """
