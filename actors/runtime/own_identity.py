"""The identity that a runtime shows to nodes and to peers."""

from types import MappingProxyType
from typing import final

import attrs

from actors.keys.key_set import Keys
from actors.keys.runtime_key import RuntimeKey
from specs.limits.node import DOMAINS_KEPT

__all__ = ["OwnIdentity"]


@final
@attrs.define(slots=True, eq=False)
class OwnIdentity:
    """The key of a runtime, and what others have said of that key.

    The node stub writes it at each session; the ends of direct links read it.

    Attributes:
        key: The runtime's key.
        assertion: Token of an identity provider that names the key (`cnf`); None: there is none.
        statement: The domain's statement about runtime and key; None: the node made none.
        domain_keys: Public keys of the own domain; empty: not known.
        foreign_keys: Public keys of other domains, as their nodes have shown them in sessions of
            this runtime, by domain; the newest ones.
    """

    key: RuntimeKey
    assertion: str | None = attrs.field(default=None, repr=False)
    statement: str | None = attrs.field(default=None, repr=False)
    domain_keys: Keys = attrs.field(factory=lambda: MappingProxyType({}), repr=False)
    foreign_keys: dict[str, Keys] = attrs.field(factory=dict, repr=False)

    def learn(self, domain: str, keys: Keys) -> None:
        """Keep the keys of another domain; beyond `DOMAINS_KEPT` the oldest ones go.

        Args:
            domain: The domain.
            keys: Its public keys, as its own node has shown them.
        """
        self.foreign_keys.pop(domain, None)
        self.foreign_keys[domain] = keys
        if len(self.foreign_keys) > DOMAINS_KEPT:
            del self.foreign_keys[next(iter(self.foreign_keys))]
