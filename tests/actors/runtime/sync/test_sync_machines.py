"""How subscriptions and invitations move between whole runtimes (SC-29, SC-30, SC-32, SC-34)."""

import trio

from specs.limits.protocol import REPLY_TIMEOUT
from specs.message import Message, MessageType, reply_to
from specs.reply_code import Code
from specs.trace import Kind, Op
from tests.support.runtime.parties import moves, parties, slow

SUBSCRIPTION, INVITATION, COPY = "object_subscription", "invitation", "observer_copy"


def answers_to(party, code):
    """The answers with a code that a party was given by its own sync manager."""
    return [
        fact
        for fact in party.member.tracer.facts
        if fact.op is Op.SUBMIT and fact.type == "response"
        if (fact.from_, fact.to, fact.code) == (party.manager, party.url, code)
    ]


def observer_rows(party):
    return [
        (fact.op, fact.key, fact.val)
        for fact in party.member.tracer.facts
        if fact.k is Kind.TABLE and fact.table == "observers"
    ]


# --- invitations ----------------------------------------------------------------------------


async def test_provisional_answers_to_an_invitation_are_relayed_as_they_come(autojump_clock):
    async with parties() as (alice, bob):
        url = await alice.create()
        decide = slow(bob)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(alice.invite, url, bob)
            await trio.sleep(1)
            await provisional(bob, f"{url}/subscription", Code.TRYING)
            await trio.sleep(REPLY_TIMEOUT - 2)
            assert len(answers_to(alice, 100)) == 1
            await provisional(bob, f"{url}/subscription", Code.PROGRESS)
            await trio.sleep(REPLY_TIMEOUT - 2)
            decide.set()
        assert [len(answers_to(alice, code)) for code in (100, 183)] == [1, 1]
        assert [new for _, new in moves(alice, INVITATION)] == ["sent", "sent", "sent", "accepted"]


async def provisional(party, asker, code):
    """Say that the last request of `asker` is being worked on."""
    request = Message(last_asked(party, asker), MessageType.CREATE, asker, party.url, {})
    await party.member.hyperty._participant.port.post(reply_to(request, code))


def last_asked(party, asker):
    """The id of the last request a party got from `asker`."""
    facts = party.member.tracer.facts
    got = [
        fact for fact in facts if (fact.op, fact.from_, fact.to) == (Op.DELIVER, asker, party.url)
    ]
    return got[-1].id


async def test_an_observer_that_says_nothing_is_no_refusal(autojump_clock):
    async with parties() as (alice, bob):
        url = await alice.create()
        slow(bob)
        assert (await alice.invite(url, bob)).code == 408
        assert moves(alice, INVITATION) == [("send", "sent"), ("silence", "timed-out")]


async def test_an_answer_with_an_unknown_code_is_relayed_as_its_class_says(autojump_clock):
    async with parties() as (alice, bob):
        url = await alice.create()
        slow(bob)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(alice.invite, url, bob)
            await trio.sleep(1)
            asker = f"{url}/subscription"
            answer = (last_asked(bob, asker), MessageType.RESPONSE, bob.url, asker)
            await bob.member.hyperty._participant.port.post(Message(*answer, {"code": 418}))
        assert len(answers_to(alice, 400)) == 1
        assert moves(alice, INVITATION)[-1] == ("refuse", "refused")


async def test_deleting_the_object_ends_its_invitations(autojump_clock):
    async with parties() as (alice, bob):
        url = await alice.create()
        slow(bob)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(alice.invite, url, bob)
            await trio.sleep(1)
            await alice.ask(MessageType.DELETE, resource=url)
        assert len(answers_to(alice, 404)) == 1
        assert moves(alice, INVITATION)[-1] == ("object-deleted", "refused")


# --- subscriptions ----------------------------------------------------------------------------


async def test_the_silence_of_the_reporter_is_a_refusal(autojump_clock):
    async with parties() as (alice, bob):
        url = await alice.create()
        slow(alice)
        assert (await bob.observe(url)).code in {403, 408}
        await trio.sleep(1)
        assert moves(alice, SUBSCRIPTION) == [("request", "requested"), ("refuse", "refused")]
        assert observer_rows(alice) == []


async def test_an_observer_that_leaves_before_the_decision_is_never_admitted(autojump_clock):
    async with parties() as (alice, bob):
        url = await alice.create()
        decide = slow(alice)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(bob.observe, url)
            await trio.sleep(1)
            assert (await bob.ask(MessageType.UNSUBSCRIBE, resource=url)).code == 200
            decide.set()
        assert moves(alice, SUBSCRIPTION)[-1] == ("unsubscribe", "refused")
        await alice.change(url, "t", 1)
        await trio.sleep(1)
        assert bob.member.hyperty.events == []


# --- the end ------------------------------------------------------------------------------------
