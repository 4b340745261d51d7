"""A server of the chat: everybody is an echo, but `mute`, who never answers, and `nobody`."""

from contextlib import asynccontextmanager, suppress

import trio

from transports.sockets import open_background


class ChatServer:
    """What it hears and does.

    Attributes:
        heard: All lines, in order.
    """

    def __init__(self):
        self.heard = []
        self._more = trio.Event()
        self._streams = []

    async def serve(self, stream):
        self._streams.append(stream)
        rest = b""
        with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            async for piece in stream:
                *whole, rest = (rest + bytes(piece)).split(b"\n")
                for line in whole:
                    await self.take(stream, line.decode())

    async def take(self, stream, line):
        self.heard.append(line)
        self._more.set()
        answer = self.answer(line)
        if answer is None:
            await stream.aclose()
        else:
            await stream.send_all(answer)

    @staticmethod
    def answer(line):
        word, _, rest = line.partition(" ")
        match word:
            case "HELLO":
                return f"WELCOME {rest}\n".encode()
            case "SAY":
                number, to, text = rest.split(" ", 2)
                known = {"nobody": f"NOBODY {number}\n", "mute": ""}
                return known.get(to, f"SAID {number} {text}\n").encode()
            case _:
                return None

    async def wait_for(self, beginning):
        """Wait until a line comes, or has come, that begins so."""
        with trio.fail_after(60):
            while not any(line.startswith(beginning) for line in self.heard):
                self._more = trio.Event()
                await self._more.wait()

    async def whisper(self, who, to, text):
        """Send everybody something that nobody had asked for."""
        for stream in self._streams:
            await stream.send_all(f"WHISPER {who} {to} {text}\n".encode())

    async def hang_up(self):
        streams, self._streams = self._streams, []
        for stream in streams:
            await trio.aclose_forcefully(stream)


@asynccontextmanager
async def open_chat(port):
    """Run a server on a port of this machine while the context is open."""
    server = ChatServer()
    (listener,) = await trio.open_tcp_listeners(port, host="127.0.0.1")
    async with open_background() as background:
        background.start_soon(trio.serve_listeners, server.serve, [listener])
        yield server
