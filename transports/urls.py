"""Parse network addresses: WebSocket URLs, `host:port`, and the endpoints in descriptors."""

import re
from ipaddress import ip_address
from types import MappingProxyType
from typing import Final, final
from urllib.parse import parse_qsl, unquote, urlsplit

import attrs

from specs.addresses.address import host_in
from transports.link import Kind, Upgrade

_DEFAULT_PORTS: Final = MappingProxyType({"ws": 80, "wss": 443})
HIGHEST_PORT: Final = 65_535
LOOPBACK: Final = "127.0.0.1"
"""Default host on which P2P stubs listen: reachable from this machine only."""


@attrs.frozen(slots=True)
class WebSocketUrl:
    """A WebSocket URL in parts.

    Attributes:
        port: Port; 80, or 443 with TLS, if the URL has none.
        target: Path and query as they are in the request line.
        scheme: `ws`, or `wss`: with TLS.
    """

    host: str
    port: int
    target: str
    scheme: str = "ws"

    @property
    def authority(self) -> str:
        """Text `host:port`, with an IPv6 host in brackets, as in the Host header."""
        return join_host_port(self.host, self.port)

    @property
    def server(self) -> str:
        """`ws://host:port`: the address of the listener."""
        return f"{self.scheme}://{self.authority}"


def read_websocket_url(text: str) -> WebSocketUrl:
    """Split a WebSocket URL.

    Raises:
        ValueError: The text is not a WebSocket URL; the error says why, as half a sentence.
    """
    host = host_in(text)  # Python refuses an unclear host itself or not, by its version
    is_one_word = text.isprintable() and " " not in text
    if host is None or not is_one_word or urlsplit(text).scheme not in _DEFAULT_PORTS:
        raise ValueError("it is no URL such as ws://host:port/path or wss://host/path")
    parts = urlsplit(text)
    port = _DEFAULT_PORTS[parts.scheme] if parts.port is None else parts.port
    query = f"?{parts.query}" if parts.query else ""
    return WebSocketUrl(host, port, (parts.path or "/") + query, parts.scheme)


def is_this_machine(host: str) -> bool:
    """Return whether a host name or address is `localhost` or a loopback address."""
    if host.lower() == "localhost":
        return True
    try:
        return "%" not in host and ip_address(host).is_loopback
    except ValueError:
        return False


_WITHOUT_TLS: Final = frozenset({"http", "ws"})


_ABSOLUTE: Final = re.compile(r"(?:https?|wss?)://([^/?#]+)", re.IGNORECASE)


def is_plain(url: str) -> bool:
    """Return whether a text is a URL without TLS that may lead to another machine.

    A URL with an unclear host counts as such, since versions of Python read it differently. Blanks
    and control characters are ignored, as other parsers ignore them.
    """
    url = "".join(each for each in url if each > " ")
    absolute = _ABSOLUTE.match(url)
    authority = "" if absolute is None else absolute[1]
    if authority.count("[") != authority.count("]"):
        return False
    scheme = url.partition(":")[0].lower()
    return scheme in _WITHOUT_TLS and not is_this_machine(host_in(url) or "")


def split_target(target: str) -> tuple[str | None, str]:
    """Split the target of a request line into its authority and its path with query.

    A target that starts with its path has no authority. A server serves absolute targets, too,
    and their authority replaces the Host header (RFC 9112, 3.2.2).
    """
    match = _ABSOLUTE.match(target)
    if match is None:
        return None, target
    rest = target[match.end() :]
    return match[1], rest if rest.startswith("/") else f"/{rest}"


def own_origin(host: str, port: int, *, is_encrypted: bool) -> str:
    """Return the web origin of pages that a listener itself would serve (RFC 6454).

    Args:
        host: The address of the listener, as a number: a name could be made to lead to it.
        port: Its port.
        is_encrypted: Whether it is reached by TLS.
    """
    scheme, usual = ("https", "wss") if is_encrypted else ("http", "ws")
    if port == _DEFAULT_PORTS[usual]:
        return f"{scheme}://{join_host_port(host, port).rpartition(':')[0]}"
    return f"{scheme}://{join_host_port(host, port)}"


def read_target(target: str, subprotocol: str | None) -> Upgrade:
    """Read path and query of a request line, both percent-encoded.

    Raises:
        ValueError: The query has more than 16 fields.
    """
    _, rest = split_target(target)
    path, _, query = rest.partition("?")
    fields = dict(reversed(parse_qsl(query, keep_blank_values=True, max_num_fields=16)))
    return Upgrade(unquote(path), MappingProxyType(fields), subprotocol)


def join_host_port(host: str, port: int) -> str:
    """Return `host:port`; an IPv6 host is put in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def read_host_port(text: str) -> tuple[str, int]:
    """Split `host:port`; an IPv6 host is in brackets.

    Raises:
        ValueError: The text is not of that form; the error says why, as half a sentence.
    """
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > HIGHEST_PORT:
        raise ValueError("it is no address such as 127.0.0.1:4123")
    return host.removeprefix("[").removesuffix("]"), int(port)


_PLAIN: Final = MappingProxyType({"tcp": Kind.TCP, "stream": Kind.STREAM})


@final
@attrs.frozen(slots=True)
class Endpoint:
    """An address to dial, with the kind of link.

    Attributes:
        address: Address for `Network.dial`.
    """

    kind: Kind
    address: str


def read_endpoint(text: str) -> Endpoint:
    """Read an address with its scheme: `ws`, `wss`, `tcp` (frames) or `stream` (raw bytes).

    Raises:
        ValueError: The text is none of these; the error has the reason, as half a sentence.
    """
    scheme, _, place = text.partition("://")
    if scheme in _DEFAULT_PORTS:
        read_websocket_url(text)
        return Endpoint(Kind.WEBSOCKET, text)
    kind = _PLAIN.get(scheme)
    if kind is None:
        raise ValueError("it is none of ws://host:port/path, tcp://host:port, stream://host:port")
    host, _ = read_host_port(place)
    if not host:
        raise ValueError("it names no host")
    return Endpoint(kind, place)
