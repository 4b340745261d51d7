"""What the process of WebRTC is told about one connection, as it is written to it."""

import re
from collections.abc import Iterable
from typing import Final, final

import attrs
import orjson

from specs.bodies.session import IceServer
from transports.channel_terms import ChannelTerms

_URL: Final = re.compile(
    r"(stun|turns?):(?:\[([0-9A-Fa-f:.]{2,45})\]|([A-Za-z0-9.-]{1,253}))(?::([0-9]{1,5}))?"
    r"(?:\?transport=(udp|tcp))?\Z"
)
_PORTS: Final = {"stun": 3478, "turn": 3478, "turns": 5349}
_MOST: Final = 65_535


@final
@attrs.frozen(slots=True)
class WorkerTerms:
    """The terms of one end of a data channel, as `aiortc` understands them.

    Attributes:
        certificate: Certificate of DTLS and its private key, in PEM form.
        host: Address at which the end has its sockets; a wildcard: all of this machine.
        offer: The session description that it answers; None: it makes the offer.
        relay_only: Whether it uses no candidates but those of the server of TURN.
        stun_server: Host and port of the server of STUN; None: there is none.
        turn_server: Host and port of the server of TURN; None: there is none.
    """

    certificate: str = attrs.field(repr=False)
    host: str
    offer: str | None = None
    relay_only: bool = False
    stun_server: tuple[str, int] | None = None
    turn_server: tuple[str, int] | None = None
    turn_username: str | None = None
    turn_password: str | None = attrs.field(default=None, repr=False)
    turn_tls: bool = False
    turn_transport: str = "udp"


@final
@attrs.frozen(slots=True)
class _Server:
    scheme: str
    place: tuple[str, int]
    transport: str
    server: IceServer


def _read(servers: Iterable[IceServer]) -> Iterable[_Server]:
    """Return the servers that can be used; a broker may name others, too."""
    for server in servers:
        for url in server.urls:
            found = _URL.match(url)
            if found is None:
                continue
            scheme, port = found[1], int(found[4] or _PORTS[found[1]])
            transport = found[5] or ("tcp" if scheme == "turns" else "udp")
            if 0 < port <= _MOST and (scheme, transport) != ("turns", "udp"):
                yield _Server(scheme, (found[2] or found[3], port), transport, server)


def write_terms(terms: ChannelTerms) -> bytes:
    """Write the terms of one end of a data channel for the process of WebRTC."""
    worker = WorkerTerms(terms.certificate.pem.decode(), terms.host, terms.offer, terms.relay_only)
    for one in reversed(tuple(_read(terms.servers))):
        if one.scheme == "stun":
            worker = attrs.evolve(worker, stun_server=one.place)
        else:
            worker = attrs.evolve(
                worker,
                turn_server=one.place,
                turn_username=one.server.username,
                turn_password=one.server.credential,
                turn_tls=one.scheme == "turns",
                turn_transport=one.transport,
            )
    return orjson.dumps(attrs.asdict(worker))


def read_terms(written: bytes) -> WorkerTerms:
    """Read what `write_terms` has written."""
    words = orjson.loads(written)
    for name in ("stun_server", "turn_server"):
        words[name] = None if words[name] is None else tuple(words[name])
    return WorkerTerms(**words)
