"""`python -m actors token`: keys and login tokens, for development."""

from types import MappingProxyType
from typing import Final

from actors.cli.group import subgroup

_SUMMARIES: Final = MappingProxyType(
    {
        "keys": "Make a key that signs, and the set of public keys.",
        "key": "Show the thumbprint of a runtime's key, made if it is not there.",
        "issue": "Make a token and print it.",
        "show": "Show what a token claims, and why a node would refuse it.",
    }
)

command = subgroup(
    "token",
    _SUMMARIES,
    """Make keys and login tokens for development.

    A node started with --jwks takes such tokens; in production an identity provider
    makes them. Keys for EdDSA sign catalogues, too.
    """,
)
