"""The statements of a domain about its runtimes and their keys, as its node signs them."""

from collections.abc import Callable, Sequence
from typing import Final, final

from actors.keys.signing import SigningKey
from actors.keys.token import Statement, write_statement
from actors.node.session.session import Session
from specs.addresses.address import domain_of
from specs.jsonvalue import Json, JsonObject
from specs.limits.node import STATEMENT_LIFE


def key_set(keys: Sequence[SigningKey]) -> JsonObject:
    """Return the public parts of keys as a JSON Web Key Set."""
    entries: list[Json] = [one.public() for one in keys]
    return {"keys": entries}


@final
class Statements:
    """Signs what a domain states.

    Args:
        domain: The domain.
        keys: The keys of the domain; the first one signs.
        clock: Seconds since the epoch, as logins are counted.

    Attributes:
        clock: As above.
        keys: The public keys, as a JSON Web Key Set.
    """

    def __init__(self, domain: str, keys: Sequence[SigningKey], clock: Callable[[], float]) -> None:
        self.clock: Final = clock
        self.keys: Final = key_set(keys)
        self._domain = domain
        self._key = keys[0]

    def about(self, session: Session) -> str | None:
        """Sign a statement about the runtime of a session; None: it has proven no key.

        Only runtimes of the domain are spoken for.

        Args:
            session: The session.
        """
        thumbprint, runtime = session.core.key, session.core.runtime
        if thumbprint is None or domain_of(runtime) != self._domain:
            return None
        now, identity = self.clock(), session.identity
        until = now + STATEMENT_LIFE
        said = Statement(
            domain=self._domain,
            runtime=runtime,
            thumbprint=thumbprint,
            issued=now,
            until=until if identity is None else min(until, identity.until),
            user=None if identity is None else identity.user,
            issuer=None if identity is None else identity.issuer,
        )
        return write_statement(said, self._key)
