"""A runtime uses an unknown protocol: it fetches the stub when it first needs it.

Run it: `python examples/write_a_stub/shout.py`

`package/shout_stub.py` is the stub, `publish.py` signs and publishes it. This file contains a
server of the protocol, and a program that knows only the place of the catalogue and the
trusted signers. The code of the stub runs in a separate process.
"""

import tempfile
from pathlib import Path

import trio
from publish import DOMAIN, publish

import actors


class Caller(actors.Hyperty):
    """Sends requests."""


async def shout(stream: trio.SocketStream) -> None:
    """Serve one client of the protocol: answer everything in capitals."""
    rest = b""
    async for piece in stream:
        *lines, rest = (rest + bytes(piece)).split(b"\n")
        for line in lines:
            _, number, asked = line.decode().split(" ", 2)
            print(f"the server hears  {line.decode()}")
            await stream.send_all(f"ANSWER {number} {asked.upper()}\n".encode())


async def main(folder: Path) -> None:
    """Open the server, publish its stub, and send two requests."""
    async with trio.open_nursery() as nursery:
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        nursery.start_soon(trio.serve_listeners, shout, listeners)
        _, port = listeners[0].socket.getsockname()
        catalogue, trust = await trio.to_thread.run_sync(
            publish, folder, f"stream://127.0.0.1:{port}"
        )
        access = actors.CatalogueAccess(
            actors.read_places([f"{DOMAIN}={catalogue}"]), actors.read_trust(trust)
        )
        async with actors.open_node("a.example") as node:
            config = actors.RuntimeConfig(
                domain="a.example", name="ra", node=node.url, catalogues=access
            )
            async with actors.open_runtime(config) as runtime:
                caller = await runtime.deploy(Caller)
                for words in ("hello", "is it protocol on the fly?"):
                    answer = await caller.request(f"hyperty://{DOMAIN}/anybody", words)
                    print(f"the answer is     {answer.code} {answer.body['value']}")
        nursery.cancel_scope.cancel()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        trio.run(main, Path(place))
