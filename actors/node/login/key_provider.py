"""The identity provider that verifies tokens with keys of a source."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import final

from typing_extensions import override

from actors.keys.key_source import KeyRing, KeysAwayError, KeySource
from actors.keys.token import BadTokenError, SignedToken, read_token, verified
from actors.kit.log import get_logger
from actors.node.login.errors import (
    LoginRefusedError,
    ProviderAwayError,
    UsedTokensError,
)
from actors.node.login.provider import IdentityProvider, ProviderMaker
from actors.node.login.used_tokens import UsedTokens
from fsm.session.assertion import (
    USED,
    AssertionCore,
    AssertionTerms,
    SpentTokens,
    Unacceptable,
    Use,
)
from specs.addresses.address import message_node
from specs.identity import Identity
from specs.jsonvalue import JsonObject
from specs.limits.node import (
    TOKEN_LIFE,
)

__all__ = ["KeyProvider", "by_keys", "terms_of"]

_log = get_logger("actors.node")


@final
class KeyProvider(IdentityProvider):
    """Verifies tokens by keys, judges what they claim, and takes each of them once.

    Args:
        clock: Seconds since the epoch, as the world counts them.
    """

    def __init__(
        self, source: KeySource, terms: AssertionTerms, clock: Callable[[], float]
    ) -> None:
        self._ring = KeyRing(source)
        self._terms = terms
        self._spent = SpentTokens()
        self._core = AssertionCore(terms, self._spent)
        self._clock = clock
        self._used: UsedTokens | None = None

    @override
    def remember(self, used: UsedTokens) -> None:
        self._used = used
        self._spent = used.load()
        self._core = AssertionCore(self._terms, self._spent)

    @override
    async def validate(self, assertion: str, key: str | None) -> Identity:
        try:
            token = read_token(assertion)
            claims = await self._verified(token)
        except BadTokenError as exc:
            raise LoginRefusedError(str(exc)) from exc
        except KeysAwayError as exc:
            raise ProviderAwayError(exc.reason) from exc
        verdict = self._core.judge(claims, token.digest, self._clock(), key)
        if isinstance(verdict, Unacceptable):
            raise _refused(verdict.why)
        # Before the answer: a token whose answer is lost when the node is killed stays used.
        if not await self._is_first(verdict.use):
            raise _refused(USED)
        return verdict.identity

    async def _verified(self, token: SignedToken) -> JsonObject:
        keys = await self._ring.keys_for(token.key_name)
        try:
            return verified(token, keys)
        except BadTokenError:
            # Without a name of a key only this shows that there may be a new one.
            newer = await self._ring.newer() if token.key_name is None else None
            if newer is None:
                raise
            return verified(token, newer)

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
        try:
            await self._ring.aclose()
        finally:
            if self._used is not None:
                self._used.close()


def _refused(why: str) -> LoginRefusedError:
    return LoginRefusedError(str(BadTokenError(why)))


def by_keys(source: KeySource, terms: AssertionTerms) -> ProviderMaker:
    """Accept tokens that meet the terms and are signed by one of these keys.

    Args:
        source: Source of the keys.
        terms: Conditions on tokens.
    """
    return partial(KeyProvider, source, terms)


def terms_of(
    domain: str,
    issuers: Iterable[str] = (),
    audiences: Iterable[str] = (),
    clients: Iterable[str] = (),
    life: float = TOKEN_LIFE,
) -> AssertionTerms:
    """Ask for tokens that are meant for a domain.

    Args:
        domain: The domain; as audience, a token has it or the address of its node.
        issuers: The accepted issuers; none: every holder of a key.
        audiences: What else a token may be meant for.
        clients: The accepted clients that tokens say they were issued to.
        life: Seconds a token may live.
    """
    meant = frozenset({domain, message_node(domain), *audiences})
    return AssertionTerms(meant, frozenset(issuers), frozenset(clients), life)
