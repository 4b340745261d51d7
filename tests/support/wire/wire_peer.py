"""Stubs from outside: each speaks one wire form of the node, letter by letter.

What a frame holds is written here from the description of the wire, not by our codec;
messages are plain JSON. `link` is `protofly.v1`, `plain` and `session` are what
upstream's stubs speak: text or number ids, `runtime://`, `mn:/session`.
"""

import json
from abc import ABC, abstractmethod
from collections import deque
from typing import ClassVar
from urllib.parse import quote

import trio
from typing_extensions import override

from tests.support.wire.wire_socket import WireSocket, open_wire

PATIENCE = 30.0
"""Seconds to wait for what must come; on a busy machine that is long enough."""


class WirePeer(ABC):
    """A runtime outside; addresses below it are spelt as its form does.

    Attributes:
        runtime: Its runtime URL, as it spells it.
        inside: The same in canonical form.
        token: What it comes back with; empty where its form has none.
        heard: What came and was not looked at yet.
    """

    form: ClassVar[str]
    scheme: ClassVar[str] = "runtime"

    def __init__(self, urls: dict[str, str], domain: str, name: str) -> None:
        self.urls = urls
        self.domain = domain
        self.name = name
        self.runtime = f"{self.scheme}://{domain}/{name}"
        self.inside = f"hyperty-runtime://{domain}/{name}"
        self.node = f"domain://msg-node.{domain}"
        self.token = ""
        self.heard: deque[dict] = deque()
        self.wire: WireSocket | None = None
        self._id = 0

    # ---- the form

    @abstractmethod
    async def connect(self) -> None:
        """Open the link, and say nothing yet."""

    @abstractmethod
    async def open(self, token: str = "") -> dict | None:
        """Have a session; return what the node said to that, if it says anything."""

    @abstractmethod
    async def close(self) -> None:
        """End the session, and wait until the node has left."""

    def shown_id(self, number: int) -> int | str:
        return number

    @property
    def stub(self) -> str:
        """What the stub calls itself."""
        return f"{self.runtime}/protostub/1"

    # ---- speaking

    def spelt(self, address: str) -> str:
        """Return an address as this form spells it."""
        return address.replace("hyperty-runtime://", f"{self.scheme}://", 1)

    def part(self, name: str) -> str:
        return f"{self.runtime}/{name}"

    async def raw(self, text: bytes) -> None:
        await self.wire.send(text)

    async def say(self, type_: str, from_: str, to: str, **body: object) -> int | str:
        """Send a message; return its id as it went out."""
        self._id += 1
        return await self.say_as(self.shown_id(self._id), type_, from_, to, body)

    async def say_as(self, id_, type_: str, from_: str, to: str, body: object) -> int | str:
        await self.raw(
            json.dumps({"id": id_, "type": type_, "from": from_, "to": to, "body": body}).encode()
        )
        return id_

    async def answer(self, request: dict, code: int = 200, **body: object) -> None:
        await self.say_as(
            request["id"], "response", request["to"], request["from"], {"code": code, **body}
        )

    # ---- hearing

    async def hear(self) -> dict:
        with trio.fail_after(PATIENCE):
            while not self.heard:
                await self._read(await self.wire.receive())
        return self.heard.popleft()

    async def _read(self, text: bytes) -> None:
        self.heard.append(json.loads(text))

    async def ask(self, type_: str, from_: str, to: str, **body: object) -> dict:
        """Return the answer; what else is heard meanwhile is kept, in order."""
        return await self.answer_to(await self.say(type_, from_, to, **body))

    async def answer_to(self, id_: int | str) -> dict:
        kept = []
        while True:
            message = await self.hear()
            if message["id"] == id_ and message["type"].lower() == "response":
                self.heard.extendleft(reversed(kept))
                return message
            kept.append(message)

    async def code(self, type_: str, from_: str, to: str, **body: object) -> int:
        return (await self.ask(type_, from_, to, **body))["body"]["code"]

    async def rest(self) -> list[dict]:
        """Return all that has come so far: what the node sent before it answers this."""
        await self._settled()
        came, self.heard = list(self.heard), deque()
        return came

    async def _settled(self) -> None:
        """Ask what changes nothing, and wait for the answer; what else comes is kept."""
        await self.ask("unsubscribe", self.part("sm"), f"{self.node}/sm", resources=[self.runtime])

    async def farewell(self) -> None:
        """Read on until the node leaves; raises `Left`."""
        with trio.fail_after(PATIENCE):
            while True:
                await self._read(await self.wire.receive())

    # ---- what everybody does

    async def vanish(self) -> None:
        """Be gone without a word."""
        await self.wire.abandon()

    async def allocate(self, scheme: str = "hyperty", number: int = 1, **key: str) -> list[str]:
        answer = await self.ask(
            "create", self.part("address-allocation"), f"{self.node}/address-allocation",
            scheme=scheme, value={"number": number, **key},
        )  # fmt: skip
        assert answer["body"]["code"] == 200, answer
        return answer["body"]["value"]["allocated"]

    async def paths(self, type_: str, *resources: str, **more: object) -> dict:
        return await self.ask(
            type_, self.part("sm"), f"{self.node}/sm", resources=list(resources), **more
        )


