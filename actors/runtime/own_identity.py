"""The identity that a runtime shows to nodes and to peers."""

from types import MappingProxyType

import attrs

from actors.keys.key_set import Keys
from actors.keys.runtime_key import RuntimeKey
from actors.keys.token import BadStatementError, read_statement
from specs.limits.node import DOMAINS_KEPT


@attrs.define(slots=True, eq=False)
class OwnIdentity:
    """The key of a runtime, and what others have said of that key.

    The node stub writes it at each session; the ends of direct links read it.

    Attributes:
        key: The runtime's key.
        assertion: Token of an identity provider that names the key (`cnf`); None: there is none.
        statement: The domain's statement about runtime and key; None: the node made none.
        domain_keys: Public keys of the own domain; empty: not known.
        foreign_keys: Public keys of other domains, by domain: those of their signed descriptors,
            else those that their nodes have shown in sessions of this runtime.
    """

    key: RuntimeKey
    assertion: str | None = attrs.field(default=None, repr=False)
    statement: str | None = attrs.field(default=None, repr=False)
    domain_keys: Keys = attrs.field(factory=lambda: MappingProxyType({}), repr=False)
    foreign_keys: dict[str, Keys] = attrs.field(factory=dict, repr=False)
    _signed: set[str] = attrs.field(factory=set, repr=False)

    def state(self, statement: str, keys: Keys, runtime: str, domain: str) -> float:
        """Keep what the own domain states of the key, once it is verified.

        Args:
            statement: The statement.
            keys: Public keys of the domain.
            runtime: Address of this runtime.
            domain: Its domain.

        Returns:
            Seconds for which the statement is good, as the domain counts them.

        Raises:
            BadStatementError: It is not of the domain, or about another runtime or key.
        """
        said = read_statement(statement, domain, keys, None)
        if (said.runtime, said.thumbprint) != (runtime, self.key.thumbprint):
            raise BadStatementError("it is about another runtime or another key")
        self.statement, self.domain_keys = statement, keys
        return said.until - said.issued

    def learn(self, domain: str, keys: Keys, *, is_signed: bool) -> None:
        """Keep the keys of another domain; beyond `DOMAINS_KEPT` the oldest ones go.

        Args:
            domain: The domain.
            keys: Its public keys.
            is_signed: Whether they are of its signed descriptor; what its node shows does not
                replace those.
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
