"""The end of a process that does not end by itself: after so long, whatever hangs is left."""

import os
import threading
from typing import final

from actors.cli.exit_code import ExitCode

__all__ = ["Fuse"]


@final
class Fuse:
    """Ends the process, without ceremony, when it has burnt down.

    Cancelling does not free who waits for a thread, and a shield outlasts it; a disk that
    hangs must not keep a process that was told to go. The timer is a thread of its own, so
    that not even a loop that is stuck keeps it.
    """

    def __init__(self) -> None:
        self._timer: threading.Timer | None = None

    def light(self, seconds: float, code: ExitCode, why: str) -> None:
        """End the process after so long; a fuse that burns already is replaced.

        Args:
            seconds: Of the system's clock, whatever the clock of Trio.
            code: The exit status.
            why: The last line on standard error.
        """
        self.put_out()
        self._timer = threading.Timer(seconds, _blow, (code, why))
        self._timer.daemon = True
        self._timer.start()

    def put_out(self) -> None:
        """Let the process live: it ends by itself."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _blow(code: ExitCode, why: str) -> None:
    # Past all buffers and locks: whoever holds them may be what hangs.
    os.write(2, f"protofly: {why}\n".encode())
    os._exit(code)
