"""What a stub in a sandbox logs in with: asked of its keeper at each open of a session."""

from itertools import count
from typing import final

import trio
from typing_extensions import override

from actors.pipe.outlet import Outlet
from actors.pipe.said import Said, Word
from actors.runtime.stubs.credentials import Credentials
from specs.limits.protocol import OPEN_TIMEOUT

__all__ = ["PipeCredentials"]


@final
class PipeCredentials(Credentials):
    """Nothing is kept in the sandbox: a token opens one session, and its file moves on."""

    def __init__(self, outlet: Outlet) -> None:
        self._outlet = outlet
        self._numbers = count(1)
        self._number = 0
        self._token: str | None = None
        self._told = trio.Event()

    @override
    async def fresh(self) -> str | None:
        self._number, self._token, self._told = next(self._numbers), None, trio.Event()
        with trio.move_on_after(OPEN_TIMEOUT):
            await self._outlet.send(Said(Word.LOGIN, self._number))
            await self._told.wait()
        return self._token

    def heard(self, said: Said) -> None:
        """Take the keeper's answer; one that nobody waits for any more is let go of."""
        if said.number == self._number:
            self._token = said.text or None
            self._told.set()
