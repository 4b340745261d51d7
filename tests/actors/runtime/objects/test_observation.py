"""The copy of a hostile reporter's object: nothing waits for it (SYN-17, I-D5)."""

import attrs
import trio

from actors.kit.ids import IdSource
from actors.runtime.objects.observation import open_observation
from actors.runtime.objects.participant import Participant
from actors.sandbox.hyperties import SandboxRuntime
from specs.bodies.object import Observe
from specs.limits.protocol import READ_PAUSE
from specs.message import Message, MessageType, reply_to

URL, RUNTIME = "comm://a.ex/o", "hyperty-runtime://b.ex/rb"
VALUE = {"url": URL, "version": 1, "data": {}, "reporter": "hyperty://a.ex/ha"}


@attrs.define
class Port:
    """Says yes to everything, and keeps what was said."""

    url: str = "hyperty://b.ex/hb"
    said: list = attrs.field(factory=list)

    async def post(self, message, by=None):
        await trio.lowlevel.checkpoint()
        self.said.append(message.type)

    async def request(self, message):
        await self.post(message)
        return reply_to(message, 200, {"value": VALUE})

    async def insist(self, message, attempts):
        return await self.request(message)


def change(number, **body):
    sender, to = f"{URL}/subscription", f"{URL}/changes"
    return Message(number, MessageType.UPDATE, sender, to, body)


async def test_a_sender_of_bad_changes_blocks_no_mailbox(autojump_clock):
    """The copy reads the object, and follows it as before; the mailbox waits for nothing."""
    port = Port()
    hyperty = Participant(SandboxRuntime(RUNTIME, IdSource()), port)
    async with open_observation(hyperty, Observe(URL)) as copy:
        hyperty.pass_notice(change(1, version="none"))
        for number in range(2, 102):
            assert hyperty.pass_notice(change(number, version=number, attribute="t", value=1))
        assert not copy.is_gone
        await trio.sleep(2 * READ_PAUSE)
        assert (copy.version, dict(copy.value)) == (101, {"t": 1})
        assert port.said == [MessageType.SUBSCRIBE, MessageType.READ]


async def test_a_read_that_a_link_cannot_prove_is_made_again_by_the_node():
    class Unproven(Port):
        async def request(self, message):
            await self.post(message)
            return reply_to(message, 200 if message.body.get("p2p") is False else 401)

    hyperty = Participant(SandboxRuntime(RUNTIME, IdSource()), Unproven())
    assert (await hyperty.read(URL)).code == 200
