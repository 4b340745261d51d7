"""The least that a node on Trio could do: reads `from` and `to`, and passes the frame on.

A process of its own, as the node is: `websockets` without its input and output on Trio's sockets.
It checks nothing, keeps nothing, and waits for a peer that does not read: no node, but its limit.
"""

import sys
from contextlib import suppress
from typing import Final, final

import orjson
import trio
from websockets.frames import Frame, Opcode
from websockets.http11 import Request
from websockets.protocol import State
from websockets.server import ServerProtocol

_READ: Final = 65_536


@final
class _Guest:
    """One connection.

    Attributes:
        protocol: Its side of the WebSocket.
    """

    known: Final[dict[str, "_Guest"]] = {}

    def __init__(self, stream: trio.SocketStream) -> None:
        self._stream = stream
        self.protocol: Final = ServerProtocol()
        self._pen = trio.Lock()

    async def serve(self) -> None:
        """Read until it hangs up."""
        with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            while data := await self._stream.receive_some(_READ):
                self.protocol.receive_data(data)
                for guest in {self._taken(event) for event in self.protocol.events_received()}:
                    await guest.flush()

    def _taken(self, event: object) -> "_Guest":
        """Take what came; return who is to be written to."""
        if isinstance(event, Request):
            self.protocol.send_response(self.protocol.accept(event))
        if not isinstance(event, Frame) or event.opcode is not Opcode.TEXT:
            return self
        message = orjson.loads(event.data)
        self.known[_runtime(message["from"])] = self
        to = self.known.get(_runtime(message["to"]))
        if to is None:  # it only says who it is
            echo = {**message, "from": message["to"], "to": message["from"]}
            self.protocol.send_text(orjson.dumps(echo))
            return self
        if to.protocol.state is State.OPEN:
            to.protocol.send_text(event.data)
        return to

    async def flush(self) -> None:
        """Write what is to be written."""
        async with self._pen:
            for part in self.protocol.data_to_send():
                with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
                    await self._stream.send_all(part)


def _runtime(address: str) -> str:
    return "/".join(address.split("/", 4)[:4])


async def _serve(stream: trio.SocketStream) -> None:
    await _Guest(stream).serve()


async def _run() -> None:
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    sys.stdout.write(f"{listeners[0].socket.getsockname()[1]}\n")
    sys.stdout.flush()
    await trio.serve_listeners(_serve, listeners)


def main() -> None:
    """Serve until it is killed."""
    trio.run(_run)


if __name__ == "__main__":
    main()
