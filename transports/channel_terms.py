"""The terms of one end of a data channel."""

from typing import final

import attrs

from specs.bodies.session import IceServer
from transports.tls import OwnCertificate


@final
@attrs.frozen(slots=True)
class ChannelTerms:
    """The terms of one end of a data channel.

    Attributes:
        certificate: Certificate of DTLS; its key is on the curve P-256.
        host: Address of this machine at which it has its sockets; a wildcard: each of them.
        offer: The session description that it answers; None: it makes the offer.
        servers: Servers of STUN and TURN; the first one of each sort is used.
        relay_only: Whether nothing but a server of TURN is used, so that no peer learns an address
            of this machine.
    """

    certificate: OwnCertificate
    host: str
    offer: str | None = None
    servers: tuple[IceServer, ...] = ()
    relay_only: bool = False
