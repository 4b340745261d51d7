"""Login by tokens that are verified with a set of keys, ready to be put into a `Login`."""

from collections.abc import Iterable

from actors.node.login.key_provider import KeyProvider
from actors.node.login.key_source import KeySource
from actors.node.login.login import ProviderMaker
from actors.node.login.used_tokens import UsedTokenFile
from fsm.session.assertion import AssertionTerms
from specs.addresses.address import message_node

__all__ = ["by_keys", "terms_of"]


def by_keys(
    source: KeySource, terms: AssertionTerms, used: UsedTokenFile | None = None
) -> ProviderMaker:
    """Let in whoever holds a token that meets the terms and is signed by one of these keys.

    Args:
        source: Where the keys come from.
        terms: What is asked of a token.
        used: Where used tokens are written down; None: they are forgotten with the node.
    """
    return lambda clock: KeyProvider(source, terms, clock, used)


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
