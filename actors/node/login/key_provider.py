"""The identity provider that is a set of keys: whoever holds a token signed by one is let in."""

from collections.abc import Callable
from typing import final

from typing_extensions import override

from actors.node.login.errors import (
    BadTokenError,
    KeysAwayError,
    LoginRefusedError,
    ProviderAwayError,
)
from actors.node.login.key_ring import KeyRing
from actors.node.login.key_source import KeySource
from actors.node.login.provider import IdentityProvider
from actors.node.login.token import read_token, verified
from fsm.cores.assertion import AssertionCore, AssertionTerms, Unacceptable
from specs.identity import Identity

__all__ = ["KeyProvider"]


@final
class KeyProvider(IdentityProvider):
    """Verifies tokens by keys, judges what they claim, and takes each of them once.

    Args:
        source: Where the keys come from.
        terms: What is asked of a token.
        clock: Seconds since the epoch, as the world counts them.
    """

    def __init__(
        self, source: KeySource, terms: AssertionTerms, clock: Callable[[], float]
    ) -> None:
        self._ring = KeyRing(source)
        self._core = AssertionCore(terms)
        self._clock = clock

    @override
    async def validate(self, assertion: str) -> Identity:
        try:
            token = read_token(assertion)
            claims = verified(token, await self._ring.keys_for(token.key_name))
        except BadTokenError as exc:
            raise LoginRefusedError(exc.reason) from exc
        except KeysAwayError as exc:
            raise ProviderAwayError(exc.reason) from exc
        verdict = self._core.judge(claims, self._clock())
        if isinstance(verdict, Unacceptable):
            raise LoginRefusedError(verdict.why)
        return verdict

    @override
    async def why_not(self) -> str | None:
        return await self._ring.why_not()

    @override
    async def aclose(self) -> None:
        await self._ring.aclose()
