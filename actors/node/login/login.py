"""Who has to log in at a node, and who vouches for them: what a node is configured with."""

from collections.abc import Callable, Iterable
from enum import StrEnum, unique
from typing import TypeAlias, final

import attrs

from actors.node.login.key_provider import KeyProvider
from actors.node.login.key_source import KeySource
from actors.node.login.provider import IdentityProvider
from fsm.cores.assertion import AssertionTerms
from specs.address import message_node
from specs.limits import SESSION_LIFE

__all__ = ["Admission", "Login", "ProviderMaker", "by_keys", "terms_of"]

ProviderMaker: TypeAlias = Callable[[Callable[[], float]], IdentityProvider]
"""Makes an identity provider; it is given a clock that tells seconds since the epoch."""


@final
@unique
class Admission(StrEnum):
    """Who may open a session."""

    VOUCHED = "who logs in"
    ANYBODY = "anybody; who brings credentials must bring good ones"


@final
@attrs.frozen(kw_only=True)
class Login:
    """How sessions are opened at one node.

    Attributes:
        provider: Who validates credentials; made once for the life of the node.
        admission: Who may come without any.
        life: Seconds a session lives on its credentials.
        clock: Seconds since the epoch, as the world counts them; None: as the node does.
    """

    provider: ProviderMaker
    admission: Admission = Admission.VOUCHED
    life: float = SESSION_LIFE
    clock: Callable[[], float] | None = None


def by_keys(source: KeySource, terms: AssertionTerms) -> ProviderMaker:
    """Let in whoever holds a token that meets the terms and is signed by one of these keys."""
    return lambda clock: KeyProvider(source, terms, clock)


def terms_of(
    domain: str, issuers: Iterable[str] = (), audiences: Iterable[str] = ()
) -> AssertionTerms:
    """Ask for tokens that are meant for a domain.

    Args:
        domain: The domain; as audience, a token has it or the address of its node.
        issuers: Who may have issued it; none: whoever has a key.
        audiences: What else a token may be meant for.
    """
    meant = frozenset({domain, message_node(domain), *audiences})
    return AssertionTerms(meant, frozenset(issuers))
