"""An echo client made of our dialling end, for conformance cases: run as a process.

Dials one case after the other, as the cases' server wants it. As in `websocket_echo`, the
limit of a frame is raised, and a link remembers whether a message was text or binary.
"""

import sys
from collections import deque
from contextlib import suppress

import trio

from tests.system import big_frames  # noqa: F401 - before what reads the limit
from transports.errors import DialError, LinkError
from transports.link import Kind
from transports.system import open_system_network


class Remembering:
    """The library's connection; it sends as it has received.

    Our link sends text only: bytes come here as text of as many characters.
    """

    def __init__(self, connection):
        self.connection = connection
        self.kinds = deque()

    def __getattr__(self, name):
        return getattr(self.connection, name)

    async def get_message(self):
        message = await self.connection.get_message()
        self.kinds.append(type(message))
        return message.decode("latin-1") if isinstance(message, bytes) else message

    async def send_message(self, text):
        is_text = self.kinds.popleft() is str
        await self.connection.send_message(text if is_text else text.encode("latin-1"))


async def echo(network, url):
    # A server that breaks the protocol right after its handshake ends it for us.
    with suppress(LinkError, DialError):
        link = await network.dial(Kind.WEBSOCKET, url, None)
        link._connection = Remembering(link._connection)
        with suppress(LinkError):
            while True:
                await link.send_many((await link.receive(),))
        await link.aclose()


async def ask(network, url):
    link = await network.dial(Kind.WEBSOCKET, url, None)
    answer = await link.receive()
    await link.aclose()
    return int(answer)


async def main(server):
    async with open_system_network() as network:
        for case in range(1, await ask(network, f"{server}/getCaseCount") + 1):
            await echo(network, f"{server}/runCase?case={case}&agent=protofly")
        await echo(network, f"{server}/updateReports?agent=protofly")


if __name__ == "__main__":
    trio.run(main, sys.argv[1])
