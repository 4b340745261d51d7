"""How subscriptions and invitations move between whole runtimes (SC-29, SC-30, SC-32, SC-34)."""

import pytest
import trio

from specs.limits.protocol import REPLY_TIMEOUT
from specs.message import Message, MessageType, reply_to
from specs.reply_code import Code
from specs.trace import Kind, Op
from tests.support.runtime.domain import go_live, judged, open_domain
from tests.support.runtime.parties import Party, moves, parties, slow

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


async def test_two_requests_for_one_observer_are_one_invitation(autojump_clock):
    async with parties() as (alice, bob):
        url = await alice.create()
        decide = slow(bob)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(alice.invite, url, bob)
            nursery.start_soon(alice.invite, url, bob)
            await trio.sleep(1)
            decide.set()
        assert len(answers_to(alice, 200)) == 3
        assert moves(alice, INVITATION) == [("send", "sent"), ("accept", "accepted")]


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


async def test_a_subscription_is_requested_active_and_removed(autojump_clock):
    async with parties() as (alice, bob):
        url = await alice.create()
        await bob.observe(url)
        await bob.ask(MessageType.UNSUBSCRIBE, resource=url)
        assert moves(alice, SUBSCRIPTION) == [
            ("request", "requested"),
            ("accept", "active"),
            ("unsubscribe", "removed"),
        ]
        assert observer_rows(alice) == [(Op.ADD, url, bob.url), (Op.DEL, url, bob.url)]


async def test_the_silence_of_the_reporter_is_a_refusal(autojump_clock):
    async with parties() as (alice, bob):
        url = await alice.create()
        slow(alice)
        assert (await bob.observe(url)).code in {403, 408}
        await trio.sleep(1)
        assert moves(alice, SUBSCRIPTION) == [("request", "requested"), ("refuse", "refused")]
        assert observer_rows(alice) == []


async def test_a_reporter_that_only_puts_off_its_decision_is_silent_too(autojump_clock):
    async with parties() as (alice, bob):
        url = await alice.create()
        slow(alice)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(bob.observe, url)
            await trio.sleep(REPLY_TIMEOUT - 5)
            await provisional(alice, url, Code.TRYING)
        await trio.sleep(1)
        assert moves(alice, SUBSCRIPTION)[-1] == ("refuse", "refused")


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


async def test_a_refused_observer_may_ask_again(autojump_clock):
    async with parties() as (alice, bob):
        url = await alice.create()
        slow(alice)
        await bob.observe(url)
        await alice.invite(url, bob)
        assert (await bob.observe(url)).code == 200
        states = [new for _, new in moves(alice, SUBSCRIPTION)]
        assert states == ["requested", "refused", "requested", "active"]


async def test_a_subscription_ends_when_its_observer_was_reported_that_the_object_is_gone(
    autojump_clock,
):
    """SC-34."""
    async with parties() as (alice, bob):
        url = await alice.create()
        await bob.observe(url)
        await alice.ask(MessageType.DELETE, resource=url)
        assert moves(alice, SUBSCRIPTION)[-1] == ("object-deleted", "removed")
        facts = alice.member.tracer.facts
        reported = next(n for n, fact in enumerate(facts) if fact.to == f"{url}/subscription")
        removed = next(n for n, fact in enumerate(facts) if fact.cause == "object-deleted")
        assert reported < removed


async def test_only_its_reporter_ends_an_object_for_its_observers(autojump_clock):
    async with parties() as (alice, bob):
        url = await alice.create()
        await bob.observe(url)
        refused = await bob.ask(MessageType.DELETE, f"{url}/changes")
        assert refused.code == 403
        await alice.change(url, "t", 1)
        await trio.sleep(1)
        assert len(bob.member.hyperty.events) == 1


async def test_an_observer_that_returns_during_the_removal_of_its_path_is_served_afterwards(
    autojump_clock,
):
    async with parties() as (alice, bob):
        url = await alice.create()
        await alice.invite(url, bob)
        await bob.observe(url)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(lambda: bob.ask(MessageType.UNSUBSCRIBE, resource=url))
            for _ in range(3):
                await trio.lowlevel.checkpoint()
            nursery.start_soon(bob.observe, url)
        await alice.change(url, "t", 1)
        await trio.sleep(1)
        assert [event.body["version"] for event in bob.member.hyperty.events] == [2]


# --- the end ------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["the reporter's", "the observer's"])
async def test_when_a_runtime_leaves_its_subscriptions_end_and_the_other_is_reported(
    end, autojump_clock
):
    async with parties() as (alice, bob):
        async with alice.domain.visitor("carol") as visitor:
            carol = Party(visitor)
            reporter, observer = (carol, bob) if end == "the reporter's" else (bob, carol)
            url = await reporter.create()
            await observer.observe(url)
        cause = "object-deleted" if end == "the reporter's" else "unsubscribe"
        assert moves(reporter, SUBSCRIPTION)[-1] == (cause, "removed")
        assert judged(visitor).verdict == "conformant"


async def test_an_open_invitation_of_a_leaving_runtime_is_refused_in_the_trace(autojump_clock):
    async with parties() as (alice, bob):
        async with alice.domain.visitor("carol") as visitor:
            carol = Party(visitor)
            first, second = await carol.create(), await carol.create()
            slow(carol)
            slow(bob)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(bob.observe, first)
                nursery.start_soon(carol.invite, second, bob)
                await trio.sleep(1)
                nursery.cancel_scope.cancel()
        assert moves(carol, SUBSCRIPTION)[-1] == ("refuse", "refused")
        assert moves(carol, INVITATION)[-1] == ("object-deleted", "refused")
        assert judged(visitor).verdict == "conformant"


async def test_the_objects_of_a_link_end_with_it(autojump_clock):
    async with open_domain("alice", "bob") as domain:
        members = domain.members.values()
        await go_live(domain)
    for member in members:
        ended = {m: [new for _, new in member.steps(m)][-1] for m in (SUBSCRIPTION, COPY)}
        assert ended == {SUBSCRIPTION: "removed", COPY: "deleted"}
        assert judged(member).verdict == "conformant"
