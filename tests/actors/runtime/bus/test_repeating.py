"""Requests that are sent again, said to be worked on, or sent to several."""

import pytest
import trio
from typing_extensions import override

from actors.runtime.hyperty.hyperty import Hyperty
from specs.errors import BadMessageError
from specs.limits.protocol import REPLY_TIMEOUT
from specs.reply_code import Code
from tests.support.runtime.domain import NODE_PLACE, DomainOptions, open_domain
from tests.support.wire.wire import answer, ask
from transports.link import Kind as Carrier

# ---- what a hyperty can do


async def test_no_receiver_is_asked_if_none_is_named(autojump_clock):
    """MSG-08."""
    async with open_domain("ra") as domain:
        assert await domain["ra"].hyperty.request_each([]) == {}


class AtLast(Hyperty):
    """Handles each request when it may."""

    def __init__(self):
        self.heard, self.may = [], trio.Event()

    @override
    async def on_request(self, message):
        self.heard.append(message.body["value"])
        await self.may.wait()
        return "done"


async def test_a_repetition_that_finds_no_node_does_not_end_what_was_sent(autojump_clock):
    """MSG-07: the first message is answered, and the node holds its answer meanwhile."""
    by_node = DomainOptions(kinds=())
    async with open_domain("ra", "rb", options=by_node) as domain, trio.open_nursery() as nursery:
        slow = AtLast()
        to = await domain["rb"].runtime.deploy("slow", lambda: slow)
        answers = []

        async def insist():
            answers.append(await domain["ra"].hyperty.insist(to, 5, attempts=5))

        nursery.start_soon(insist)
        await trio.sleep(1)
        domain.network.refuse(NODE_PLACE)
        domain.network.open_wires(Carrier.WEBSOCKET)[0].cut()
        await trio.sleep(1)
        slow.may.set()
        await trio.sleep(2 * REPLY_TIMEOUT)
        assert (await domain["ra"].hyperty.request(to, 6)).code == Code.UNAVAILABLE
        assert answers == []
        domain.network.allow(NODE_PLACE)
        await trio.sleep(2 * REPLY_TIMEOUT)
    assert [(final.code, final.body["value"]) for final in answers] == [(Code.OK, "done")]
    assert slow.heard == [5]


async def test_there_is_no_progress_of_an_answer(autojump_clock):
    """MSG-05."""
    async with open_domain("ra") as domain:
        with pytest.raises(BadMessageError):
            await domain["ra"].hyperty.progress(answer(ask(1)))


async def test_a_hyperty_insists(autojump_clock):
    """MSG-07: on one who is there and answers, as by a request."""
    async with open_domain("ra", "rb") as domain:
        final = await domain["ra"].hyperty.insist(domain["rb"].address, 5)
    assert (final.code, domain["rb"].hyperty.heard) == (Code.OK, [5])
