"""Several observers of one object, in one runtime and in several (SYN-20, SYN-22, I-D7)."""

import trio

from specs.limits.protocol import REPLY_TIMEOUT
from specs.message import MessageType
from specs.trace import Kind
from tests.support.runtime.parties import heard, neighbour, parties
from transports.link import Kind as Carrier

# --- several runtimes -------------------------------------------------------------------------


def removals(party):
    """Whose subscriptions of a party's objects ended with them."""
    return {
        fact.key.partition("|")[2]
        for fact in party.member.tracer.facts
        if fact.k is Kind.STATE and (fact.machine, fact.cause) == (MACHINE, "object-deleted")
    }


MACHINE = "object_subscription"


async def test_observers_in_the_reporters_runtime_take_nothing_from_others(autojump_clock):
    """BUS-09."""
    async with parties() as (alice, bob):
        beside = await neighbour(alice, "beside")
        url = await alice.create()
        for observer in (beside, bob):
            await observer.observe(url)
        await alice.change(url, "t", 1)
        await trio.sleep(1)
        assert heard(beside) == heard(bob) == [2]
        assert (await alice.ask(MessageType.DELETE, resource=url)).code == 200
        assert removals(alice) == {beside.url, bob.url}


async def test_an_observer_that_does_not_answer_a_deletion_is_awaited_and_then_removed(
    autojump_clock,
):
    """SYN-22: the one that answers is not held up by the one that does not."""
    async with parties("carol") as (alice, bob, carol):
        url = await alice.create()
        for observer in (bob, carol):
            await observer.observe(url)
        wire = carol.domain.network.open_wires(Carrier.WEBSOCKET)[2]
        wire.dialler.pattern = lambda *_: ()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(lambda: alice.ask(MessageType.DELETE, resource=url))
            await trio.sleep(REPLY_TIMEOUT - 1)
            assert removals(alice) == {bob.url}
            await trio.sleep(2)
            assert removals(alice) == {bob.url, carol.url}