class LinkPeer(WirePeer):
    """`/link`, subprotocol `protofly.v1`; the node's own pings are answered."""

    form = "link"
    scheme = "hyperty-runtime"

    @override
    async def connect(self) -> None:
        self.wire = await open_wire(self.urls["url"], "protofly.v1")

    @override
    async def open(self, token: str = "") -> dict:
        answer = await self.control("open", **({"token": token} if token else {}))
        self._granted(answer)
        return answer

    async def reopen(self, token: str) -> dict:
        answer = await self.control("re-open", token=token)
        self._granted(answer)
        return answer

    def _granted(self, answer: dict) -> None:
        if answer["body"]["code"] == 200:
            self.token = answer["body"]["value"]["sessionToken"]

    async def control(self, method: str, **params: object) -> dict:
        params.setdefault("runtimeURL", self.runtime)
        return await self.ask(
            "execute", self.stub, f"{self.node}/session", method=method, params=params
        )

    @override
    async def close(self) -> None:
        assert (await self.control("close"))["body"]["code"] == 200

    @override
    async def _read(self, text: bytes) -> None:
        for line in text.split(b"\n"):
            message = json.loads(line)
            if message["type"] == "execute" and message["body"].get("method") == "ping":
                await self.answer(message)
            else:
                self.heard.append(message)


class PlainPeer(WirePeer):
    """`/stub/connect?runtimeURL=`: a message a frame, text ids, the URL is the session."""

    form = "plain"

    @override
    async def connect(self) -> None:
        self.wire = await open_wire(
            f"{self.urls['legacy_url']}?runtimeURL={quote(self.runtime, '')}"
        )

    @override
    async def open(self, token: str = "") -> None:
        """Who has come has the session; wait until an answer shows that the node knows it."""
        await self._settled()

    @override
    async def close(self) -> None:
        body = {"runtimeURL": self.runtime, "via": self.stub}
        await self.raw(json.dumps({"cmd": "disconnect", "body": body}).encode())

    @override
    def shown_id(self, number: int) -> str:
        return str(number)


class SessionPeer(WirePeer):
    """`/ws`: `open`, `re-open` and `close` are types of messages to `mn:/session`."""

    form = "session"

    @override
    async def connect(self) -> None:
        self.wire = await open_wire(self.urls["session_url"])

    @property
    @override
    def stub(self) -> str:
        return f"{self.runtime}/{self.token}" if self.token else self.runtime

    @override
    async def open(self, token: str = "") -> dict:
        answer = await self.control("open", f"{self.runtime}/{token}" if token else self.runtime)
        if answer["body"]["code"] == 200:
            self.token = answer["body"].get("runtimeToken", token)
        return answer

    async def reopen(self, token: str) -> dict:
        answer = await self.control("re-open", f"{self.runtime}/{token}")
        if answer["body"]["code"] == 200:
            self.token = token
        return answer

    async def control(self, type_: str, from_: str) -> dict:
        return await self.answer_to(await self.say_control(type_, from_))

    async def say_control(self, type_: str, from_: str) -> int:
        self._id += 1
        frame = {"id": self._id, "type": type_, "from": from_, "to": "mn:/session"}
        await self.raw(json.dumps(frame).encode())
        return self._id

    @override
    async def close(self) -> None:
        await self.say_control("close", self.stub)


FORMS: dict[str, type[WirePeer]] = {one.form: one for one in (LinkPeer, PlainPeer, SessionPeer)}
"""Those that speak over WebSockets."""
