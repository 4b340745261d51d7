"""The errors of a NATS client.

ProtoflyError
├─ NatsError         the server breaks its protocol, refuses, or is gone
└─ CredentialsError  a file of credentials cannot be used: the operator acts
"""

from typing import ClassVar, final

from specs.errors import PlaceError, ProtoflyError


@final
class NatsError(ProtoflyError):
    """A server cannot be used; the text says why, as half a sentence."""


@final
class CredentialsError(PlaceError):
    """A file of credentials cannot be used."""

    summary: ClassVar[str] = "cannot use the credentials in {}"
