"""How subscriptions and invitations move between whole runtimes (SC-29, SC-30, SC-32, SC-34)."""

import trio

from specs.message import Message, MessageType
from specs.trace import Op
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


# --- invitations ----------------------------------------------------------------------------


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
