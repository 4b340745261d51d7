"""Open connections to NATS servers, with TLS and authentication."""

import re
import ssl
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from typing import Final, Self, final
from urllib.parse import urlsplit

import attrs
import orjson
import trio

from specs.addresses.address import host_in
from specs.limits.engine import ENGINE_TIMEOUT, NATS_LINE, NATS_PAYLOAD, NATS_PORT
from specs.limits.protocol import MAX_FRAME_BYTES
from transports.errors import DialError, LinkError
from transports.link import Kind, Upgrade
from transports.nats import wire as wires
from transports.socket_link import RawLink
from transports.sockets import dial_tcp
from transports.tls import AcceptedStream, begin_tls, client_context
from transports.urls import join_host_port

_SCHEMES: Final = ("nats", "tls")
_HOST: Final = re.compile(r"[\w.:-]+")


@final
@attrs.frozen
class ServerUrl:
    """The parts of the URL of a NATS server.

    Attributes:
        host: Host, which the certificate of the server must name.
        port: Port.
        is_encrypted: Whether TLS is required; it is also used if the server requires TLS.
    """

    host: str
    port: int
    is_encrypted: bool

    @classmethod
    def read(cls, text: str) -> Self:
        """Read `nats://host:port` or `tls://host:port`; the port may be missing.

        Raises:
            ValueError: The text has another form; the error has the reason, as half a sentence.
        """
        if "@" in text:
            raise ValueError("a URL of the engine holds no user; credentials are in a file")
        try:
            url = urlsplit(text)
            port = url.port or NATS_PORT
        except ValueError as exc:
            raise ValueError(f"{text!r} is no URL of a server: {exc}") from exc
        host, rest = host_in(text) or "", url.path.strip("/") or url.query
        if url.scheme not in _SCHEMES or not _HOST.fullmatch(host) or rest:
            raise ValueError(f"{text!r} is no URL such as nats://127.0.0.1:4222")
        return cls(host, port, url.scheme == "tls")

    @property
    def address(self) -> str:
        """`host:port` of the server."""
        return join_host_port(self.host, self.port)


@attrs.frozen
class Terms:
    """Settings of a NATS client: servers, name, credentials and TLS.

    Attributes:
        servers: Servers of one cluster, tried in turn.
        name: Name of this client, for the operator of the server.
        credentials: Credentials of this client; None: the server needs none.
        tls: TLS context; None: trust the authorities of the operating system.
    """

    servers: tuple[ServerUrl, ...]
    name: str = "protofly"
    credentials: wires.Credentials | None = None
    tls: ssl.SSLContext | None = None


class NatsConnection:
    """An open connection to a NATS server.

    Attributes:
        link: The byte stream to the server.
        wire: Parser of the server's data.
        server_id: Id of the process of the server.
    """

    def __init__(self, link: RawLink, wire: wires.Wire, server_id: str) -> None:
        self.link: Final = link
        self.wire: Final = wire
        self.server_id: Final = server_id


def cut(data: bytes) -> list[bytes]:
    """Divide bytes into pieces that a link accepts as frames."""
    if len(data) <= MAX_FRAME_BYTES:
        return [data]
    return [data[at : at + MAX_FRAME_BYTES] for at in range(0, len(data), MAX_FRAME_BYTES)]


_trusting_the_system: Final = cache(client_context)


async def dial_server(terms: Terms, server: ServerUrl) -> NatsConnection:
    """Connect to a NATS server and authenticate, within `ENGINE_TIMEOUT` seconds.

    If cancelled, nothing is left open.

    Raises:
        NatsError: The server is missing, refuses, or does not answer.
    """
    try:
        with trio.fail_after(ENGINE_TIMEOUT):
            return await _dial(terms, server)
    except trio.TooSlowError as exc:
        raise wires.NatsError(f"{server.address} does not answer") from exc
    except DialError as exc:
        raise wires.NatsError(f"{server.address} cannot be reached: {exc.reason}") from exc
    except (LinkError, OSError, trio.BrokenResourceError) as exc:
        raise wires.NatsError(f"{server.address} has hung up") from exc


async def _dial(terms: Terms, server: ServerUrl) -> NatsConnection:
    plain = await dial_tcp(server.address)
    try:
        greeting = await _greeting(plain)
        _check_room(server, greeting)
        stream: AcceptedStream = plain
        if server.is_encrypted or greeting.get("tls_required") is True:
            if not (greeting.get("tls_required") or greeting.get("tls_available")):
                raise wires.NatsError(f"{server.address} offers no TLS")  # noqa: TRY301 - closes below
            tls = terms.tls or _trusting_the_system()
            stream = await begin_tls(plain, tls, server.address, server.host)
        link = RawLink((Kind.STREAM, server.address, Upgrade()), stream)
        wire = wires.Wire()
        await link.send_many(cut(_introduction(terms, greeting) + wires.PING))
        await _wait_for_admission(link, wire, server)
        return NatsConnection(link, wire, str(greeting.get("server_id", "")))
    except BaseException:
        await trio.aclose_forcefully(plain)
        raise


async def _greeting(stream: trio.SocketStream) -> Mapping[str, object]:
    """Read the greeting of a server, and no data after the greeting."""
    data = b""
    while not data.endswith(b"\r\n"):
        more = await stream.receive_some(NATS_LINE)
        data += more
        if not more or len(data) > NATS_LINE:
            raise wires.NatsError("it is no NATS server")
    with suppress(wires.NatsError, orjson.JSONDecodeError):
        first = next(wires.Wire().receive(data), None)
        fields = orjson.loads(first.text) if isinstance(first, wires.Line) else None
        if isinstance(fields, dict):
            return fields
    raise wires.NatsError("it is no NATS server")


def _check_room(server: ServerUrl, greeting: Mapping[str, object]) -> None:
    most = greeting.get("max_payload")
    if isinstance(most, int) and most < NATS_PAYLOAD:
        # The server would cut the connection at the first larger message.
        raise wires.NatsError(
            f"{server.address} takes messages of {most} bytes only, not of {NATS_PAYLOAD}"
        )


def _introduction(terms: Terms, greeting: Mapping[str, object]) -> bytes:
    fields: dict[str, object] = {
        "verbose": False,
        "pedantic": False,
        "name": terms.name,
        "lang": "python-trio",
        "version": "1",
        "protocol": 1,
        "headers": True,
        "no_responders": True,
    }
    challenge = greeting.get("nonce")
    if terms.credentials is not None and isinstance(challenge, str):
        fields |= terms.credentials.proof(challenge)
    return b"CONNECT %b\r\n" % orjson.dumps(fields)


async def _wait_for_admission(link: RawLink, wire: wires.Wire, server: ServerUrl) -> None:
    """Wait for the answer to the first ping, which shows that the server has accepted the login."""
    while True:
        for each in wire.receive(await link.receive()):
            if await _is_admission(link, each, server):
                return


async def _is_admission(link: RawLink, received: wires.Received, server: ServerUrl) -> bool:
    match received:
        case wires.Line(b"PONG"):
            return True
        case wires.Line(b"PING"):
            await link.send(wires.PONG)
        case wires.Line(b"-ERR", text):
            raise wires.NatsError(f"{server.address} refuses: {text.lower()}")
        case _:
            pass
    return False
