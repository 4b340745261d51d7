"""A relay that does the least that a node on Trio could do, for comparison with the node.

The relay reads the field `to` of a message, and forwards the frame. It supports the requests in
upstream's plain form that the benches need: allocation of addresses, subscription, and messages to
an exact address. It checks and limits nothing, so no node can be faster. One task serves all
sockets, since waking a task for each message would cost more than the relaying.
"""

import select
import socket
import sys
from collections import defaultdict
from contextlib import suppress
from itertools import count
from typing import Final

import orjson
import trio
from websockets.frames import Frame, Opcode
from websockets.http11 import Request
from websockets.protocol import State
from websockets.server import ServerProtocol

_READ: Final = 65_536
_ROUTES: Final[defaultdict[str, list["_Guest"]]] = defaultdict(list)
_NUMBERS: Final = count(1)


class _Guest:
    """One connection to the relay: its socket and its WebSocket protocol."""

    def __init__(self, end: socket.socket, poll: select.epoll) -> None:
        self.socket = end
        self._poll = poll
        self._protocol = ServerProtocol(max_size=None)
        self._is_open = True

    def read(self) -> dict["_Guest", None]:
        """Handle received frames; return the connections that have something to write."""
        try:
            data = self.socket.recv(_READ)
        except ConnectionError:
            data = b""
        if not data:
            self.close()
            return {}
        self._protocol.receive_data(data)
        dirty = {self: None}
        for event in self._protocol.events_received():
            if isinstance(event, Request):
                self._protocol.send_response(self._protocol.accept(event))
            elif isinstance(event, Frame) and event.opcode is Opcode.TEXT:
                dirty |= dict.fromkeys(self._routed(bytes(event.data)))
        return dirty

    def _routed(self, text: bytes) -> list["_Guest"]:
        message = orjson.loads(text)
        to, value = message["to"], {}
        match to.rpartition("/")[2]:
            case "address-allocation":
                numbers = range(message["body"]["value"]["number"])
                scheme = message["body"]["scheme"]
                addresses = [f"{scheme}://a.example/{next(_NUMBERS)}" for _ in numbers]
                value = {"value": {"allocated": addresses}}
            case "sm":
                addresses = message["body"]["resources"]
            case _:
                for guest in _ROUTES[to]:
                    guest.send(text)
                return _ROUTES[to]
        for address in addresses:
            _ROUTES[address].append(self)
        answer = {"id": message["id"], "type": "response", "from": to, "to": message["from"]}
        self.send(orjson.dumps({**answer, "body": {"code": 200, **value}}))
        return []

    def send(self, text: bytes) -> None:
        if self._is_open and self._protocol.state is State.OPEN:
            self._protocol.send_text(text)

    def close(self) -> None:
        self._is_open = False
        self._poll.unregister(self.socket)
        self.socket.close()

    def flush(self) -> None:
        """Write all pending bytes; a peer that does not read blocks the whole relay."""
        if self._is_open and (data := b"".join(self._protocol.data_to_send())):
            with suppress(ConnectionError):
                self.socket.sendall(data)


async def _run() -> None:
    poll = select.epoll()
    guests: dict[int, _Guest] = {}
    with socket.create_server(("127.0.0.1", 0), backlog=1024) as listener:
        listener.setblocking(False)  # noqa: FBT003 - the standard library's own way
        poll.register(listener, select.EPOLLIN)
        sys.stdout.buffer.write(orjson.dumps({"port": listener.getsockname()[1]}) + b"\n")
        sys.stdout.flush()
        while True:
            await trio.lowlevel.wait_readable(poll.fileno())
            dirty: dict[_Guest, None] = {}
            for number, _ in poll.poll(0, 256):
                if number == listener.fileno():
                    end, _ = listener.accept()
                    end.setblocking(True)  # noqa: FBT003
                    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    guests[end.fileno()] = _Guest(end, poll)
                    poll.register(end, select.EPOLLIN)
                else:
                    dirty |= guests[number].read()
            for guest in dirty:
                guest.flush()


if __name__ == "__main__":
    trio.run(_run)
