"""Peers of a message node that speak as upstream's stubs do: raw JSON, a message a frame."""

import json
from urllib.parse import quote

import trio

from specs.limits.protocol import REPLY_TIMEOUT
from tests.support.node.node_peer import ALLOCATION, World
from transports.link import Kind, Link

OLD = "runtime://a.ex/old"
OLD_INSIDE = "hyperty-runtime://a.ex/old"


class LegacyPeer:
    """Writes what it is ordered to, letter by letter, and remembers what it heard."""

    def __init__(self, link: Link, runtime: str = OLD) -> None:
        self.link = link
        self.runtime = runtime
        self.token = ""
        self.heard: list[dict] = []
        self._id = 0

    @property
    def session_url(self) -> str:
        return f"{self.runtime}/{self.token}"

    async def raw(self, frame: bytes) -> None:
        await self.link.send(frame)

    async def say(self, **message: object) -> None:
        """Send a message; `from_` stands for `from`."""
        wire = {key.rstrip("_"): value for key, value in message.items()}
        await self.link.send(json.dumps(wire).encode())

    async def hear(self) -> dict:
        if self.heard:
            return self.heard.pop(0)
        return json.loads(await self.link.receive())

    async def ask(self, **message: object) -> dict:
        """Return what is heard next."""
        await self.say(**message)
        with trio.fail_after(REPLY_TIMEOUT):
            return await self.hear()

    async def session(self, type_: str, from_: str | None = None) -> dict:
        self._id += 1
        return await self.ask(
            id=self._id, type=type_, from_=from_ or self.runtime, to="mn:/session"
        )

    async def open(self) -> "LegacyPeer":
        answer = await self.session("open")
        assert answer["body"]["code"] == 200, answer
        self.token = answer["body"]["runtimeToken"]
        return self

    async def allocate(self, **spelling: object) -> str:
        answer = await self.ask(
            **{"id": 1, "type": "create", "from_": f"{self.runtime}/ua", "to": ALLOCATION}
            | spelling,
            body={"scheme": "hyperty", "value": {"number": 1}},
        )
        assert answer["body"]["code"] == 200, answer
        return answer["body"]["value"]["allocated"][0]

    async def read_on(self) -> None:
        """Read until there is nothing to read any more."""
        while True:
            await self.link.receive()

    async def silence(self, seconds: float = 0.5) -> bool:
        """Say whether nothing is heard for a while."""
        with trio.move_on_after(seconds):
            self.heard.append(await self.hear())
        return not self.heard


async def plain_peer(world: World, runtime: str = OLD) -> LegacyPeer:
    """Connect as upstream's plain stub does."""
    return await _peer(world, f"{world.node.legacy_url}?runtimeURL={quote(runtime, '')}", runtime)


async def session_outsider(world: World, runtime: str = OLD) -> LegacyPeer:
    """Connect as upstream's stub with a session handshake does, and say nothing yet."""
    return await _peer(world, world.node.session_url or "", runtime)


async def session_peer(world: World, runtime: str = OLD) -> LegacyPeer:
    return await (await session_outsider(world, runtime)).open()


async def _peer(world: World, url: str, runtime: str) -> LegacyPeer:
    link = await world.network.dial(Kind.WEBSOCKET, url, None)
    world.links.append(link)
    return LegacyPeer(link, runtime)
