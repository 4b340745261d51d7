"""Several observers of one object, in one runtime and in several (SYN-20, SYN-22, I-D7)."""

import trio

from actors.runtime.hyperty.hyperty import Refused
from specs.limits.protocol import REPLY_TIMEOUT
from specs.message import MessageType
from specs.reply_code import Code
from specs.trace import Kind, Op
from tests.support.runtime.parties import heard, neighbour, parties, silent


async def test_of_two_observers_in_one_runtime_the_one_that_left_hears_nothing_more(autojump_clock):
    async with parties() as (alice, bob):
        carol = await neighbour(bob, "carol")
        url = await alice.create()
        for observer in (bob, carol):
            await observer.observe(url)
        await alice.change(url, "t", 1)
        await trio.sleep(1)
        assert (await bob.ask(MessageType.UNSUBSCRIBE, resource=url)).code == 200
        await alice.change(url, "t", 2)
        await trio.sleep(1)
        assert (heard(bob), heard(carol)) == ([2], [2, 3])


async def test_an_observer_that_left_and_returned_receives_changes_again(autojump_clock):
    async with parties() as (alice, bob):
        carol = await neighbour(bob, "carol")
        url = await alice.create()
        for observer in (bob, carol):
            await observer.observe(url)
        await bob.ask(MessageType.UNSUBSCRIBE, resource=url)
        await bob.observe(url)
        await alice.change(url, "t", 1)
        await trio.sleep(1)
        assert heard(bob) == heard(carol) == [2]


async def test_a_refused_observer_receives_nothing_of_its_neighbours_object(autojump_clock):
    async with parties() as (alice, bob):
        carol = await neighbour(bob, "carol")
        url = await alice.create()
        await alice.invite(url, bob)
        await bob.observe(url)
        alice.member.hyperty.on_request = refuse
        assert (await carol.observe(url)).code == 403
        await alice.change(url, "t", 1)
        await trio.sleep(1)
        assert (heard(bob), heard(carol)) == ([2], [])


async def refuse(_message):
    raise Refused(Code.FORBIDDEN, "no")


async def test_an_observer_is_notified_of_the_end_and_answers_nothing_for_its_sync_manager(
    autojump_clock,
):
    async with parties() as (alice, bob):
        url = await alice.create()
        await bob.observe(url)
        await alice.ask(MessageType.DELETE, resource=url)
        (reported,) = bob.member.hyperty.events
        assert (reported.type, reported.from_) == (MessageType.DELETE, f"{url}/subscription")
        assert bob.member.hyperty.heard == []
        assert bob.member.facts(Op.DENY) == []


# --- several runtimes -------------------------------------------------------------------------


def removals(party):
    """Whose subscriptions of a party's objects ended with them."""
    return {
        fact.key.partition("|")[2]
        for fact in party.member.tracer.facts
        if fact.k is Kind.STATE and (fact.machine, fact.cause) == (MACHINE, "object-deleted")
    }


MACHINE = "object_subscription"


async def test_each_runtime_answers_a_deletion_for_its_own_observers(autojump_clock):
    """C-81, I-T2."""
    async with parties("carol") as (alice, bob, carol):
        url = await alice.create()
        for observer in (bob, carol):
            await observer.observe(url)
        await alice.ask(MessageType.DELETE, resource=url)
        facts = alice.member.tracer.facts
        answers = [fact for fact in facts if fact.from_ == f"{url}/changes" and fact.code]
        given = [fact.mid for fact in answers if fact.op is Op.DELIVER]
        assert len(set(given)) == 2
        assert [fact.reason for fact in answers if fact.op is Op.DROP] == []
        assert removals(alice) == {bob.url, carol.url}
        causes = [f.cause for f in facts if f.key and f.key.startswith(f"{url}/subscription|")]
        assert causes == ["opened", "one-answered", "answered"]


async def test_an_observer_that_does_not_answer_a_deletion_is_awaited_and_then_removed(
    autojump_clock,
):
    """SYN-22: the one that answers is not held up by the one that does not."""
    async with parties("carol") as (alice, bob, carol):
        url = await alice.create()
        for observer in (bob, carol):
            await observer.observe(url)
        silent(carol)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(lambda: alice.ask(MessageType.DELETE, resource=url))
            await trio.sleep(REPLY_TIMEOUT - 1)
            assert removals(alice) == {bob.url}
            await trio.sleep(2)
            assert removals(alice) == {bob.url, carol.url}


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


async def test_an_object_observed_beside_its_reporter_only_stays_in_the_runtime(autojump_clock):
    async with parties() as (alice, _):
        beside = await neighbour(alice, "beside")
        url = await alice.create()
        await beside.observe(url)
        await alice.change(url, "t", 1)
        await alice.ask(MessageType.DELETE, resource=url)
        sent = [fact for fact in alice.member.facts(Op.XMIT) if fact.to == f"{url}/changes"]
        assert (heard(beside), sent) == ([2], [])
