"""What the handlers of a hyperty in a sandbox raise: told to its keeper, which logs it."""

import secrets
from traceback import format_exception
from typing import Final, final

from typing_extensions import override

from actors.pipe.outlet import Outlet
from actors.pipe.said import Said, Word
from actors.runtime.hyperty.lifecycle import Faults
from specs.limits.isolation import ROOM_FAULT, ROOM_REASON

__all__ = ["PipeFaults"]

_ID_BYTES: Final = 6


@final
class PipeFaults(Faults):
    """Tells of each exception by the pipe, ahead of the answer that names it."""

    def __init__(self, outlet: Outlet) -> None:
        self._outlet = outlet

    @override
    def raised(self, error: Exception, handler: str) -> str:
        correlation = secrets.token_hex(_ID_BYTES)
        lines = "".join(format_exception(error)).encode(errors="replace")
        told = {"handler": handler[:ROOM_REASON]}
        self._outlet.put(Said(Word.FAULT, 0, correlation, {**told}, lines[-ROOM_FAULT:]))
        return correlation
