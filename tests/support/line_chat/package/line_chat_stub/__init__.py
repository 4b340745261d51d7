"""A stub for the chat: what is sent to hyperty://<domain>/<who> is said to <who>."""

import json
from contextlib import suppress

from actors.kit.supervision.actor import Actor
from actors.runtime.stubs.stub import StubConnection
from fsm.machines.stub_connection import State, Trigger
from line_chat_stub.lines import Lines, hello, say
from specs.message import Message, MessageType, refuse, reply_to
from specs.reply_code import Code
from transports.errors import DialError, LinkError
from transports.urls import read_endpoint

QUEUE = 100


def activate(context):
    return ChatStub(context)


class ChatStub(Actor):
    """Takes deliveries of the runtime; and, from its own task, lines and the end of its link."""

    def __init__(self, context):
        self.context = context
        self.connection = StubConnection(context)
        self.link = None
        self.is_dialling = False
        self.waiting = []
        self.asked = {}
        self.said = 0

    async def start(self):
        await self.connection.step(Trigger.CONSTRUCTED)

    async def handle(self, message):
        match message:
            case str(line):
                await self.heard(line)
            case LinkError() as error:
                await self.lost(str(error))
            case delivery if delivery.message.to == self.context.url:
                await self.command(delivery.message)
            case delivery:
                await self.send(delivery.message)

    # ---- the runtime's side

    async def command(self, message):
        if message.is_response:
            return
        await self.context.bus.post(reply_to(message, Code.OK))
        if message.body.get("method") == "disconnect" and self.link is not None:
            with suppress(LinkError):
                await self.link.send(b"BYE\n")

    async def send(self, message):
        if not message.is_request:
            return
        if self.link is None and not self.is_dialling:
            await self.dial()
        if self.connection.state is State.LIVE:
            await self.write(message)
        elif len(self.waiting) < QUEUE:
            self.waiting.append(message)
        else:
            why = "too many wait for the chat"
            await self.context.bus.post(refuse(message, Code.TOO_LARGE, why))

    async def dial(self):
        if self.connection.state is State.CREATED:
            await self.connection.step(Trigger.CONNECT)
        self.is_dialling = True
        self.spawn(self.connect)

    async def write(self, message):
        self.said += 1
        number = str(self.said)
        self.asked[number] = message
        who = message.to.rpartition("/")[2]
        # A link that breaks now says so where it is read.
        with suppress(LinkError):
            await self.link.send(say(number, who, json.dumps(message.body.get("value"))))

    # ---- the chat's side

    async def connect(self):
        endpoint = read_endpoint(self.context.config.endpoints[0])
        lines = Lines()
        try:
            link = await self.context.network.dial(endpoint.kind, endpoint.address)
            async with link:
                await link.send(hello(self.context.config.options.get("nick", "somebody")))
                self.link = link
                while True:
                    for line in lines.feed(await link.receive()):
                        await self.me.tell(line)
        except (DialError, LinkError) as error:
            await self.me.tell(error)

    async def heard(self, line):
        word, _, rest = line.partition(" ")
        match word:
            case "WELCOME":
                is_first = self.connection.state is State.IN_PROGRESS
                self.is_dialling = False
                await self.connection.step(
                    Trigger.ESTABLISHED if is_first else Trigger.REESTABLISHED
                )
                waiting, self.waiting = self.waiting, []
                for message in waiting:
                    await self.write(message)
            case "SAID":
                number, _, text = rest.partition(" ")
                answer = {"value": json.loads(text)}
                await self.context.bus.post(reply_to(self.asked.pop(number), Code.OK, answer))
            case "NOBODY":
                request = self.asked.pop(rest)
                await self.context.bus.post(refuse(request, Code.NOT_FOUND, "nobody of this name"))
            case "WHISPER":
                await self.whispered(rest)

    async def whispered(self, rest):
        who, _, text = rest.partition(" ")
        to, _, said = text.partition(" ")
        from_ = f"hyperty://{self.context.config.domain}/{who}"
        number = self.context.ids.next(from_)
        await self.context.bus.post(Message(number, MessageType.CREATE, from_, to, {"value": said}))

    async def lost(self, why):
        self.link, self.is_dialling = None, False
        for message in (*self.asked.values(), *self.waiting):
            await self.context.bus.post(refuse(message, Code.UNAVAILABLE, why))
        self.asked, self.waiting = {}, []
        if self.connection.state is State.LIVE:
            await self.connection.step(Trigger.CLOSED, why)
        elif self.connection.state is State.IN_PROGRESS:
            await self.connection.step(Trigger.ESTABLISH_FAILED, why)
