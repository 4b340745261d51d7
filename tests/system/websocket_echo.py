"""An echo server made of our listener, for conformance cases: run as a process.

Two things differ from what a node listens with. The limit of a frame is raised, because
cases send up to 16 MiB; and a link remembers whether a message was text or binary, because
an echo has to be the same, while the node answers in text only. All else (the handshake,
reading, writing, control frames, failing, leaving) is what the node runs.
"""

import sys
from collections import deque
from contextlib import suppress

import trio
from websockets.frames import Opcode

from tests.system import big_frames  # noqa: F401 - before what reads the limit
from transports.errors import LinkError
from transports.link import Kind
from transports.system import open_system_network
from transports.websocket import server as websocket_listener
from transports.websocket.server import WebSocketServerLink


class EchoLink(WebSocketServerLink):
    """A link that sends as it has received."""

    def __init__(self, *whatever):
        self.opcodes = deque()
        super().__init__(*whatever)

    def _take_part(self, part):
        opcode = (self._parts or [part])[0].opcode
        taken = len(self._inbox or ())
        super()._take_part(part)
        if len(self._inbox or ()) > taken:
            self.opcodes.append(opcode)

    def _wrap(self, frames):
        for frame in frames:
            is_text = self.opcodes.popleft() is Opcode.TEXT
            send = self._protocol.send_text if is_text else self._protocol.send_binary
            send(frame)
        return b"".join(self._protocol.data_to_send())


async def echo(link):
    with suppress(LinkError):
        while True:
            await link.send_many((await link.receive(),))
    await link.aclose()


async def main():
    websocket_listener.WebSocketServerLink = EchoLink
    async with (
        trio.open_nursery() as nursery,
        open_system_network() as network,
        network.listen(Kind.WEBSOCKET, "127.0.0.1:0", {"/": None}) as listener,
    ):
        sys.stdout.write(f"{listener.address}\n")
        sys.stdout.flush()
        while True:
            nursery.start_soon(echo, await listener.accept())


if __name__ == "__main__":
    trio.run(main)
