"""The identity provider that is a set of keys: whoever holds a token signed by one is let in."""

from collections.abc import Callable
from typing import final

import structlog
from typing_extensions import override

from actors.node.login.errors import (
    BadTokenError,
    KeysAwayError,
    LoginRefusedError,
    ProviderAwayError,
    UsedTokensError,
)
from actors.node.login.key_ring import KeyRing
from actors.node.login.key_source import KeySource
from actors.node.login.provider import IdentityProvider
from actors.node.login.token import read_token, verified
from actors.node.login.used_tokens import UsedTokenFile
from fsm.session.assertion import USED, AssertionCore, AssertionTerms, Unacceptable
from fsm.session.spent_tokens import SpentTokens, Use
from specs.identity import Identity

__all__ = ["KeyProvider"]

_log = structlog.get_logger("actors.node")


@final
class KeyProvider(IdentityProvider):
    """Verifies tokens by keys, judges what they claim, and takes each of them once.

    Args:
        source: Where the keys come from.
        terms: What is asked of a token.
        clock: Seconds since the epoch, as the world counts them.
        used: Where used tokens are written down; None: nowhere.

    Raises:
        UsedTokensError: There, nothing can be written down.
    """

    def __init__(
        self,
        source: KeySource,
        terms: AssertionTerms,
        clock: Callable[[], float],
        used: UsedTokenFile | None = None,
    ) -> None:
        self._ring = KeyRing(source)
        self._spent = SpentTokens() if used is None else used.load()
        self._core = AssertionCore(terms, self._spent)
        self._clock = clock
        self._used = used

    @override
    async def validate(self, assertion: str) -> Identity:
        try:
            token = read_token(assertion)
            claims = verified(token, await self._ring.keys_for(token.key_name))
        except BadTokenError as exc:
            raise LoginRefusedError(str(exc)) from exc
        except KeysAwayError as exc:
            raise ProviderAwayError(exc.reason) from exc
        verdict = self._core.judge(claims, self._clock())
        if isinstance(verdict, Unacceptable):
            raise _refused(verdict.why)
        # Before anybody is told: what is on its way out when the node is killed stays used.
        if not await self._is_first(verdict.use):
            raise _refused(USED)
        return verdict.identity

    async def _is_first(self, use: Use) -> bool:
        if self._used is None:
            return True
        try:
            return await self._used.keep(use, self._spent.floor)
        except UsedTokensError as exc:
            _log.warning("used tokens cannot be written", why=exc.reason)
            raise ProviderAwayError("used tokens cannot be written down") from exc

    @override
    async def why_not(self) -> str | None:
        return await self._ring.why_not()

    @override
    async def aclose(self) -> None:
        await self._ring.aclose()
        if self._used is not None:
            self._used.close()


def _refused(why: str) -> LoginRefusedError:
    return LoginRefusedError(str(BadTokenError(why)))
