"""A program: a runtime with data channels, whose hyperty echoes and observes."""

import sys

import trio

import actors


class Peer(actors.Hyperty):
    """Answers a request with its value, or with what an object becomes that it observes."""

    async def on_request(self, message: actors.Message) -> actors.Json:
        match message.value:
            case {"observe": str(url), "until": until}:
                async with self.observe(url) as copy:
                    changes = copy.changes()
                    while copy.value != until:
                        await anext(changes)
                    return copy.value
            case value:
                return value


async def main(node: str) -> None:
    config = actors.RuntimeConfig(
        domain="a.example", name="bob", node=node, kinds=(actors.Kind.WEBRTC,)
    )
    async with actors.open_runtime(config) as runtime:
        peer = await runtime.deploy(Peer)
        sys.stdout.write(f"{peer.url}\n")
        sys.stdout.flush()
        await trio.sleep_forever()


trio.run(main, sys.argv[1])
