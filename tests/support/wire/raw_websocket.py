"""Bytes of a WebSocket client's side, written by hand (RFC 6455), and the other side's link."""

import struct

import trio
from websockets.server import ServerProtocol

from transports.link import Link, Upgrade
from transports.websocket.server import WebSocketProtocol, WebSocketServerLink

MASK = b"\x01\x02\x03\x04"


def handshake(target: str = "/link", subprotocol: str | None = "protofly.v1") -> bytes:
    lines = [
        f"GET {target} HTTP/1.1",
        "Host: 127.0.0.1",
        "Upgrade: websocket",
        "Connection: Upgrade",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        "Sec-WebSocket-Version: 13",
    ]
    if subprotocol is not None:
        lines.append(f"Sec-WebSocket-Protocol: {subprotocol}")
    return "\r\n".join([*lines, "", ""]).encode()


def head(opcode: int, size: int, fin: int = 0x80) -> bytes:
    """Return the head of a masked frame that announces `size` bytes."""
    first = bytes([fin | opcode])
    if size < 126:
        return first + bytes([0x80 | size]) + MASK
    if size < 65_536:
        return first + bytes([0x80 | 126]) + struct.pack("!H", size) + MASK
    return first + bytes([0x80 | 127]) + struct.pack("!Q", size) + MASK


def frame(opcode: int, data: bytes, fin: int = 0x80) -> bytes:
    masked = bytes(byte ^ MASK[place % 4] for place, byte in enumerate(data))
    return head(opcode, len(data), fin) + masked


def text(data: bytes) -> bytes:
    return frame(1, data)


def websocket_link(stream: trio.SocketStream) -> Link:
    """Return the accepting end of a connection whose handshake is done."""
    protocol = WebSocketProtocol()
    protocol.receive_data(handshake())
    protocol.send_response(ServerProtocol.accept(protocol, protocol.events_received()[0]))
    protocol.data_to_send()
    return WebSocketServerLink("a", Upgrade(), stream, protocol)
