"""Reading what is dialled: WebSocket URLs and `host:port`."""

from types import MappingProxyType
from typing import Final
from urllib.parse import parse_qsl, unquote, urlsplit

import attrs

from transports.link import Upgrade

__all__ = ["WebSocketUrl", "read_host_port", "read_target", "read_websocket_url"]

_DEFAULT_PORTS: Final = {"ws": 80, "wss": 443}
_HIGHEST_PORT: Final = 65_535


@attrs.frozen(slots=True)
class WebSocketUrl:
    """A WebSocket URL in parts.

    Attributes:
        server: `ws://host:port`, what a listener calls its address.
        target: Path and query as they stand in the request line.
    """

    server: str
    target: str


def read_websocket_url(text: str) -> WebSocketUrl:
    """Split a WebSocket URL.

    Raises:
        ValueError: It is none; the text says why, as half a sentence.
    """
    parts = urlsplit(text)
    if parts.scheme not in _DEFAULT_PORTS or not parts.hostname:
        raise ValueError("it is no URL such as ws://host:port/path")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    port = _DEFAULT_PORTS[parts.scheme] if parts.port is None else parts.port
    query = f"?{parts.query}" if parts.query else ""
    return WebSocketUrl(f"{parts.scheme}://{host}:{port}", (parts.path or "/") + query)


def read_target(target: str, subprotocol: str | None) -> Upgrade:
    """Read path and query of a request line, both percent-encoded.

    Raises:
        ValueError: The query has more fields than any peer of ours needs.
    """
    path, _, query = target.partition("?")
    fields = dict(reversed(parse_qsl(query, keep_blank_values=True, max_num_fields=16)))
    return Upgrade(unquote(path), MappingProxyType(fields), subprotocol)


def read_host_port(text: str) -> tuple[str, int]:
    """Split `host:port`; an IPv6 host stands in brackets.

    Raises:
        ValueError: It is none; the text says why, as half a sentence.
    """
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > _HIGHEST_PORT:
        raise ValueError("it is no address such as 127.0.0.1:4123")
    return host.removeprefix("[").removesuffix("]"), int(port)
