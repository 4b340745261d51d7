"""Places to dial, written so that they say how: what a stub's descriptor may name."""

from types import MappingProxyType
from typing import Final, final

import attrs

from transports.link import Kind
from transports.urls import read_host_port, read_websocket_url

__all__ = ["Endpoint", "read_endpoint"]

_PLAIN: Final = MappingProxyType({"tcp": Kind.TCP, "stream": Kind.STREAM})


@final
@attrs.frozen(slots=True)
class Endpoint:
    """Where to dial, and by what.

    Attributes:
        kind: What carries the link.
        address: What a network is to dial.
    """

    kind: Kind
    address: str


def read_endpoint(text: str) -> Endpoint:
    """Read `ws://host:port/path`, `tcp://host:port` (frames) or `stream://host:port` (raw bytes).

    Raises:
        ValueError: It is none of these; the text says why, as half a sentence.
    """
    scheme, _, place = text.partition("://")
    if scheme == "ws":
        read_websocket_url(text)
        return Endpoint(Kind.WEBSOCKET, text)
    kind = _PLAIN.get(scheme)
    if kind is None:
        raise ValueError("it is none of ws://host:port/path, tcp://host:port, stream://host:port")
    host, _ = read_host_port(place)
    if not host:
        raise ValueError("it names no host")
    return Endpoint(kind, place)
