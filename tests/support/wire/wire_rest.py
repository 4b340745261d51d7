"""A runtime outside that has its session over HTTP, request by request."""

import json
from urllib.parse import urlsplit

import h11
import trio
from typing_extensions import override

from tests.support.node.web import exchange
from tests.support.wire.wire_peer import LinkPeer
from tests.support.wire.wire_socket import Left

GONE, OK, ACCEPTED = 410, 200, 202
CONTROL = ("open", "re-open", "close")


class Requests:
    """What such a runtime has instead of a link: a place to ask, and a token to show.

    Attributes:
        read: Up to which message it has read.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.token = ""
        self.read = 0

    async def ask(self, method: str, path: str, body: bytes = b"", **headers: str):
        """Ask once, over a connection of its own."""
        parts = urlsplit(self.url)
        named = {"host": parts.netloc, "content-length": str(len(body)), **headers}
        if self.token:
            named["authorization"] = f"Bearer {self.token}"
        request = h11.Request(method=method, target=parts.path + path, headers=list(named.items()))
        async with await trio.open_tcp_stream(parts.hostname, parts.port) as stream:
            return await exchange(stream, h11.Connection(h11.CLIENT), request, body)

    async def receive(self) -> bytes:
        """Ask for what comes next; raises `Left` if there is no session any more.

        HTTP has no close codes: that nobody is there stands for a farewell in good order.
        """
        answer = await self.ask("GET", f"/messages?after={self.read}")
        if answer.status == GONE:
            raise Left(1000, answer.json["description"])
        assert answer.status == OK, answer
        self.read += answer.body.count(b"\n")
        return answer.body

    async def abandon(self) -> None:
        """Ask no more; there is nothing to hang up."""
        await trio.lowlevel.checkpoint()


class RestPeer(LinkPeer):
    """Normal form in requests; what comes is asked for."""

    form = "rest"
    wire: Requests

    @override
    async def connect(self) -> None:
        self.wire = Requests(self.urls["rest_url"])

    @override
    def _granted(self, answer: dict) -> None:
        super()._granted(answer)
        if answer["body"]["code"] == OK:
            self.wire.token, self.wire.read = self.token, 0

    @override
    async def raw(self, text: bytes) -> None:
        said = _read(text)
        body = said.get("body")
        method = body.get("method") if isinstance(body, dict) else None
        if said.get("to") == f"{self.node}/session" and method in CONTROL:
            answer = await self.wire.ask("POST", "/session", text)
            self.heard.append(answer.json)
            return
        answer = await self.wire.ask("POST", "/messages", text)
        is_event = str(said.get("to")).endswith("/changes")
        if answer.status != ACCEPTED and not is_event:
            # Without a session there is nobody whom the answer could be kept for.
            self.heard.append(
                {
                    "id": said.get("id"), "type": "response", "from": said.get("to"),
                    "to": said.get("from"), "body": answer.json,
                }
            )  # fmt: skip

    @override
    async def _read(self, text: bytes) -> None:
        if text:
            await super()._read(text.rstrip(b"\n"))


def _read(text: bytes) -> dict:
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return said if isinstance(said, dict) else {}
