"""An identity provider that verifies tokens with the keys of a source."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial

from typing_extensions import override

from actors.keys.key_set import Keys
from actors.keys.key_source import KeyRing, KeysAwayError, KeySource
from actors.keys.token import BadTokenError, SignedToken, read_token, read_verified
from actors.kit.log import get_logger
from actors.node.login import provider
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
from specs.jsonvalue import Json, JsonObject
from specs.limits import node

_log = get_logger("actors.node")


class KeyProvider(provider.IdentityProvider):
    """Verify tokens by keys, judge their claims, and accept each token once.

    A token is verified by keys of its issuer only (RFC 8725, 3.8).

    Args:
        source: Source of the keys of each issuer; or the only source, whose keys name their
            issuers if the terms accept several.
        terms: Conditions on tokens.
        clock: Returns the seconds since the epoch.
    """

    def __init__(
        self,
        source: KeySource | Mapping[str, KeySource],
        terms: AssertionTerms,
        clock: Callable[[], float],
    ) -> None:
        self._only: KeyRing | None = None
        self._rings: dict[str, KeyRing] = {}
        if isinstance(source, KeySource):
            self._only = KeyRing(source)
        else:
            self._rings = {issuer: KeyRing(own) for issuer, own in source.items()}
        self._is_shared = self._only is not None and len(terms.issuers) > 1
        self._terms = terms
        self._spent = SpentTokens()
        self._core = AssertionCore(terms, self._spent)
        self._clock = clock
        self._used: provider.UsedTokens | None = None

    @override
    def remember(self, used: provider.UsedTokens) -> None:
        self._used = used
        self._spent = used.load()
        self._core = AssertionCore(self._terms, self._spent)

    @override
    async def validate(self, assertion: str, key: str | None) -> Identity:
        try:
            token = read_token(assertion)
            claims, keys = await self._verify(token)
        except BadTokenError as exc:
            raise provider.LoginRefusedError(str(exc)) from exc
        except KeysAwayError as exc:
            raise provider.ProviderAwayError(exc.reason) from exc
        verdict = self._core.judge(
            claims, token.digest, self._clock(), key, is_one_of_several=_are_of_several(keys)
        )
        if isinstance(verdict, Unacceptable):
            raise _refusal(verdict.why, verdict.after)
        # Store the use before the answer: if the node is killed, the token stays used.
        if not await self._is_first(verdict.use):
            raise _refusal(USED)
        return verdict.identity

    async def _verify(self, token: SignedToken) -> tuple[JsonObject, Keys]:
        """Return the claims of a token, and the key set that verified it."""
        ring = self._ring_of(token.claims.get("iss"))
        keys = await ring.keys_for(token.key_name)
        try:
            return read_verified(token, keys, is_shared=self._is_shared), keys
        except BadTokenError:
            # Without a key name, only this failure shows that there may be a new key.
            newer = await ring.newer() if token.key_name is None else None
            if newer is None:
                raise
            return read_verified(token, newer, is_shared=self._is_shared), newer

    def _ring_of(self, issuer: Json) -> KeyRing:
        if self._only is not None:
            return self._only
        ring = self._rings.get(issuer) if isinstance(issuer, str) else None
        if ring is None:
            raise BadTokenError("this node does not trust its issuer")
        return ring

    async def _is_first(self, use: Use) -> bool:
        if self._used is None:
            return True
        is_kept = False
        try:
            is_first = await self._used.keep(use, self._spent.floor)
            is_kept = True
        except provider.UsedTokensError as exc:
            _log.warning("used tokens cannot be written", path=str(exc.where), why=exc.reason)
            raise provider.ProviderAwayError("used tokens cannot be written down") from exc
        finally:
            if not is_kept:
                # The token is valid: its bearer may show it again.
                self._spent.give_back(use)
        return is_first

    @override
    async def why_not(self) -> str | None:
        why = None
        for ring in self._all():
            why = await ring.why_not()
            if why is None:
                break
        return why

    @override
    async def aclose(self) -> None:
        try:
            for ring in self._all():
                await ring.aclose()
        finally:
            if self._used is not None:
                self._used.close()

    def _all(self) -> Iterable[KeyRing]:
        return self._rings.values() if self._only is None else [self._only]


def _are_of_several(keys: Keys) -> bool:
    return len({key.issuer for key in keys.values()}) > 1


def _refusal(why: str, retry_after: float | None = None) -> provider.LoginRefusedError:
    return provider.LoginRefusedError(str(BadTokenError(why)), retry_after)


def by_keys(
    source: KeySource | Mapping[str, KeySource], terms: AssertionTerms
) -> provider.ProviderMaker:
    """Return a provider that accepts tokens which meet the terms and have a valid signature.

    Args:
        source: Source of the keys of each issuer, by its name; or one source for all, whose keys
            have the names of their issuers beside them (`iss`) if the terms name several.
        terms: Conditions on tokens.

    Raises:
        ValueError: The issuers of the sources and of the terms differ.
    """
    if not isinstance(source, KeySource) and source.keys() != terms.issuers:
        raise ValueError("each accepted issuer has a source of keys, and no other has one")
    return partial(KeyProvider, source, terms)


def terms_of(
    domain: str,
    issuers: Iterable[str] = (),
    audiences: Iterable[str] = (),
    clients: Iterable[str] = (),
    life: float = node.TOKEN_LIFE,
) -> AssertionTerms:
    """Return the terms for tokens that are meant for a domain.

    Args:
        domain: The domain; as audience, a token has it or the address of its node.
        issuers: The accepted issuers; none: every holder of a key.
        audiences: Other accepted audiences of a token.
        clients: The accepted clients that tokens say they were issued to.
        life: Seconds a token may live.
    """
    meant = frozenset({domain, message_node(domain), *audiences})
    return AssertionTerms(meant, frozenset(issuers), frozenset(clients), life)
