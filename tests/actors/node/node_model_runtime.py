"""A runtime of a random run: it hears all the time, and answers every request."""

import attrs

from specs.message import Message, MessageType
from tests.actors.node.node_model import Seen
from tests.support.node.node_peer import DOMAIN
from transports.codec import decode_frame, encode
from transports.errors import LinkError
from transports.link import Link


@attrs.define
class Runtime:
    """One runtime: hears all the time, and answers every request."""

    name: str
    link: Link | None = None
    token: str = ""
    last_token: str = ""
    heard: list[Seen] = attrs.field(factory=list)
    tells: int = 200
    ids: int = 0

    @property
    def url(self) -> str:
        return f"hyperty-runtime://{DOMAIN}/{self.name}"

    async def listen(self, link: Link) -> None:
        try:
            while True:
                for message in decode_frame(await link.receive()):
                    await self._take(link, message)
        except LinkError:
            return

    async def _take(self, link: Link, message: Message) -> None:
        value = message.body.get("value")
        if message.body.get("method") == "ping":
            await self._answer(link, message, 200)
        elif message.is_response:
            if isinstance(value, dict) and "sessionToken" in value:
                self.token = value["sessionToken"]
            self.heard.append(("answer", message.code, value))
        else:
            kind = "event" if message.is_event else "request"
            self.heard.append((kind, message.from_, message.to, value))
            if message.is_request:
                await self._answer(link, message, self.tells)

    async def _answer(self, link: Link, asked: Message, code: int) -> None:
        # Who observes is given the object along with the yes (M-38).
        given = {"value": {}} if asked.type is MessageType.SUBSCRIBE and code < 300 else {}
        reported = {"code": code, **given}
        answer = Message(asked.id, MessageType.RESPONSE, asked.to, asked.from_, reported)
        await link.send(encode(answer))

    async def say(self, link: Link, type_: str, from_: str, to: str, **body: object) -> None:
        self.ids += 1
        await link.send(encode(Message(self.ids, MessageType(type_), from_, to, body)))

    def taken(self) -> list[Seen]:
        """Return what was heard since this was asked last; of answers the code only."""
        heard, self.heard = self.heard, []
        return [seen[:2] if seen[0] == "answer" else seen for seen in heard]
