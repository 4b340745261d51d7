"""The key of a runtime and statements about it, by which nodes and peers verify the runtime."""

from types import MappingProxyType

import attrs

from actors.keys.key_set import Keys
from actors.keys.runtime_key import RuntimeKey
from actors.keys.token import BadStatementError, read_statement
from specs.limits.node import DOMAINS_KEPT


@attrs.define(slots=True, eq=False)
class OwnIdentity:
    """The key of a runtime, and the statements of others about that key.

    The node stub updates the statements at each session; the ends of direct links read them.

    Attributes:
        key: The runtime's key.
        assertion: Token of an identity provider that names the key (`cnf`); None: there is none.
        statement: The domain's statement about runtime and key; None: the node made none.
        domain_keys: Public keys of the own domain; empty: they are not known.
        foreign_keys: Public keys of other domains, by domain: from their signed descriptors,
            else from their nodes in sessions of this runtime.
    """

    key: RuntimeKey
    assertion: str | None = attrs.field(default=None, repr=False)
    statement: str | None = attrs.field(default=None, repr=False)
    domain_keys: Keys = attrs.field(factory=lambda: MappingProxyType({}), repr=False)
    foreign_keys: dict[str, Keys] = attrs.field(factory=dict, repr=False)
    _signed: set[str] = attrs.field(factory=set, repr=False)

    def state(self, statement: str, keys: Keys, runtime: str, domain: str) -> float:
        """Verify and store the own domain's statement about the runtime's key.

        Args:
            statement: The signed statement.
            keys: Public keys of the domain.
            runtime: Address of this runtime.
            domain: Its domain.

        Returns:
            Seconds for which the statement is valid, by the clock of the domain.

        Raises:
            BadStatementError: The domain has not signed it, or it names another runtime or key.
        """
        verified = read_statement(statement, domain, keys, None)
        if (verified.runtime, verified.thumbprint) != (runtime, self.key.thumbprint):
            raise BadStatementError("it is about another runtime or another key")
        self.statement, self.domain_keys = statement, keys
        return verified.until - verified.issued

    def learn(self, domain: str, keys: Keys, *, is_signed: bool) -> None:
        """Store the keys of another domain; beyond `DOMAINS_KEPT` domains the oldest is removed.

        Args:
            domain: The domain.
            keys: Its public keys.
            is_signed: Whether they come from its signed descriptor; keys that its node sends do
                not replace signed ones.
        """
        if domain in self._signed and not is_signed:
            return
        self.foreign_keys.pop(domain, None)
        self.foreign_keys[domain] = keys
        if is_signed:
            self._signed.add(domain)
        if len(self.foreign_keys) > DOMAINS_KEPT:
            oldest = next(iter(self.foreign_keys))
            del self.foreign_keys[oldest]
            self._signed.discard(oldest)
