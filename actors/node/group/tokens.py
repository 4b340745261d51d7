"""The used login tokens of all nodes of a domain: rows of the engine, until the tokens expire."""

from collections.abc import Callable
from pathlib import Path
from typing import Final, final

from typing_extensions import override

from actors.node.login.errors import UsedTokensError
from actors.node.login.used_tokens import UsedTokens
from fsm.session.assertion import SpentTokens, Use
from specs.limits.engine import LEASE_SHORTEST
from specs.limits.node import CLOCK_SKEW
from transports.engine.contract import ConflictError, Engine, EngineDownError

__all__ = ["EngineTokens"]

_PREFIX: Final = "token/"
_WHERE: Final = Path("engine")


@final
class EngineTokens(UsedTokens):
    """A token opens one session at one node of the domain.

    Args:
        engine: The engine.
        wall: Returns the seconds since the epoch, as logins are counted.
    """

    def __init__(self, engine: Engine, wall: Callable[[], float]) -> None:
        self._engine: Final = engine
        self._wall: Final = wall

    @override
    def load(self) -> SpentTokens:
        return SpentTokens()

    @override
    async def keep(self, use: Use, floor: float) -> bool:
        # By the clock of another node, which may be behind, the token is over later.
        lasts = max(use.end - self._wall() + 2 * CLOCK_SKEW, LEASE_SHORTEST)
        try:
            await self._engine.put(f"{_PREFIX}{use.digest.hex()}", b"{}", 0, lasts)
        except ConflictError:
            return False
        except EngineDownError as exc:
            raise UsedTokensError(_WHERE, exc.reason) from exc
        return True

    @override
    def close(self) -> None:
        """The engine is closed by whoever has opened it."""
